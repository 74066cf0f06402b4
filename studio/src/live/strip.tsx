/** The faithfulness strip: does the look of this very decision matter? */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { bar } from "../figures/list";
import { formatNumber, tokenText } from "../format";
import { t, type Text } from "../i18n";
import { positionName } from "../regions";
import { positionAt } from "../timeline";
import type { SiteRecord, Trace } from "../trace";
import { findSite, findWalkableSite, stepWeights, validHead, type Ui } from "../ui";
import { rankOf, runTests, type Decision, type Outcome } from "./faithfulness";
import { pairSite } from "./pair";
import { isOn, turn } from "./storage";
import type { Studio } from "./store";

const PAUSE = 350; // milliseconds of rest before the model is asked
const NAME = "strip";

interface Done {
  readonly trace: Trace;
  readonly step: number;
  readonly outcomes: readonly Outcome[];
}

const opened = signal(isOn(NAME));
const shown = signal<Done | null>(null);
let wanted: { trace: Trace; step: number } | null = null;
let request: AbortController | null = null;
let pause: number | undefined;

export function strip(studio: Studio, ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  const record = testedSite(trace, state.site);
  const subject = studio.subject.value;
  if (record === null || subject === null) return null;
  const { step } = positionAt(ui.timeline, state.tick);
  const weights = stepWeights(ui, record)[step] ?? [];
  const top = weights.indexOf(Math.max(...weights));
  const done = shown.value;
  const ready = done !== null && done.trace === trace && done.step === step;
  const idle = !(Math.max(...weights) > 0);
  if (opened.value && !idle && !ready && (wanted?.trace !== trace || wanted.step !== step)) {
    wanted = { trace, step };
    clearTimeout(pause);
    request?.abort();
    const head = validHead(record, state.head);
    pause = window.setTimeout(() => void run({ subject, trace, step, record, head, top }), PAUSE);
  }
  const toggle = (): void => {
    wanted = null;
    opened.value = !opened.value;
    turn(NAME, opened.value);
  };
  return (
    <section class="matter" aria-labelledby="strip-title" data-ready={String(ready)}>
      <h2 id="strip-title">
        <button type="button" id="strip-toggle" aria-expanded={opened.value} onClick={toggle}>
          {t("Does this look matter?")}
        </button>
      </h2>
      {!opened.value ? (
        <p class="letters">
          {t("Tests one decision: with equal and shuffled weights, and without what it looked at most.")}
        </p>
      ) : idle ? (
        <p class="letters">{t("This step looks at nothing, so there is nothing to test.")}</p>
      ) : (
        <Tests trace={trace} step={step} top={top} outcomes={ready ? done.outcomes : null} />
      )}
    </section>
  );
}

/** The site whose weights decide: over the input, over earlier words, or over a history. */
function testedSite(trace: Trace, site: string | null): SiteRecord | null {
  if (trace.sites.length === 0) return null;
  if (trace.model.task === "read") return findWalkableSite(trace, site);
  return trace.model.task === "recommend" ? findSite(trace, null) : pairSite(trace, site);
}

interface TestsProps {
  readonly trace: Trace;
  readonly step: number;
  readonly top: number;
  readonly outcomes: readonly Outcome[] | null; // null: not known yet
}

function Tests({ trace, step, top, outcomes }: TestsProps) {
  const scored = trace.model.task === "recommend";
  const { logp } = trace.steps[step]!;
  const value = scored ? logp : Math.exp(logp);
  const word = tokenText(trace.target, step);
  const all = [value, ...(outcomes ?? []).map((one) => one.value ?? 0)];
  const largest = scored ? Math.max(...all.map(Math.abs), 1e-9) : 1;
  const own: Outcome = {
    name: "as it is",
    value,
    best: scored ? `${rankOf(trace, step)}.` : word,
    changed: false,
  };
  return (
    <>
      <p class="letters">
        {t(
          scored
            ? "Score and rank of “{word}”. It looked most at {place}."
            : "Probability of “{word}”, and the most likely token. It looked most at {place}.",
          {
            word,
            place: positionName(trace.source, top),
          },
        )}
      </p>
      <ul class="tests">
        {[own, ...(outcomes ?? [])].map((one) => (
          <Row key={one.name} outcome={one} largest={largest} />
        ))}
        {outcomes === null && (
          <li key="wait" class="activity busy">
            {t("Working …")}
          </li>
        )}
      </ul>
      <p class="letters" id="strip-summary" role="status">
        {outcomes === null ? "" : summary(outcomes, value, word, scored)}
      </p>
    </>
  );
}

function Row({ outcome, largest }: { readonly outcome: Outcome; readonly largest: number }) {
  const { name, value, best, changed } = outcome;
  return (
    <li class={changed ? "test changed" : "test"}>
      <span>{t(name)}</span>
      {bar(Math.max(0, value ?? 0), largest)}
      <span class="n" data-v={value === null ? undefined : String(value)}>
        {value === null ? t("too small to be listed") : formatNumber(value)}
      </span>
      <b dir="auto">{best}</b>
    </li>
  );
}

function summary(outcomes: readonly Outcome[], value: number, word: string, scored: boolean): string {
  const changed = outcomes.filter((one) => one.changed).length;
  if (changed > 0) {
    const text: Text = scored
      ? "For “{word}” the weights matter: in {n} of {all} tests its rank changes."
      : "For “{word}” the weights matter: in {n} of {all} tests another token becomes the most likely.";
    return t(text, { word, n: changed, all: outcomes.length });
  }
  if (scored) return t("For “{word}” the weights hardly matter: its rank stays the same.", { word });
  const largest = Math.max(...outcomes.map((one) => value - (one.value ?? 0)));
  return largest > 0.1
    ? t("For “{word}” the weights matter somewhat: its probability falls by up to {amount}.", {
        word,
        amount: formatNumber(largest, 2),
      })
    : t("For “{word}” the weights hardly matter: the model would write it anyway.", { word });
}

async function run(decision: Decision): Promise<void> {
  const { trace, step } = decision;
  request = new AbortController();
  try {
    const outcomes = await runTests(decision, request.signal);
    if (wanted?.trace === trace && wanted.step === step) shown.value = { trace, step, outcomes };
  } catch {
    // cancelled, or the server is away: asked again when the step changes
  }
}
