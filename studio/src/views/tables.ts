/** The tables of the Walk: every number of a step, and every number of its vectors. */
import { t } from "../i18n";
import type { StepDetail } from "../detail";
import type { Children } from "../dom";
import { dataTable } from "../figures/table";
import { quote, tokenText, withoutMarker } from "../format";
import { siteNouns, taskWords } from "../nouns";
import type { Ui } from "../ui";

export function stepTables(ui: Ui, detail: StepDetail): Children {
  const { scores, weights, recomputed, allowed, keySide, step } = detail;
  const word = quote(tokenText(ui.trace.target, step));
  const attention = dataTable({
    caption: t("Scores and weights of {word}", { word }),
    corner: siteNouns(ui.trace, detail.record).key[0],
    columns: [t("score"), t("weight"), t("weight, recomputed")],
    rows: keySide.tokens.map((_, i) => ({
      label: tokenText(keySide, i),
      values: [
        scores === null || !allowed[i] ? null : scores[i]!,
        weights[i]!,
        recomputed.weights?.[i] ?? null,
      ],
    })),
  });
  return [attention, outputTable(ui, step), vectorTable(ui, detail, word)];
}

export function outputTable(ui: Ui, step: number): Children {
  const { top } = ui.trace.steps[step]!;
  if (top.length === 0) return null;
  const { output, outputs } = taskWords(ui.trace);
  return dataTable({
    caption: t("Most likely {outputs} at step {n}", { outputs, n: step + 1 }),
    corner: output,
    columns: [t("probability"), t("log-probability")],
    rows: top.map((candidate) => ({
      label: withoutMarker(candidate),
      values: [Math.exp(candidate.logp), candidate.logp],
    })),
  });
}

function vectorTable(ui: Ui, detail: StepDetail, word: string): Children {
  const { query, keys, values, context, position, step, keySide, recomputed } = detail;
  const key = quote(tokenText(keySide, position));
  const all: [string, ArrayLike<number> | null][] = [
    [`q, ${t("query")}`, query],
    [t("{symbol} of {word}", { symbol: "k", word: key }), keys?.[position] ?? null],
    [t("{symbol} of {word}", { symbol: "v", word: key }), values?.[position] ?? null],
    [`c, ${t("context")}`, context],
    [`c, ${t("recomputed")}`, recomputed.context],
    ...Object.entries(ui.trace.intermediates)
      .filter(([name]) => name !== "copy_gate")
      .map(([name, tensor]): [string, ArrayLike<number>] => [
        t("{name} (read-out)", { name }),
        ui.arrays.row(tensor, step),
      ]),
  ];
  const vectors = all.filter((pair): pair is [string, ArrayLike<number>] => pair[1] !== null);
  if (vectors.length === 0) return null;
  const longest = Math.max(...vectors.map(([, numbers]) => numbers.length));
  return dataTable({
    caption: t("Vectors of {word}", { word }),
    corner: t("dimension"),
    columns: vectors.map(([name]) => name),
    rows: Array.from({ length: longest }, (_, d) => ({
      label: String(d + 1),
      values: vectors.map(([, numbers]) => numbers[d] ?? null),
    })),
  });
}
