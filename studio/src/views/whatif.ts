/** What-if: what would have been likely, had a step read one input word alone, or not at all? */
import { h, type Children, type Element } from "../dom";
import { painted } from "../figures/canvas";
import { bar, list, type Row } from "../figures/list";
import { ELEMENTS, matrix, type Figure } from "../figures/matrix";
import { at } from "../fold";
import { bare, number, percent, piece, quoted } from "../format";
import type { Op } from "../link";
import { readIn, speech } from "../speech";
import { place, tickOf } from "../tick";
import type { Top, WhatIf } from "../trace";
import type { Ui } from "../ui";
import { matrixTwin } from "./alignment";
import { toggle } from "./choosers";

const OPS: readonly (readonly [Op, string])[] = [
  ["onehot", "all weight on it"],
  ["zero", "no weight on it"],
];

export function whatIf(ui: Ui): Children {
  const { trace, state } = ui;
  if (trace.sites.length === 0) {
    return h("p", { class: "note" }, "This model has no attention: there are no weights to change.");
  }
  if (trace.whatif.length === 0) {
    return h(
      "p",
      { class: "note" },
      "This trace was made without answers to what-if questions. ",
      h("code", {}, "heedful trace --what-if"),
      " makes one that has them.",
    );
  }
  const answers = new Map(
    trace.whatif.filter(({ op }) => op === state.op).map((one) => [at(one.step, one.position), one]),
  );
  const [step, position] = chosen(ui, answers);
  const figure = figureOf(ui, answers, step, position);
  const large = figure.rows.length * figure.columns.length > ELEMENTS;
  const before = trace.steps.length > 1 ? "The words before stay as they were written. " : "";
  return [
    h(
      "div",
      { class: "choosers" },
      h(
        "div",
        { class: "pair", role: "group", "aria-label": "What is asked" },
        OPS.map(([op, label]) => toggle(`op-${op}`, label, state.op === op, null, () => ui.go({ op }))),
      ),
      toggle("numbers", "numbers", state.numbers, "N", (numbers) => ui.go({ numbers })),
      toggle("table", "table", state.table, "T", (on) => ui.go({ table: on })),
    ),
    h(
      "h2",
      {},
      state.op === "onehot"
        ? `What if a step had read one ${readIn(trace)[0]} alone?`
        : `What if a step had left out one ${readIn(trace)[0]}?`,
    ),
    h(
      "p",
      { class: "legend" },
      `Each number is the share of probability that would move to other ${speech(trace).one}s (total variation distance: 0, nothing changes; 1, everything does). ${before}Choose a cell to see the ${speech(trace).one}s.`,
    ),
    h(
      "div",
      { class: "asked" },
      large ? painted(ui, figure) : h("div", { class: "scroll", tabindex: -1 }, matrix(ui, figure)),
      answer(ui, answers.get(at(step, position)), step, position),
    ),
    (large || state.table) && matrixTwin(figure),
  ];
}

/** The cell that was asked for, else the one of this word that changes most. */
function chosen(ui: Ui, answers: ReadonlyMap<string, WhatIf>): readonly [number, number] {
  const { cell } = ui.state;
  if (cell !== null && answers.has(at(...cell))) return cell;
  const { step } = place(ui.line, ui.state.tick);
  const mine = [...answers.values()].filter((one) => one.step === step);
  const most = mine.reduce<WhatIf | null>(
    (best, one) => (best === null || one.tvd > best.tvd ? one : best),
    null,
  );
  return [step, most?.position ?? 0];
}

function figureOf(ui: Ui, answers: ReadonlyMap<string, WhatIf>, step: number, position: number): Figure {
  const { source, target } = ui.trace;
  return {
    id: "what-if",
    title: "How much each answer differs",
    rowTitle: speech(ui.trace).said[0],
    columnTitle: readIn(ui.trace)[0],
    rows: target.tokens.map((_, t) => piece(target, t)),
    columns: source.tokens.map((_, i) => piece(source, i)),
    values: target.tokens.map((_, t) => source.tokens.map((_, i) => answers.get(at(t, i))?.tvd ?? null)),
    valueName: "change",
    selected: at(step, position),
    current: step,
    sums: false,
    pick: (row, column) =>
      ui.go({ cell: [row, column], tick: tickOf(ui.line, row, place(ui.line, ui.state.tick).stage) }),
  };
}

function answer(ui: Ui, found: WhatIf | undefined, step: number, position: number): Element {
  const { trace, state } = ui;
  const { one } = speech(trace);
  const [word, read] = [quoted(piece(trace.target, step)), quoted(piece(trace.source, position))];
  if (found === undefined)
    return h("section", { class: "answer" }, h("p", { class: "note" }, `${read} cannot be read.`));
  const before = trace.steps[step]!.top.slice(0, found.top.length);
  const changes =
    before[0] !== undefined && found.top[0] !== undefined && before[0].text !== found.top[0].text;
  const asked =
    state.op === "onehot" ? `If all weight had been on ${read}` : `If no weight had been on ${read}`;
  const verdict = changes
    ? `the likeliest ${one} would have been ${quoted(bare(found.top[0]!))} instead of ${quoted(bare(before[0]!))}.`
    : `the likeliest ${one} would still have been ${quoted(bare(found.top[0] ?? before[0]!))}.`;
  return h(
    "section",
    { class: "answer", "aria-live": "polite", "aria-labelledby": "asked" },
    h(
      "h3",
      { id: "asked" },
      one === "label" ? `Where ${word} was the answer` : `Step ${step + 1}, where ${word} was written`,
    ),
    h("p", { class: changes ? "verdict changed" : "verdict" }, `${asked}, ${verdict}`),
    h(
      "p",
      { class: "tvd" },
      "Probability that moves: ",
      h("b", { "data-v": String(found.tvd), id: "tvd" }, number(found.tvd)),
      ` (${percent(found.tvd)})`,
    ),
    h(
      "div",
      { class: "sides" },
      h(
        "div",
        {},
        h("h4", {}, "as it was"),
        list(ui, "before", `Likely ${one}s as it was`, rowsOf(before, before)),
      ),
      h(
        "div",
        {},
        h("h4", {}, "as it would be"),
        list(ui, "after", `Likely ${one}s as it would be`, rowsOf(found.top, before)),
      ),
    ),
  );
}

/** Likely words with their probabilities; those that the other side has not got are marked. */
function rowsOf(tops: readonly Top[], others: readonly Top[]): Row[] {
  return tops.map((top) => {
    const p = Math.exp(top.logp);
    const fresh = !others.some((other) => other.text === top.text);
    return {
      label: bare(top),
      said: `probability ${number(p)}${fresh ? ", only here" : ""}`,
      marks: fresh ? "fresh" : "",
      cell: [bar(p, 1), h("span", { class: "n", "data-v": String(p) }, number(p))],
      attributes: { "data-logp": String(top.logp) },
    };
  });
}
