/** The first three lanes of the Walk: scores, weights, context. */
import { askerOf } from "../check";
import { h, type Children } from "../dom";
import { bar, list, type Row } from "../figures/list";
import { size, strip, vector } from "../figures/vector";
import { count, difference, number, piece, quoted } from "../format";
import {
  contextNumbers,
  contextRule,
  scoreNumbers,
  scoreRule,
  shiftSaid,
  weightNumbers,
  weightRule,
} from "../formulas";
import type { Moment } from "../moment";
import { readIn, speech } from "../speech";
import type { Ui } from "../ui";
import { badge } from "./badge";

export interface Lane {
  readonly title: string;
  readonly what: Children; // in words
  readonly rules: Children; // the formula
  readonly numbers: Children; // the formula with numbers
  readonly body: Children;
  readonly foot: Children;
}

export const MORE =
  "This trace holds weights only. One made with --detail steps (or full, for every place in the model) has these numbers.";
const LEAST = 0.01; // lighter vectors are too flat to be drawn

function rowsOf(
  ui: Ui,
  moment: Moment,
  make: (i: number) => Pick<Row, "said" | "cell" | "attributes">,
): Row[] {
  return moment.reads.tokens.map((_, i) => ({
    label: piece(moment.reads, i),
    marks: [i === moment.chosen && "chosen", !moment.open[i] && "closed"].filter(Boolean).join(" "),
    click: () => ui.go({ position: i }),
    ...make(i),
  }));
}

/** What is read, in words. */
const noun = ({ trace }: Ui, { looks }: Moment): string =>
  looks.reads === "target" ? "output place so far" : readIn(trace)[0];

export const value = (amount: number, text = number(amount)): Children =>
  h("span", { class: "n", "data-v": String(amount) }, text);
const closed = (why: string): Children => h("span", { class: "n none" }, why);

export function scoreLane(ui: Ui, moment: Moment): Lane {
  const { scores, inside, open, query, keys, chosen, reads } = moment;
  const rule = scoreRule(moment);
  const word = piece(reads, chosen);
  const scale =
    scores === null ? 1 : Math.max(...Array.from(scores, (score, i) => (inside[i] ? Math.abs(score) : 0)));
  const rows =
    scores === null
      ? []
      : rowsOf(ui, moment, (i) => ({
          said: inside[i] ? `score ${number(scores[i]!)}` : "not read",
          cell: inside[i]
            ? [bar(scores[i]!, scale, true), value(scores[i]!)]
            : closed(open[i] ? "outside" : "not read"),
          attributes: { "data-id": `e${i}`, "data-from": `q k${i}` },
        }));
  return {
    title: "Score",
    what: `How well does each ${noun(ui, moment)} ${speech(ui.trace).asks}?`,
    rules: rule && [rule.rule, h("p", { class: "letters" }, rule.what)],
    numbers: scoreNumbers(moment, word),
    body:
      scores === null
        ? h("p", { class: "note" }, MORE)
        : list(ui, "scores", `Scores, one for each ${noun(ui, moment)}`, rows),
    foot: [
      query && vector({ id: "q", letter: "q", what: `what asks: ${askerOf(ui.trace)}`, values: query }),
      keys &&
        vector({
          id: `k${chosen}`,
          letter: "k",
          what: `${quoted(word)} as it was read`,
          values: keys[chosen]!,
        }),
      moment.again.score !== null && badge(moment.again.score, ""),
      moment.again.score === null &&
        ui.trace.checks?.score != null &&
        h(
          "p",
          { class: "badge plain" },
          `From the model's own matrices, when recorded: largest difference ${difference(ui.trace.checks.score)}`,
        ),
    ],
  };
}

const TITLES: Record<string, string> = {
  softmax: "Softmax",
  "smoothed-softmax": "Smoothed softmax",
  sparsemax: "Sparsemax",
  entmax15: "Entmax",
};

export function softmaxLane(ui: Ui, moment: Moment): Lane {
  const { weights, open, inside, chosen, reads, how } = moment;
  const sum = Array.from(weights).reduce((a, b) => a + b, 0);
  const rule = moment.scores === null ? null : weightRule(moment);
  const shift = moment.byHand ? null : shiftSaid(moment);
  const rows = rowsOf(ui, moment, (i) => ({
    said: open[i] ? `weight ${number(weights[i]!)}` : "not read",
    cell:
      open[i] && (inside[i] || weights[i]! > 0)
        ? [bar(weights[i]!, 1), value(weights[i]!)]
        : closed(open[i] ? "outside" : "not read"),
    attributes: {
      "data-id": `a${i}`,
      "data-from": weights.length > 200 ? `e${i}` : Array.from(weights, (_, j) => `e${j}`).join(" "),
    },
  }));
  return {
    title: how.placement === "uniform" ? "Uniform" : (TITLES[how.normaliser] ?? "Softmax"),
    what: `Scores become weights: how much of each ${noun(ui, moment)} is read.`,
    rules: rule && [rule.rule, h("p", { class: "letters" }, rule.what)],
    numbers: [
      weightNumbers(moment, piece(reads, chosen)),
      shift !== null &&
        h(
          "p",
          { class: "letters" },
          "Scores are counted from the highest, ",
          value(shift),
          ": the weights stay the same.",
        ),
    ],
    body: list(ui, "weights", `Weights, one for each ${noun(ui, moment)}`, rows),
    foot: [
      h("p", { class: "sum" }, "sum ", value(sum)),
      moment.byHand
        ? h("p", { class: "badge plain" }, "✎ Set by hand at this step: not compared with the scores.")
        : badge(moment.again.softmax, "No scores in this trace: the weights are taken as they are."),
    ],
  };
}

export function contextLane(ui: Ui, moment: Moment): Lane {
  const { weights, values, context, again, open } = moment;
  const scale = values === null ? 1 : Math.max(...values.map(size));
  const rows =
    values === null
      ? []
      : rowsOf(ui, moment, (i) => ({
          said: `${number(weights[i]!)} times ${count(values[i]!.length)} numbers`,
          cell: !open[i]
            ? closed("not read")
            : [
                h(
                  "span",
                  { class: weights[i]! >= LEAST ? "n times" : "n times light" },
                  `${number(weights[i]!)} ×`,
                ),
                weights[i]! >= LEAST
                  ? strip(values[i]!, scale, weights[i]!)
                  : h("span", { class: "blank", "aria-hidden": "true" }),
              ],
          attributes: { "data-id": `v${i}`, "data-from": `a${i} k${i}` },
        }));
  const from = Array.from(weights, (_, i) => (weights[i]! >= LEAST ? `a${i} v${i}` : ""))
    .join(" ")
    .trim();
  return {
    title: "Context",
    what: `The vector of each ${noun(ui, moment)}, times its weight, is added up.`,
    rules: [
      contextRule(),
      values &&
        h(
          "p",
          { class: "letters" },
          "v: what each contributes. Its bars shrink with its weight; under 1 % they are left out.",
        ),
    ],
    numbers: contextNumbers(moment),
    body:
      values === null
        ? h("p", { class: "note" }, MORE)
        : list(ui, "values", "Vectors times their weights", rows),
    foot: [
      context && vector({ id: "context", letter: "c", what: "the mixture", values: context, from }),
      values !== null && badge(again.context, "This trace does not hold the context."),
    ],
  };
}
