/** The studio: what is asked, what was answered, and everything needed to ask again. */
import { batch, computed, effect, signal } from "@preact/signals-core";
import { writeAddress } from "../frame";
import { initialState, parseLink, type View } from "../link";
import { Session, timelineOf } from "../session";
import { tickAt } from "../timeline";
import type { Edit, Trace } from "../trace";
import {
  getJson,
  Offline,
  Problem,
  requestTrace,
  requestWhatIf,
  send,
  type History,
  type ModelInfo,
  type Subject,
  type TraceDetail,
} from "./api";
import { formatEdit, parseEdit } from "./edits";
import { formatLane, parseLane, type Lane } from "./lanes";
import { load, loadPicture, save, savePicture } from "./storage";

const TYPING_PAUSE = 40; // milliseconds after a key until the model is asked
const RECONNECT = 1000;
export const SAMPLES: Readonly<Record<string, readonly string[]>> = {
  translate: [
    "The black cat sleeps on the old chair.",
    "She gave her brother the book that he wanted.",
    "I have never seen such a beautiful house.",
  ],
  classify: ["My card has not arrived yet.", "How do I change my PIN?", "Why was I charged twice?"],
  read: [
    "The old man walked slowly to the door and opened it.",
    "She had not seen her mother for many years.",
  ],
};
const TASK_VIEWS: Readonly<Record<string, View>> = {
  caption: "photo",
  recommend: "history",
  classify: "classify",
  read: "read",
};

interface Change {
  readonly edits: readonly Edit[];
  readonly prefix: readonly number[];
}
const NO_CHANGE: Change = { edits: [], prefix: [] };

export class Studio {
  readonly models = signal<readonly ModelInfo[] | null>(null);
  readonly modelName = signal("");
  readonly texts = signal<Readonly<Record<string, string>>>({});
  readonly image = signal<Blob | null>(null);
  readonly lanes = signal<readonly Lane[] | null>(null); // of Compare; null: this model, and uniform attention
  readonly change = signal<Change>(NO_CHANGE);
  readonly undone = signal<readonly Change[]>([]);
  readonly done = signal<readonly Change[]>([]);
  readonly session = signal<Session | null>(null);
  readonly before = signal<Trace | null>(null); // the same input without edits
  readonly startView = signal<View>("write");
  readonly busy = signal(false);
  readonly online = signal(true);
  readonly problem = signal<string | null>(null);
  readonly latency = signal<number | null>(null); // milliseconds from the last key to the output
  readonly answered = signal(""); // the input of the trace that is shown

  readonly model = computed(
    () => this.models.value?.find(({ name }) => name === this.modelName.value) ?? null,
  );
  readonly task = computed(() => this.model.value?.task ?? "translate");
  readonly text = computed(() => this.texts.value[this.task.value] ?? "");
  readonly view = computed(() => this.session.value?.state.value.view ?? this.startView.value);
  readonly edits = computed(() => this.change.value.edits);
  readonly prefix = computed(() => this.change.value.prefix);
  /** The history of a recommender is its text: an id per line. */
  readonly items = computed((): readonly string[] =>
    (this.texts.value.recommend ?? "").split("\n").filter((id) => id !== ""),
  );
  private readonly history = computed((): History | null =>
    this.items.value.length === 0 ? null : { items: this.items.value.map((id) => `id:${id}`) },
  );
  /** What the model is asked about; null: nothing to ask yet. */
  readonly subject = computed((): Subject | null => {
    const model = this.modelName.value;
    if (model === "" || this.model.value === null) return null;
    if (this.task.value === "caption") return this.image.value && { model, input: this.image.value };
    if (this.task.value === "recommend") return this.history.value && { model, input: this.history.value };
    return this.text.value.trim() === "" ? null : { model, input: this.text.value.trim() };
  });
  private request: AbortController | null = null;
  private inFlight: { readonly subject: Subject } | null = null; // what the request asks about
  private dragging = false;
  private pause: number | undefined;
  private typed: number | null = null; // when the last key was pressed
  private answer: { subject: Subject; change: Change; detail: TraceDetail } | null = null; // what is shown

  start(): void {
    this.restore(location.hash);
    addEventListener("hashchange", () => this.restore(location.hash));
    effect(() => this.ask());
    effect(() => save(this.modelName.value, this.texts.value));
    void loadPicture().then((picture) => {
      if (this.image.peek() === null) this.image.value = picture;
    });
    this.keepAddress();
    void this.connect();
  }

  /** Read the models; try again until the server is there. */
  private async connect(): Promise<void> {
    try {
      const { models } = await getJson<{ models: ModelInfo[] }>("/v1/models");
      batch(() => {
        this.models.value = models;
        this.online.value = true;
        if (!models.some(({ name }) => name === this.modelName.value)) {
          const first = models.find(({ task }) => task === "translate") ?? models[0];
          this.modelName.value = first?.name ?? "";
        }
        this.usePending();
        const task = this.task.value;
        if (this.text.value === "" && SAMPLES[task] !== undefined)
          this.texts.value = { ...this.texts.value, [task]: SAMPLES[task][0]! };
      });
    } catch (error) {
      this.failed(error, () => void this.connect());
    }
  }

