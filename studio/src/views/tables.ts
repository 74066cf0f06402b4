/** The tables behind the Walk: every number, and every number of every vector. */
import type { Children } from "../dom";
import { twin } from "../figures/table";
import { bare, piece, quoted } from "../format";
import type { Moment } from "../moment";
import { axesOf, speech } from "../speech";
import type { Ui } from "../ui";

export function momentTables(ui: Ui, moment: Moment): Children {
  const { scores, weights, again, open, reads, step } = moment;
  const word = quoted(piece(ui.trace.target, step));
  const pairs = twin({
    caption: `Scores and weights when ${word} was written`,
    corner: axesOf(ui.trace, moment.looks).reads[0],
    columns: ["score", "weight", "weight, recomputed here"],
    rows: reads.tokens.map((_, i) => ({
      label: piece(reads, i),
      values: [scores === null || !open[i] ? null : scores[i]!, weights[i]!, again.weights?.[i] ?? null],
    })),
  });
  return [pairs, wordTable(ui, step), vectors(ui, moment, word)];
}

export function wordTable(ui: Ui, step: number): Children {
  const { top } = ui.trace.steps[step]!;
  if (top.length === 0) return null;
  return twin({
    caption: `Likely ${speech(ui.trace).one}s at step ${step + 1}`,
    corner: speech(ui.trace).one,
    columns: ["probability", "its logarithm"],
    rows: top.map((one) => ({ label: bare(one), values: [Math.exp(one.logp), one.logp] })),
  });
}

function vectors(ui: Ui, moment: Moment, word: string): Children {
  const { query, keys, values, context, chosen, step, reads } = moment;
  const read = quoted(piece(reads, chosen));
  const known: [string, ArrayLike<number> | null][] = [
    ["q, what asks", query],
    [`k of ${read}`, keys?.[chosen] ?? null],
    [`v of ${read}`, values?.[chosen] ?? null],
    ["c, the mixture", context],
    ["c, recomputed here", moment.again.mixed],
    ...Object.entries(ui.trace.combine)
      .filter(([name]) => name !== "gate")
      .map(([name, tensor]): [string, ArrayLike<number>] => [
        `${name}, combined`,
        ui.arrays.row(tensor, step),
      ]),
  ];
  const found = known.filter((pair): pair is [string, ArrayLike<number>] => pair[1] !== null);
  if (found.length === 0) return null;
  const longest = Math.max(...found.map(([, numbers]) => numbers.length));
  return twin({
    caption: `Vectors when ${word} was written, number by number`,
    corner: "number",
    columns: found.map(([name]) => name),
    rows: Array.from({ length: longest }, (_, d) => ({
      label: String(d + 1),
      values: found.map(([, numbers]) => numbers[d] ?? null),
    })),
  });
}
