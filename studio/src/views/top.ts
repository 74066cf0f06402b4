/** The top of the page: what was read and written, by what, and whether the numbers hold. */
import { TOLERANCE, agrees, largest, type Verdict } from "../check";
import { h, type Children, type Element } from "../dom";
import { count, difference } from "../format";
import { speech } from "../speech";
import type { Checks, Trace } from "../trace";
import type { Ui } from "../ui";

const LONG = 300; // letters: a longer text scrolls, so keys must reach it

export function top(ui: Ui): Element {
  const { trace } = ui;
  return h(
    "header",
    { class: "top" },
    h("h1", {}, "Where did it read from?"),
    h(
      "dl",
      { class: "texts" },
      text("Input", trace.source.text),
      text("Output", trace.target.text),
      trace.target.reference != null && text("Reference", trace.target.reference),
    ),
    h("p", { class: "facts" }, facts(trace).join(" · ")),
    trace.edits.length > 0 &&
      h("p", { class: "edits" }, `✎ Changed by hand: ${trace.edits.map(editSaid).join("; ")}.`),
    h("div", { class: "proof" }, recomputed(trace, ui.verdict), trace.checks && checks(trace.checks)),
    h("p", { class: "honest" }, `Weights say where the model read from, never why ${speech(trace).why}.`),
  );
}

function text(name: string, value: string): Children {
  return [h("dt", {}, name), h("dd", { dir: "auto", tabindex: value.length > LONG ? 0 : null }, value)];
}

function facts(trace: Trace): string[] {
  const { method, beam } = trace.decode as { method?: string; beam?: number };
  const ways: Record<string, string> = {
    greedy: speech(trace).one === "label" ? "the likeliest label" : "greedy: always the likeliest next word",
    beam: `beam search, ${beam ?? "several"} at a time`,
    sample: "words drawn by chance",
    forced: "the output was given",
    ranking: "items by their score, best first",
  };
  const { parameters } = trace.model;
  return [
    `model ${trace.model.name}`,
    ...(method === undefined ? [] : [ways[method] ?? method]),
    ...(parameters == null ? [] : [`${count(parameters)} parameters`]),
  ];
}

function editSaid(edit: Trace["edits"][number]): string {
  const parts = [
    edit.step == null ? null : `step ${edit.step}`,
    edit.head == null ? null : `head ${edit.head}`,
    edit.position == null ? null : `position ${edit.position}`,
    edit.value == null ? null : `weight ${edit.value}`,
    edit.text == null ? null : `“${edit.text}”`,
    edit.site == null ? null : `at ${edit.site}`,
  ].filter((part) => part !== null);
  return [edit.op, ...parts].join(" ");
}

function recomputed(trace: Trace, verdict: Verdict | null): Element {
  const state = (name: string, ...inside: Children[]): Element =>
    h("div", { class: `badge ${name}`, id: "recomputed", "data-state": name, role: "status" }, inside);
  if (trace.sites.length === 0) return state("plain", "No attention: there are no weights to recompute.");
  if (verdict === null) return state("busy", "Recomputing …");
  const value = largest(verdict);
  if (value === null) return state("plain", "This trace has nothing that could be recomputed.");
  const parts = [
    verdict.score !== null && `scores ${difference(verdict.score)}`,
    verdict.softmax !== null && `weights from scores ${difference(verdict.softmax)}`,
    verdict.context !== null && `context from weights ${difference(verdict.context)}`,
    verdict.sum !== null && `sums of weights ${difference(verdict.sum)}`,
  ].filter((part) => part !== false);
  const good = agrees(value);
  return state(
    good ? "good" : "bad",
    h("span", { class: "sign", "aria-hidden": "true" }, good ? "✓" : "✗"),
    h(
      "b",
      { "data-v": String(value) },
      ` Recomputed here, ${good ? "" : "does not agree: "}largest difference ${difference(value)}`,
    ),
    h("span", { class: "parts" }, ` (${parts.join(", ")})`),
  );
}

/** Each check of the trace in words: its name, what was found, and whether it is as it should be. */
function told(checks: Checks): [string, string, boolean][] {
  const numbers: [keyof Checks, string][] = [
    ["row_sum", "weights of a word sum to what they should"],
    ["softmax", "scores give the weights"],
    ["context", "weights give the context"],
    ["score", "the model's matrices give the scores, in plain loops"],
    ["said", "and what is compared with the words"],
    ["output", "and the probabilities"],
  ];
  const truths: [keyof Checks, string][] = [
    ["top_first", "every word written was the likeliest"],
    ["moving", "different words look at different places"],
  ];
  return [
    ...numbers.flatMap(([key, name]): [string, string, boolean][] => {
      const value = checks[key];
      return typeof value === "number" ? [[name, difference(value), value <= TOLERANCE]] : [];
    }),
    ...truths.flatMap(([key, name]): [string, string, boolean][] => {
      const value = checks[key];
      return typeof value === "boolean" ? [[name, value ? "yes" : "no", value]] : [];
    }),
  ];
}

function checks(found: Checks): Element | null {
  const all = told(found);
  if (all.length === 0) return null;
  const failed = all.filter(([, , good]) => !good).length;
  return h(
    "details",
    { class: "checks" },
    h(
      "summary",
      {},
      failed === 0
        ? `${all.length} ${all.length === 1 ? "check" : "checks"} made when it was recorded: all good`
        : `Checks made when it was recorded: ${failed} of ${all.length} not as expected`,
    ),
    h(
      "ul",
      {},
      all.map(([name, value, good]) =>
        h(
          "li",
          { class: good ? "good" : "bad" },
          h("span", { "aria-hidden": "true" }, good ? "✓ " : "✗ "),
          `${name}: `,
          h("b", {}, value),
        ),
      ),
    ),
  );
}
