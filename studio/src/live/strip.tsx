/** The faithfulness strip: does the look of this very decision matter? */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { bar } from "../figures/list";
import { formatNumber, tokenText } from "../format";
import { t, type Text } from "../i18n";
import { positionAt } from "../timeline";
import type { Edit, Trace } from "../trace";
import { validHead, type Ui } from "../ui";
import { postJson, requestWhatIf, type Subject, type WhatIf } from "./api";
import { pairSite } from "./pair";
import type { Studio } from "./store";

const PAUSE = 350; // milliseconds of rest before the model is asked
const TOP = 100; // tokens of which the probabilities are known

interface Outcome {
  readonly name: Text;
  readonly p: number | null; // of the same token; null: less likely than all that are known
  readonly best: string; // most likely token then
  readonly changed: boolean;
}

interface Test {
  readonly trace: Trace;
  readonly step: number;
  readonly outcomes: readonly Outcome[];
}

const opened = signal(false);
const shown = signal<Test | null>(null);
let wanted: { trace: Trace; step: number } | null = null;
let request: AbortController | null = null;
let pause: number | undefined;

export function strip(studio: Studio, ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  const record = pairSite(trace, state.site);
  const subject = studio.subject.value;
  if (record === null || subject === null || trace.model.task === "recommend") return null;
  const { step } = positionAt(ui.timeline, state.tick);
  const test = shown.value;
  const ready = test !== null && test.trace === trace && test.step === step;
  if (opened.value && !ready && (wanted?.trace !== trace || wanted.step !== step)) {
    wanted = { trace, step };
    clearTimeout(pause);
    request?.abort();
    pause = window.setTimeout(
      () => void run(subject, trace, step, record.site, validHead(record, state.head)),
      PAUSE,
    );
  }
  const word = tokenText(trace.target, step);
  const p = Math.exp(trace.steps[step]!.logp);
  return (
    <section class="matter" aria-labelledby="strip-title" data-ready={String(ready)}>
      <h2 id="strip-title">
        <button
          type="button"
          id="strip-toggle"
          aria-expanded={opened.value}
          onClick={() => {
            wanted = null;
            opened.value = !opened.value;
          }}
        >
          {t("Does this look matter?")}
        </button>
      </h2>
      {!opened.value ? (
        <p class="letters">
          {t("Tests the weights of one step: equal, shuffled, and without the word that has most of them.")}
        </p>
      ) : (
        <>
          <ul class="tests" aria-live="polite">
            <Row label={t("as it is")} p={p} text={word} changed={false} />
            {ready
              ? test.outcomes.map(({ name, p: after, best, changed }) => (
                  <Row key={name} label={t(name)} p={after} text={best} changed={changed} />
                ))
              : [<li key="wait">{t("Working …")}</li>]}
          </ul>
          <p class="letters" id="strip-summary">
            {ready ? summary(test, p, word) : ""}
          </p>
        </>
      )}
    </section>
  );
}

function Row({
  label,
  p,
  text,
  changed,
}: {
  label: string;
  p: number | null;
  text: string;
  changed: boolean;
}) {
  return (
    <li class={changed ? "test changed" : "test"}>
      <span>{label}</span>
      {bar(p ?? 0, 1)}
      <span class="n" data-v={p === null ? undefined : String(p)}>
        {p === null ? t("below the top {n}", { n: TOP }) : formatNumber(p)}
      </span>
      <b dir="auto">{text}</b>
    </li>
  );
}

function summary(test: Test, p: number, word: string): string {
  const changed = test.outcomes.filter((one) => one.changed).length;
  if (changed > 0)
    return t(
      "For “{word}” the weights matter: in {n} of {all} tests another token becomes the most likely.",
      {
        word,
        n: changed,
        all: test.outcomes.length,
      },
    );
  const largest = Math.max(...test.outcomes.map((one) => p - (one.p ?? 0)));
  return largest > 0.1
    ? t("For “{word}” the weights matter somewhat: its probability falls by up to {amount}.", {
        word,
        amount: formatNumber(largest, 2),
      })
    : t("For “{word}” the weights hardly matter: the model would write it anyway.", { word });
}

async function run(
  subject: Subject,
  trace: Trace,
  step: number,
  site: string,
  head: number | null,
): Promise<void> {
  request = new AbortController();
  const prefix = trace.target.tokens.slice(0, step).map(({ id }) => id!);
  const where = { ...(trace.sites.length > 1 ? { site } : {}), ...(head === null ? {} : { head }), step };
  const top = topPosition(trace, site, step);
  const edits: [Text, Edit][] = [
    ["equal weights", { op: "uniform", ...where } as Edit],
    ["shuffled weights", { op: "permute", ...where } as Edit],
    ["without the word looked at most", { op: "zero", ...where, position: top } as Edit],
  ];
  const token = trace.target.tokens[step]!;
  try {
    const outcomes: Outcome[] = [];
    for (const [name, edit] of edits) {
      const change = { edits: [...trace.edits.filter(({ op }) => op !== "prefix"), edit], prefix };
      const { after } = await ask(subject, change, request.signal);
      const candidates = after.steps[step]?.top ?? [];
      const same = candidates.find((one) =>
        token.id == null ? one.text === token.text : one.id === token.id,
      );
      const best = after.target.tokens[step];
      const likeliest = candidates[0];
      outcomes.push({
        name,
        p: same === undefined ? null : Math.exp(same.logp),
        best: best === undefined ? "–" : tokenText(after.target, step),
        changed:
          likeliest !== undefined && likeliest.text !== (trace.steps[step]!.top[0]?.text ?? token.text),
      });
    }
    if (wanted?.trace === trace && wanted.step === step) shown.value = { trace, step, outcomes };
  } catch {
    // cancelled, or the server is away: asked again when the step changes
  }
}

async function ask(
  subject: Subject,
  change: { edits: readonly Edit[]; prefix: readonly number[] },
  signal: AbortSignal,
): Promise<WhatIf> {
  if (subject.input instanceof Blob || typeof subject.input !== "string")
    return requestWhatIf(subject, change, "weights", signal);
  return postJson<WhatIf>(
    "/v1/whatif",
    { ...subject, ...change, detail: "weights", top_k: TOP, options: {} },
    signal,
  );
}

function topPosition(trace: Trace, site: string, step: number): number {
  const record = trace.sites.find((one) => one.site === site)!;
  const tensor = trace.tensors[record.weights]!;
  const [, heads = 1, keys = 1] = tensor.shape;
  const bytes = Uint8Array.from(atob(tensor.data), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const weight = (key: number): number => {
    let sum = 0;
    for (let head = 0; head < heads; head++)
      sum += view.getFloat32(4 * ((step * heads + head) * keys + key), true);
    return sum;
  };
  let best = 0;
  for (let key = 1; key < keys; key++) if (weight(key) > weight(best)) best = key;
  return best;
}