  /** The models again, after one was trained. */
  async reload(): Promise<void> {
    const { models } = await getJson<{ models: ModelInfo[] }>("/v1/models");
    this.models.value = models;
  }

  readonly views = (trace: Trace | null): View[] => {
    const task = this.task.value;
    const heads = trace?.sites.reduce((sum, { heads }) => sum + heads, 0) ?? 0;
    const own = TASK_VIEWS[task];
    const tree = trace?.beam != null && trace.beam.nodes.length > 1;
    return [
      ...(own === undefined ? (["write"] as const) : [own]),
      ...(task === "recommend" || task === "read" ? [] : (["what-if"] as const)),
      ...(own === undefined || task === "classify" ? (["compare"] as const) : []),
      "walk",
      "alignment",
      ...(heads > 1 ? (["heads"] as const) : []),
      ...(tree ? (["beam"] as const) : []),
      ...(own === undefined || task === "classify" ? (["lesson"] as const) : []),
      "train",
    ];
  };

  // what the user does

  setText(text: string): void {
    this.typed = performance.now();
    batch(() => {
      this.texts.value = { ...this.texts.value, [this.task.value]: text };
      this.clearChange();
    });
  }

  setImage(image: Blob): void {
    savePicture(image);
    batch(() => {
      this.image.value = image;
      this.clearChange();
    });
  }

  setItems(ids: readonly string[]): void {
    batch(() => {
      this.setText(ids.join("\n"));
      if (ids.length > 0) return;
      this.request?.abort();
      this.session.value = this.before.value = this.answer = null;
    });
  }

  /** Keep what is typed where no model is asked. */
  keepText(name: string, text: string): void {
    this.texts.value = { ...this.texts.value, [name]: text };
  }

  chooseModel(name: string): void {
    const view = this.view.value;
    batch(() => {
      this.modelName.value = name;
      this.clearChange();
      this.session.value = null;
      this.before.value = null;
      this.problem.value = null;
      this.startView.value = view;
      this.lanes.value = null;
      const task = this.task.value;
      if (this.text.value === "" && SAMPLES[task] !== undefined)
        this.texts.value = { ...this.texts.value, [task]: SAMPLES[task][0]! };
    });
  }

  private clearChange(): void {
    this.change.value = NO_CHANGE;
    this.done.value = [];
    this.undone.value = [];
  }

  /** Change weights or the beginning of the output; `drag`: as a part of the change before. */
  apply(change: Partial<Change>, drag = false): void {
    this.dragging = drag;
    batch(() => {
      if (!drag) this.done.value = [...this.done.value, this.change.value].slice(-200);
      this.undone.value = [];
      this.change.value = { ...this.change.value, ...change };
    });
  }

  undo(): void {
    const last = this.done.value.at(-1);
    if (last === undefined) return;
    batch(() => {
      this.undone.value = [...this.undone.value, this.change.value];
      this.done.value = this.done.value.slice(0, -1);
      this.change.value = last;
    });
  }

  redo(): void {
    const next = this.undone.value.at(-1);
    if (next === undefined) return;
    batch(() => {
      this.done.value = [...this.done.value, this.change.value];
      this.undone.value = this.undone.value.slice(0, -1);
      this.change.value = next;
    });
  }

  readonly force = (tokens: readonly number[], view: View): void => {
    this.apply({ prefix: tokens });
    this.show(view);
  };

  show(view: View): void {
    const session = this.session.value;
    if (session === null) {
      this.startView.value = view;
      writeAddress(this.address(`#/${view}`), true);
      return;
    }
    session.play(false);
    session.setState({ view });
  }

  // asking

  private detail(): TraceDetail {
    const { view } = this;
    return view.value === "walk" ? "steps" : "weights";
  }

  /** Ask the model about what is written; called when anything it reads changes. */
  private ask(): void {
    const subject = this.subject.value;
    const change = this.change.value;
    const detail = this.detail();
    const known = this.answer;
    const answered =
      known?.subject === subject &&
      known.change === change &&
      (detail === "weights" || known.detail === detail);
    if (!answered && this.dragging && this.inFlight?.subject === subject) return; // its answer is shown first
    clearTimeout(this.pause);
    this.request?.abort();
    this.inFlight = null;
    if (answered || subject === null) {
      this.busy.value = false;
      return;
    }
    const wait = this.typed === null ? 0 : TYPING_PAUSE;
    this.busy.value = true;
    this.pause = window.setTimeout(() => void this.fetch(subject, change, detail), wait);
  }

