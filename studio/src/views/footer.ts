/** Footer: whether the recomputed numbers agree with the recorded ones. */
import { TOLERANCE, isWithinTolerance, largestError, type Errors } from "../check";
import { h, type Children, type VNode } from "../dom";
import { formatDifference } from "../format";
import { t } from "../i18n";
import type { Checks, Trace } from "../trace";
import type { Ui } from "../ui";

/** Whether the numbers of the page can be trusted, for those who want to know. */
export function footer(ui: Ui): VNode {
  const { trace } = ui;
  return h("footer", { class: "proof" }, recomputed(trace, ui.errors), trace.checks && checks(trace.checks));
}

function recomputed(trace: Trace, errors: Errors | null): VNode {
  const status = (name: string, ...content: Children[]): VNode =>
    h("div", { class: name, id: "recomputed", "data-state": name, role: "status" }, content);
  if (trace.sites.length === 0) return status("plain", t("No attention: there are no weights to recompute."));
  if (errors === null) return status("busy", t("Recomputing …"));
  const largest = largestError(errors);
  if (largest === null) return status("plain", t("This trace has nothing to recompute."));
  const kinds = [
    [t("score"), t("scores from their terms"), errors.scores],
    [t("weight"), t("weights from the scores"), errors.weights],
    [t("context"), t("contexts from the weights"), errors.context],
    [t("sum of weights"), t("sums of weights"), errors.rowSum],
  ] as const;
  const parts = kinds.filter(([, , error]) => error !== null);
  const names = parts.map(([name]) => name);
  const all =
    names.length > 1
      ? t("{first} and {last}", { first: names.slice(0, -1).join(", "), last: names.at(-1)! })
      : names[0]!;
  const good = isWithinTolerance(largest);
  return status(
    good ? "good" : "bad",
    h("span", { class: "sign", "aria-hidden": "true" }, good ? "✓ " : "✗ "),
    good
      ? `${t("Every {kinds} on this page was recomputed here from the recorded numbers and matches.", { kinds: all })} `
      : `${t("This page recomputed every {kinds}, and does not agree with the file.", { kinds: all })} `,
    h(
      "span",
      { class: "parts" },
      `${t("Largest difference")} `,
      h("b", { "data-v": String(largest) }, formatDifference(largest)),
      `: ${parts.map(([, from, error]) => `${from} ${formatDifference(error!)}`).join(", ")}.`,
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
    ["row_sum", t("sums of the rows of weights")],
    ["weights", t("weights recomputed from scores")],
    ["context", t("contexts recomputed from weights")],
    ["scores", t("scores recomputed from the model's parameters")],
    ["features", t("features recomputed from the model's parameters")],
    ["output", t("log-probabilities recomputed from the model's parameters")],
  ];
  const facts: [keyof Checks, string][] = [
    ["greedy_is_argmax", t("every greedy choice is the most likely word")],
    ["weights_vary", t("weights differ between steps")],
  ];
  return [
    ...errors.flatMap(([key, name]): CheckResult[] => {
      const value = checks[key];
      if (typeof value !== "number") return [];
      return [{ name, result: formatDifference(value), good: value <= TOLERANCE }];
    }),
    ...facts.flatMap(([key, name]): CheckResult[] => {
      const value = checks[key];
      return typeof value === "boolean" ? [{ name, result: value ? t("yes") : t("no"), good: value }] : [];
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
        ? results.length === 1
          ? t("1 check when recorded: passed")
          : t("{n} checks when recorded: all passed", { n: results.length })
        : t("Checks when recorded: {failed} of {n} failed", { failed, n: results.length }),
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
