/** The page: its state, its keys, and what is drawn for them. */
import { joined, NOTHING, siteVerdict, type Verdict } from "./check";
import { draw, h, type Children, type Element as Drawn } from "./dom";
import { dark, light } from "./light";
import { FIGURES, VIEWS, format, parse, type State, type View } from "./link";
import { reveal, together } from "./scroll";
import { Arrays } from "./tensor";
import { byWord, clamp, faster, last, pause, place, tickOf, type Line } from "./tick";
import type { Trace } from "./trace";
import { walkable, type Painter, type Pick, type Ui } from "./ui";
import { alignment } from "./views/alignment";
import { help } from "./views/help";
import { history } from "./views/history";
import { photo } from "./views/photo";
import { top } from "./views/top";
import { walk } from "./views/walk";
import { whatIf } from "./views/whatif";

const NAMES: Record<View, string> = {
  walk: "Walk",
  alignment: "Alignment",
  "what-if": "What-if",
  photo: "Photo",
  history: "History",
};
const MAKERS: Record<View, (ui: Ui) => Children> = { walk, alignment, "what-if": whatIf, photo, history };

export class App {
  private readonly arrays: Arrays;
  private readonly line: Line;
  private readonly focused = new Map<string, readonly [number, number]>();
  private painters = new Map<string, Painter>();
  private picks = new Map<string, Pick>();
  private state: State;
  private verdict: Verdict | null = null;
  private timer: number | undefined;

  constructor(
    private readonly root: HTMLElement,
    private readonly trace: Trace,
  ) {
    this.arrays = new Arrays(trace);
    this.line = { steps: trace.steps.length, stages: walkable(trace).length > 0 ? 5 : 1 };
    this.state = this.fitting(parse(location.hash || (root.dataset.start ?? "")));
  }