  private async fetch(subject: Subject, change: Change, detail: TraceDetail): Promise<void> {
    const request = new AbortController();
    this.request = request;
    this.inFlight = { subject };
    try {
      const edited = change.edits.length > 0;
      const answer = edited ? await requestWhatIf(subject, change, detail, request.signal) : null;
      const before =
        answer?.before ?? (await requestTrace(subject, { detail, prefix: change.prefix }, request.signal));
      if (request.signal.aborted) return;
      this.answer = { subject, change, detail };
      batch(() => {
        this.online.value = true;
        this.problem.value = null;
        this.busy.value = false;
        this.before.value = before;
        this.answered.value = typeof subject.input === "string" ? subject.input : "";
        this.showTrace(answer?.after ?? before);
      });
      if (this.typed !== null) this.latency.value = performance.now() - this.typed;
      this.typed = null;
      this.inFlight = null;
      if (this.change.peek() !== change) this.ask(); // dragged on
    } catch (error) {
      if (request.signal.aborted) return;
      this.inFlight = null;
      this.failed(error, () => void this.fetch(subject, change, detail));
    }
  }

  private showTrace(trace: Trace): void {
    const session = this.session.value;
    if (session !== null) {
      session.show(trace);
      return;
    }
    const link = location.hash === "" ? `#/${this.startView.value}` : location.hash;
    const opened = new Session(trace, link, (to, push) => writeAddress(this.address(to), push), this.views);
    const state = initialState(link, trace, timelineOf(trace), this.views(trace));
    const tick = /[?&]tick=/.test(link) ? state.tick : longestWord(trace);
    opened.state.value = {
      ...state,
      tick,
      ...(this.views(trace).includes(this.startView.value) ? { view: this.startView.value } : {}),
    };
    this.session.value = opened;
    void opened.recompute();
  }

  /** A server that is gone is asked again, as is one that is busy; other problems are shown. */
  private failed(error: unknown, again: () => void): void {
    if (error instanceof Offline) {
      this.online.value = false;
      this.pause = window.setTimeout(() => void this.reconnect(again), RECONNECT);
    } else if (error instanceof Problem && error.retryAfter !== null) {
      this.pause = window.setTimeout(again, 1000 * error.retryAfter);
    } else {
      batch(() => {
        this.busy.value = false;
        this.problem.value = error instanceof Error ? error.message : String(error);
      });
    }
  }

  private async reconnect(again: () => void): Promise<void> {
    try {
      await send("/health");
      this.online.value = true;
      again();
    } catch (error) {
      if (error instanceof Offline)
        this.pause = window.setTimeout(() => void this.reconnect(again), RECONNECT);
      else again();
    }
  }

  // the address: everything that a link restores

  address(link: string): string {
    const query = new URLSearchParams();
    query.set("model", this.modelName.value);
    if (this.subject.value !== null && this.text.value !== "") query.set("in", this.text.value);
    for (const lane of this.lanes.value ?? []) query.append("lane", formatLane(lane));
    for (const edit of this.edits.value) query.append("edit", formatEdit(edit));
    if (this.prefix.value.length > 0) query.set("prefix", this.prefix.value.join("."));
    return `${link}${link.includes("?") ? "&" : "?"}${query.toString()}`;
  }

  private restore(hash: string): void {
    const query = new URLSearchParams(/\?(.*)$/s.exec(hash)?.[1] ?? "");
    const stored = load();
    const model = query.get("model") ?? stored.model;
    const text = query.get("in");
    const edits = query.getAll("edit").map(parseEdit);
    const prefix = (query.get("prefix") ?? "").split(".").filter((id) => /^\d+$/.test(id));
    batch(() => {
      this.modelName.value = model;
      this.texts.value = { ...stored.texts, ...this.texts.value };
      const lanes = query.getAll("lane").map(parseLane);
      if (lanes.length > 1) this.lanes.value = lanes;
      if (hash !== "") this.startView.value = /^#\/[a-z-]+/.test(hash) ? parseLink(hash).view : "write";
      const known = this.models.value?.find(({ name }) => name === model)?.task;
      if (text !== null) this.pendingText = { text, task: known ?? null };
      this.change.value = {
        edits: edits.filter((edit) => edit !== null),
        prefix: prefix.map(Number),
      };
      this.usePending();
    });
    this.session.value?.open(hash);
  }

  /** The text of a link belongs to the task of its model, which is known once the models are. */
  private pendingText: { text: string; task: string | null } | null = null;

  private usePending(): void {
    const pending = this.pendingText;
    const task = this.models.value?.find(({ name }) => name === this.modelName.value)?.task;
    if (pending === null || task === undefined) return;
    this.pendingText = null;
    this.texts.value = { ...this.texts.value, [task]: pending.text };
  }

  /** Keep the address up to date with what is typed and changed. */
  private keepAddress(): void {
    effect(() => {
      const session = this.session.value;
      void this.change.value;
      void this.text.value;
      void this.lanes.value;
      if (session === null || this.pendingText !== null) return;
      const link = location.hash.split("&model=")[0]!.split("?model=")[0]!;
      writeAddress(this.address(link === "" ? `#/${this.view.value}` : link), false);
    });
  }
}

/** The tick of the longest output word, which is likely to have a meaning of its own. */
function longestWord(trace: Trace): number {
  const { words, tokens } = trace.target;
  const longest = words.reduce((best, word, i) => (word.length > words[best]!.length ? i : best), 0);
  const step = Math.max(
    0,
    tokens.findIndex(({ word }) => word === longest),
  );
  return tickAt(timelineOf(trace), step, 4);
}
