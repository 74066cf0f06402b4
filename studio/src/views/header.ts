/** Header and footer of the page: input, output and model; whether the recomputed numbers agree. */
import { TOLERANCE, isWithinTolerance, largestError, type Errors } from "../check";
import { h, type Children, type VNode } from "../dom";
import { formatCount, formatDifference } from "../format";
import { taskWords } from "../nouns";
import type { Checks, Trace } from "../trace";
import type { Ui } from "../ui";

const MAX_LETTERS = 300; // of a text that is shown as a whole; a longer one can be unfolded

export function header(ui: Ui): VNode {
  const { trace } = ui;
  const largest = ui.errors === null ? null : largestError(ui.errors);
  return h(
    "header",
    { class: "top" },
    h("h1", {}, "Attention trace"),
    h(
      "dl",
      { class: "texts" },
      trace.model.task === "read"
        ? text("Text", trace.source.text)
        : [text("Input", trace.source.text), text("Output", trace.target.text)],
      trace.target.reference != null && text("Reference", trace.target.reference),
    ),
    h("p", { class: "facts" }, facts(trace).join(" · ")),
    trace.edits.length > 0 &&
      h("p", { class: "edits" }, `✎ Edited: ${trace.edits.map(editText).join("; ")}.`),
    h(
      "p",
      { class: "caveat" },
      `Weights show where the model attended. They do not explain why ${taskWords(trace).caveat}.`,
    ),
    largest !== null &&
      !isWithinTolerance(largest) &&
      h(
        "p",
        { class: "badge bad", id: "warning" },
        "✗ Numbers of this file do not agree with each other; see the end of the page.",
      ),
  );
}

/** Whether the numbers of the page can be trusted, for those who want to know. */
export function footer(ui: Ui): VNode {
  const { trace } = ui;
  return h("footer", { class: "proof" }, recomputed(trace, ui.errors), trace.checks && checks(trace.checks));
}

function text(name: string, value: string): Children {
  return [
    h("dt", {}, name),
    h("dd", { dir: "auto" }, value.length > MAX_LETTERS ? foldedText(value) : value),
  ];
}

/** The beginning of a long text, and the rest on demand. */
function foldedText(value: string): VNode {
  const start = Array.from(value)
    .slice(0, MAX_LETTERS)
    .join("")
    .replace(/\s+\S*$/u, "");
  return h(
    "details",
    { class: "folded" },
    h(
      "summary",
      {},
      h("span", { class: "start" }, `${start} … `),
      h(
        "span",
        { class: "toggle-text" },
        h("span", { class: "when-closed" }, "more"),
        h("span", { class: "when-open" }, "less"),
      ),
    ),
    h("div", { class: "rest" }, value),
  );
}

function facts(trace: Trace): string[] {
  const { method, beam } = trace.decoding as { method?: string; beam?: number };
  const methods: Record<string, string> = {
    greedy: taskWords(trace).output === "label" ? "the most likely label" : "greedy decoding",
    beam: beam === undefined ? "beam search" : `beam search, beam size ${beam}`,
    sample: "sampling",
    forced:
      trace.model.task === "read" ? "reads the text word by word" : "forced decoding: the output was given",
    ranking: "items ranked by score",
  };
  const { parameters } = trace.model;
  return [
    `model ${trace.model.name}`,
    ...(method === undefined ? [] : [methods[method] ?? method]),
    ...(parameters == null ? [] : [`${formatCount(parameters)} parameters`]),
  ];
}

function editText(edit: Trace["edits"][number]): string {
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

function recomputed(trace: Trace, errors: Errors | null): VNode {
  const status = (name: string, ...content: Children[]): VNode =>
    h("div", { class: name, id: "recomputed", "data-state": name, role: "status" }, content);
  if (trace.sites.length === 0) return status("plain", "No attention: there are no weights to recompute.");
  if (errors === null) return status("busy", "Recomputing …");
  const largest = largestError(errors);
  if (largest === null) return status("plain", "This trace has nothing to recompute.");
  const kinds = [
    ["score", "from their terms", errors.scores],
    ["weight", "from the scores", errors.weights],
    ["context", "from the weights", errors.context],
    ["sum of weights", "", errors.rowSum],
  ] as const;
  const parts = kinds.filter(([, , error]) => error !== null);
  const names = parts.map(([name]) => name);
  const all = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]!;
  const good = isWithinTolerance(largest);
  return status(
    good ? "good" : "bad",
    h("span", { class: "sign", "aria-hidden": "true" }, good ? "✓ " : "✗ "),
    good
      ? `Every ${all} on this page was recomputed here from the recorded numbers and matches. `
      : `This page recomputed every ${all}, and does not agree with the file. `,
    h(
      "span",
      { class: "parts" },
      "Largest difference ",
      h("b", { "data-v": String(largest) }, formatDifference(largest)),
      `: ${parts.map(([name, from, error]) => `${name}s${from === "" ? "" : ` ${from}`} ${formatDifference(error!)}`.replace("sum of weightss", "sums of weights")).join(", ")}.`,
    ),
  );
}

interface CheckResult {
  readonly name: string;
  readonly result: string;
  readonly good: boolean;
}

function checkResults(checks: Checks): CheckResult[] {
  const errors: [keyof Checks, string][] = [
    ["row_sum", "sums of the rows of weights"],
    ["weights", "weights recomputed from scores"],
    ["context", "contexts recomputed from weights"],
    ["scores", "scores recomputed from the model's parameters"],
    ["features", "features recomputed from the model's parameters"],
    ["output", "log-probabilities recomputed from the model's parameters"],
  ];
  const facts: [keyof Checks, string][] = [
    ["greedy_is_argmax", "every greedy choice is the most likely word"],
    ["weights_vary", "weights differ between steps"],
  ];
  return [
    ...errors.flatMap(([key, name]): CheckResult[] => {
      const value = checks[key];
      if (typeof value !== "number") return [];
      return [{ name, result: formatDifference(value), good: value <= TOLERANCE }];
    }),
    ...facts.flatMap(([key, name]): CheckResult[] => {
      const value = checks[key];
      return typeof value === "boolean" ? [{ name, result: value ? "yes" : "no", good: value }] : [];
    }),
  ];
}

function checks(recorded: Checks): VNode | null {
  const results = checkResults(recorded);
  if (results.length === 0) return null;
  const failed = results.filter(({ good }) => !good).length;
  return h(
    "details",
    { class: "checks" },
    h(
      "summary",
      {},
      failed === 0
        ? `${results.length} ${results.length === 1 ? "check" : "checks"} when recorded: all passed`
        : `Checks when recorded: ${failed} of ${results.length} failed`,
    ),
    h(
      "ul",
      {},
      results.map(({ name, result, good }) =>
        h(
          "li",
          { class: good ? "good" : "bad" },
          h("span", { "aria-hidden": "true" }, good ? "✓ " : "✗ "),
          `${name}: `,
          h("b", {}, result),
        ),
      ),
    ),
  );
}