  start(): void {
    this.draw();
    addEventListener("hashchange", () => {
      this.state = this.fitting(parse(location.hash));
      this.draw();
    });
    document.addEventListener("keydown", (event) => this.key(event));
    for (const type of ["mouseover", "focusin"] as const) {
      this.root.addEventListener(type, (event) => light(this.root, event.target));
    }
    this.root.addEventListener("mouseleave", dark);
    together(this.root);
    this.root.addEventListener("click", (event) => this.click(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    void this.compute();
  }

  /** What is asked for, as far as this trace has it. */
  private fitting(state: State): State {
    const known = this.trace.sites.some((looks) => looks.site === state.site);
    const view = this.views().includes(state.view) ? state.view : "walk";
    return { ...state, view, tick: clamp(this.line, state.tick), site: known ? state.site : null };
  }

  /** A photograph is there only where a picture was read, a history where one was. */
  private views(): View[] {
    const there: Partial<Record<View, boolean>> = {
      photo: this.trace.source.image != null,
      history: this.trace.sites.some((looks) => looks.kind === "history"),
    };
    return VIEWS.filter((view) => there[view] ?? true);
  }

  /** One site after the other, so that the page can be used meanwhile. */
  private async compute(): Promise<void> {
    let verdict = NOTHING;
    for (const looks of this.trace.sites) {
      await new Promise((done) => setTimeout(done));
      verdict = joined(verdict, siteVerdict(this.trace, this.arrays, looks));
    }
    this.verdict = verdict;
    this.draw();
  }

  private readonly go = (change: Partial<State>): void => {
    const before = this.state;
    this.state = this.fitting({ ...before, ...change });
    this.remember(before.view !== this.state.view);
    this.draw();
  };

  /** The address follows; a page inside a notebook may have none of its own. */
  private remember(visited: boolean): void {
    try {
      if (visited) window.history.pushState(null, "", format(this.state));
      else window.history.replaceState(null, "", format(this.state));
    } catch {
      // the state is kept by the page alone
    }
  }

  private readonly play = (on: boolean): void => {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (on) {
      if (this.state.tick === last(this.line)) this.go({ tick: 0 });
      this.wait();
    }
    this.draw();
  };

  private wait(): void {
    this.timer = window.setTimeout(() => {
      this.go({ tick: this.state.tick + 1 });
      if (this.state.tick === last(this.line)) this.play(false);
      else this.wait();
    }, pause(this.state.speed));
  }

  // what is drawn

  private ui(): Ui {
    return {
      trace: this.trace,
      arrays: this.arrays,
      state: this.state,
      line: this.line,
      playing: this.timer !== undefined,
      verdict: this.verdict,
      focused: (grid) => this.focused.get(grid) ?? [0, 0],
      go: this.go,
      play: this.play,
      picks: (grid, pick) => this.picks.set(grid, pick),
      paint: (id, painter) => this.painters.set(id, painter),
    };
  }

  private draw(): void {
    this.painters = new Map();
    this.picks = new Map();
    const ui = this.ui();
    dark();
    draw(
      this.root,
      h("a", { class: "skip", href: "#main", onclick: (event: Event) => this.skip(event) }, "To the figure"),
      top(ui),
      this.tabs(),
      h(
        "main",
        { id: "main", tabindex: -1, "data-view": this.state.view },
        h("div", { class: `view ${this.state.view}` }, MAKERS[this.state.view](ui)),
      ),
      help(),
    );
    this.paint();
    reveal(this.root);
    if (document.activeElement !== null) light(this.root, document.activeElement);
  }

  private skip(event: Event): void {
    event.preventDefault();
    document.getElementById("main")?.focus();
  }

  private tabs(): Drawn {
    return h(
      "nav",
      { class: "tabs", "aria-label": "Views" },
      this.views().map((view) =>
        h(
          "a",
          {
            href: format({ ...this.state, view }),
            "aria-current": view === this.state.view ? "page" : null,
            onclick: (event: Event) => {
              event.preventDefault();
              this.show(view);
            },
          },
          NAMES[view],
        ),
      ),
      h(
        "button",
        { type: "button", id: "help-button", class: "help", onclick: () => this.help() },
        h("span", {}, "Keys and help"),
        h("kbd", { "aria-hidden": "true" }, "?"),
      ),
    );
  }

  private paint(): void {
    for (const canvas of this.root.querySelectorAll<HTMLCanvasElement>("canvas[data-canvas]")) {
      this.painters.get(canvas.dataset.canvas!)?.(canvas);
    }
  }

  private show(view: View): void {
    this.play(false);
    this.go({ view });
  }

  private help(): void {
    document.querySelector<HTMLDialogElement>("#help")?.showModal();
  }

  // keys and clicks

  private click(event: Event): void {
    const cell =
      event.target instanceof Element ? event.target.closest<HTMLElement>("[role=gridcell][data-r]") : null;
    const grid = cell?.closest<HTMLElement>("[data-grid]");
    if (cell && grid) this.pick(grid.dataset.grid!, Number(cell.dataset.r), Number(cell.dataset.c));
  }

  private pick(grid: string, row: number, column: number): void {
    this.focused.set(grid, [row, column]);
    this.picks.get(grid)?.(row, column);
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest("select")) return;
    if (this.gridKey(event, target) || this.plainKey(event, target)) event.preventDefault();
  }

  /** Arrows inside a figure go from cell to cell. */
  private gridKey(event: KeyboardEvent, target: Element): boolean {
    const grid = target.closest<HTMLElement>("[data-grid]");
    if (grid === null || event.shiftKey) return false;
    const [id, rows, columns] = [grid.dataset.grid!, Number(grid.dataset.rows), Number(grid.dataset.columns)];
    const cell = target.closest<HTMLElement>("[data-r]");
    const [row, column] = cell
      ? [Number(cell.dataset.r), Number(cell.dataset.c)]
      : (this.focused.get(id) ?? [0, 0]);
    const moves: Record<string, readonly [number, number]> = {
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      Home: [row, 0],
      End: [row, columns - 1],
    };
    const move = moves[event.key];
    if (event.key === "Enter") {
      if (cell) cell.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      else this.pick(id, row, column);
      return true;
    }
    if (move === undefined) return false;
    const to = [
      Math.max(0, Math.min(rows - 1, move[0])),
      Math.max(0, Math.min(columns - 1, move[1])),
    ] as const;
    this.focused.set(id, to);
    this.draw();
    grid.querySelector<HTMLElement>(`[data-r="${to[0]}"][data-c="${to[1]}"]`)?.focus();
    return true;
  }

  private plainKey(event: KeyboardEvent, target: Element): boolean {
    const { state } = this;
    const always: Record<string, () => void> = {
      "?": () => this.help(),
      n: () => this.go({ numbers: !state.numbers }),
      t: () => this.go({ table: !state.table }),
      m: () => this.go({ figure: FIGURES[(FIGURES.indexOf(state.figure) + 1) % FIGURES.length]! }),
      w: () => this.show("walk"),
      a: () => this.show("alignment"),
      i: () => this.show("what-if"),
      p: () => this.show("photo"),
      h: () => this.show("history"),
    };
    const act =
      always[event.key.toLowerCase()] ?? (state.view === "walk" ? this.walkKey(event, target) : undefined);
    act?.();
    return act !== undefined;
  }

  private walkKey(event: KeyboardEvent, target: Element): (() => void) | undefined {
    const { line } = this;
    const { tick, speed } = this.state;
    if (event.key === " ")
      return target.closest("button,a,summary") ? undefined : () => this.play(this.timer === undefined);
    if (/^[1-5]$/.test(event.key))
      return () => this.go({ tick: tickOf(line, place(line, tick).step, Number(event.key) - 1) });
    const word = event.shiftKey;
    const to: Record<string, number> = {
      ArrowLeft: word ? byWord(line, tick, -1) : tick - 1,
      ArrowRight: word ? byWord(line, tick, 1) : tick + 1,
      Home: 0,
      End: last(line),
    };
    const next = to[event.key];
    if (next !== undefined) return () => this.go({ tick: next });
    if (event.key === "+" || event.key === "=") return () => this.go({ speed: faster(speed, 1) });
    if (event.key === "-") return () => this.go({ speed: faster(speed, -1) });
    return undefined;
  }
}
