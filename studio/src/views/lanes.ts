/** The five lanes of the Walk. */
import { section } from "../check";
import { h, type Children } from "../dom";
import { bar, list, type Row } from "../figures/list";
import { size, strip, vector } from "../figures/vector";
import { count, difference, number, percent, piece, bare, quoted } from "../format";
import { combineRules, contextNumbers, contextRule, scoreNumbers, scoreRule, shiftSaid, weightNumbers, weightRule, wordNumbers, wordRule } from "../formulas";
import type { Moment } from "../moment";
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

const MORE = "This trace holds weights only. One made with --detail steps (or full, for every place in the model) has these numbers.";
const LEAST = 0.01; // lighter vectors are too flat to be drawn

function rowsOf(ui: Ui, moment: Moment, make: (i: number) => Pick<Row, "said" | "cell" | "attributes">): Row[] {
  return moment.reads.tokens.map((_, i) => ({
    label: piece(moment.reads, i),
    marks: [i === moment.chosen && "chosen", !moment.open[i] && "closed"].filter(Boolean).join(" "),
    click: () => ui.go({ position: i }),
    ...make(i),
  }));
}

/** What is read, in words. */
const noun = ({ looks }: Moment): string => (looks.reads === "source" ? "input word" : "output place so far");

const value = (amount: number, text = number(amount)): Children => h("span", { class: "n", "data-v": String(amount) }, text);
const closed = (why: string): Children => h("span", { class: "n none" }, why);

export function scoreLane(ui: Ui, moment: Moment): Lane {
  const { scores, inside, open, query, keys, chosen, reads } = moment;
  const rule = scoreRule(moment);
  const word = piece(reads, chosen);
  const scale = scores === null ? 1 : Math.max(...Array.from(scores, (score, i) => (inside[i] ? Math.abs(score) : 0)));
  const rows = scores === null ? [] : rowsOf(ui, moment, (i) => ({
    said: inside[i] ? `score ${number(scores[i]!)}` : "not read",
    cell: inside[i] ? [bar(scores[i]!, scale, true), value(scores[i]!)] : closed(open[i] ? "outside" : "not read"),
    attributes: { "data-id": `e${i}`, "data-from": `q k${i}` },
  }));
  return {
    title: "Score",
    what: `How well does each ${noun(moment)} fit what the decoder asks for?`,
    rules: rule && [rule.rule, h("p", { class: "letters" }, rule.what)],
    numbers: scoreNumbers(moment, word),
    body: scores === null ? h("p", { class: "note" }, MORE) : list(ui, "scores", `Scores, one for each ${noun(moment)}`, rows),
    foot: [
      query && vector({ id: "q", letter: "q", what: "what asks: the decoder's state", values: query }),
      keys && vector({ id: `k${chosen}`, letter: "k", what: `${quoted(word)} as it was read`, values: keys[chosen]! }),
      moment.again.score !== null && badge(moment.again.score, ""),
      moment.again.score === null && ui.trace.checks?.score != null &&
        h("p", { class: "badge plain" }, `From the model's own matrices, when recorded: largest difference ${difference(ui.trace.checks.score)}`),
    ],
  };
}

const TITLES: Record<string, string> = { softmax: "Softmax", "smoothed-softmax": "Smoothed softmax", sparsemax: "Sparsemax", entmax15: "Entmax" };

export function softmaxLane(ui: Ui, moment: Moment): Lane {
  const { weights, open, inside, chosen, reads, how } = moment;
  const sum = Array.from(weights).reduce((a, b) => a + b, 0);
  const rule = moment.scores === null ? null : weightRule(moment);
  const shift = moment.byHand ? null : shiftSaid(moment);
  const rows = rowsOf(ui, moment, (i) => ({
    said: open[i] ? `weight ${number(weights[i]!)}` : "not read",
    cell: open[i] && (inside[i] || weights[i]! > 0) ? [bar(weights[i]!, 1), value(weights[i]!)] : closed(open[i] ? "outside" : "not read"),
    attributes: { "data-id": `a${i}`, "data-from": weights.length > 200 ? `e${i}` : Array.from(weights, (_, j) => `e${j}`).join(" ") },
  }));
  return {
    title: how.placement === "uniform" ? "Uniform" : (TITLES[how.normaliser] ?? "Softmax"),
    what: `Scores become weights: how much of each ${noun(moment)} is read.`,
    rules: rule && [rule.rule, h("p", { class: "letters" }, rule.what)],
    numbers: [
      weightNumbers(moment, piece(reads, chosen)),
      shift !== null && h("p", { class: "letters" }, "Scores are counted from the highest, ", value(shift), ": the weights stay the same."),
    ],
    body: list(ui, "weights", `Weights, one for each ${noun(moment)}`, rows),
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
  const rows = values === null ? [] : rowsOf(ui, moment, (i) => ({
    said: `${number(weights[i]!)} times ${count(values[i]!.length)} numbers`,
    cell: !open[i]
      ? closed("not read")
      : [
          h("span", { class: weights[i]! >= LEAST ? "n times" : "n times light" }, `${number(weights[i]!)} ×`),
          weights[i]! >= LEAST ? strip(values[i]!, scale, weights[i]!) : h("span", { class: "blank", "aria-hidden": "true" }),
        ],
    attributes: { "data-id": `v${i}`, "data-from": `a${i} k${i}` },
  }));
  const from = Array.from(weights, (_, i) => (weights[i]! >= LEAST ? `a${i} v${i}` : "")).join(" ").trim();
  return {
    title: "Context",
    what: `The vector of each ${noun(moment)}, times its weight, is added up.`,
    rules: [contextRule(), values && h("p", { class: "letters" }, "v: what each contributes. Its bars shrink with its weight; under 1 % they are left out.")],
    numbers: contextNumbers(moment),
    body: values === null ? h("p", { class: "note" }, MORE) : list(ui, "values", "Vectors times their weights", rows),
    foot: [
      context && vector({ id: "context", letter: "c", what: "the mixture", values: context, from }),
      values !== null && badge(again.context, "This trace does not hold the context."),
    ],
  };
}

const PARTS: Record<string, [string, string]> = {
  state: ["s", "the decoder's state"],
  stream: ["r", "what the decoder had"],
  gated: ["g", "the layer's output"],
  context: ["c", "what was read"],
  said: ["x", "what words are compared with"],
};

export function combineLane(ui: Ui, moment: Moment): Lane {
  const { trace, arrays } = ui;
  const decoder = section(trace, "decoder") as { kind?: string; read_out?: string; norm?: string };
  const known = decoder.kind !== undefined;
  const { rules, what } = combineRules(decoder.kind ?? "", decoder.read_out ?? "linear", decoder.norm ?? "pre", moment.looks.context != null || "context" in trace.combine);
  const parts = Object.entries(trace.combine).filter(([name]) => name in PARTS);
  const same = trace.combine.context === undefined || trace.combine.context === moment.looks.context;
  const several = trace.sites.filter((looks) => looks.kind === "cross").length > 1;
  const gate = trace.combine.gate;
  const vectors = parts.map(([name, tensor]) => {
    const [letter, meaning] = PARTS[name]!;
    const from = name === "said" ? parts.filter(([other]) => other !== "said").map(([other]) => `in-${other}`).join(" ") : name === "context" && same ? "context" : undefined;
    return vector({ id: name === "said" ? "said" : `in-${name}`, letter, what: meaning, values: arrays.row(tensor, moment.step), ...(from ? { from } : {}) });
  });
  return {
    title: "Combine",
    what: "What was read joins what the decoder already knows.",
    rules: known && [rules, h("p", { class: "letters" }, what)],
    numbers: !same && h("p", { class: "letters" }, several ? "c comes from the last layer's look, all heads together; the lanes on the left may show another." : "c: all heads together, after a learned matrix."),
    body: parts.length === 0 ? h("p", { class: "note" }, MORE) : h("div", { class: "vectors" }, vectors),
    foot: gate !== undefined && copied(Number(arrays.get(gate).data[moment.step])),
  };
}

function copied(gate: number): Children {
  const share = 1 / (1 + Math.exp(-gate));
  return h("p", { class: "letters" }, "Of the probability of words, ", value(share, percent(share)), " is copied from the input by the weights of “copy”.");
}

const LISTED = 8;

export function wordLane(ui: Ui, step: number): Lane {
  const record = ui.trace.steps[step]!;
  const token = ui.trace.target.tokens[step]!;
  const mine = (top: { id?: number | null; text: string }): boolean => (token.id == null ? top.text === token.text : top.id === token.id);
  const likely = record.top.slice(0, LISTED);
  const rest = 1 - likely.reduce((sum, top) => sum + Math.exp(top.logp), 0);
  const outside = likely.length > 0 && !likely.some(mine);
  const rows = [...likely, ...(outside ? [{ id: token.id ?? null, text: token.text, logp: record.logp }] : [])].map((top, i): Row => {
    const p = Math.exp(top.logp);
    return {
      label: bare(top),
      said: `probability ${number(p)}${mine(top) ? ", written" : ""}`,
      marks: mine(top) ? "chosen" : "",
      cell: [bar(p, 1), value(p)],
      attributes: { "data-id": `p${i}`, "data-from": "said", "data-logp": String(top.logp) },
    };
  });
  const left = Math.max(0, outside ? rest - Math.exp(record.logp) : rest);
  return {
    title: "Word",
    what: "Every word of the vocabulary gets a probability; one is written.",
    rules: [wordRule(), h("p", { class: "letters" }, "O, with a row for each word, and b are learned.")],
    numbers: record.top.length > 0 && wordNumbers(piece(ui.trace.target, step), record.logp),
    body: rows.length === 0 ? h("p", { class: "note" }, "This trace does not say which words were likely.") : list(ui, "words", "Likely words", rows),
    foot: rows.length > 0 && [
      h("p", { class: "sum" }, `all other words together ${number(left)}`),
      record.entropy != null && h("p", { class: "letters" }, `As unsure as among ${number(Math.exp(record.entropy), 1)} equally likely words.`),
      record.forced && h("p", { class: "badge plain" }, "This word was given, not chosen."),
    ],
  };
}
