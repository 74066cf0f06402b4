/** History: which items of a history spoke for a recommended one, and what leaving each out would change. */
import { h, type Children } from "../dom";
import { bar, list, type Row } from "../figures/list";
import { twin } from "../figures/table";
import { count, number, piece, quoted } from "../format";
import { heaviest } from "../moment";
import { place, tickOf } from "../tick";
import type { Looks } from "../trace";
import { looksOf, meanWeights, type Ui } from "../ui";
import { headChooser, steps, toggle } from "./choosers";
import { value } from "./lanes";

const SHOWN = 40; // items; the table has all

export function history(ui: Ui): Children {
  const { trace, state } = ui;
  const looks = looksOf(trace, null);
  if (looks === null || looks.kind !== "history") {
    return h("p", { class: "note" }, "This trace was not made of a history.");
  }
  const { step } = place(ui.line, state.tick);
  const weights = meanWeights(ui, looks);
  const lost = trace.steps.map((_, i) => effects(ui, i));
  const order = ranked(weights[step]!, lost[step]!);
  const chosen = state.position ?? order[0] ?? heaviest(weights[step]!);
  return [
    h(
      "div",
      { class: "choosers" },
      headChooser(ui, looks, true),
      toggle("table", "table", state.table, "T", (on) => ui.go({ table: on })),
    ),
    h(
      "h2",
      {},
      "What spoke for ",
      h("span", { class: "written", dir: "auto" }, quoted(piece(trace.target, step))),
    ),
    h(
      "p",
      { class: "legend", "aria-live": "polite", id: "history-said" },
      said(ui, looks, weights[step]!, lost[step]!, order),
    ),
    steps(ui, step, "Recommended items, best first"),
    h(
      "div",
      { class: "asked" },
      h("div", { class: "bars" }, bars(ui, weights[step]!, lost[step]!, order, chosen)),
      h("div", { class: "answer" }, speaks(ui, weights, lost, chosen)),
    ),
    state.table && table(ui, weights[step]!, lost[step]!, order),
  ];
}

/** The score with each item minus the score without it; null where that was not tried. */
function effects(ui: Ui, step: number): (number | null)[] {
  const name = ui.trace.tests["leave-one-out"];
  if (typeof name !== "string") return ui.trace.source.tokens.map(() => null);
  return Array.from(ui.arrays.row(name, step), (one) => (Number.isNaN(one) ? null : one));
}

/** What changes most first; what was not tried, by weight. */
function ranked(weights: readonly number[], lost: readonly (number | null)[]): number[] {
  const size = (i: number): number => Math.abs(lost[i] ?? 0);
  return weights.map((_, i) => i).sort((a, b) => size(b) - size(a) || weights[b]! - weights[a]!);
}

function said(
  ui: Ui,
  looks: Looks,
  weights: readonly number[],
  lost: readonly (number | null)[],
  order: readonly number[],
): string {
  const best = order[0];
  if (best === undefined) return "The history is empty.";
  const name = quoted(piece(ui.trace.source, best));
  const without = lost[best];
  const first =
    without === null || without === undefined
      ? `${name} has the largest weight, ${number(weights[best]!)}.`
      : `Without ${name} the score would be ${number(Math.abs(without))} ${without >= 0 ? "lower" : "higher"}: no other item changes it more.`;
  const free = looks.mass === "free" ? " Weights need not sum to 1 here." : "";
  return `${first}${free} The history has ${count(weights.length)} items, in no order.`;
}

function bars(
  ui: Ui,
  weights: readonly number[],
  lost: readonly (number | null)[],
  order: readonly number[],
  chosen: number,
): Children {
  const most = Math.max(...weights);
  const scale = Math.max(...lost.map((one) => Math.abs(one ?? 0)));
  const rows = order.slice(0, SHOWN).map((i): Row => {
    const without = lost[i] ?? null;
    return {
      label: piece(ui.trace.source, i),
      said: null,
      marks: i === chosen ? "chosen" : "",
      click: () => ui.go({ position: i }),
      cell: [
        heard("weight"),
        bar(weights[i]!, most),
        value(weights[i]!),
        heard("score with it minus score without it"),
        without === null ? h("span", { class: "n light" }, "not tried") : bar(without, scale, true),
        without === null ? h("span", {}) : value(without),
      ],
      attributes: { "data-item": i },
    };
  });
  const hidden = order.length - rows.length;
  return [
    h(
      "div",
      { class: "heads", "aria-hidden": "true" },
      h("span", {}, "item of the history"),
      h("span", {}, "weight"),
      h("span", {}, "score with it minus score without it"),
    ),
    list(ui, "history", "Items of the history, what changes most first", rows),
    hidden > 0 &&
      h("p", { class: "letters" }, `${count(hidden)} more items change less; the table has them.`),
  ];
}

/** For the ear alone: the eye has it above the column. */
const heard = (text: string): Children => h("span", { class: "heard" }, text);

/** The recommended items that an item of the history spoke for. */
function speaks(
  ui: Ui,
  weights: readonly number[][],
  lost: readonly (readonly (number | null)[])[],
  chosen: number,
): Children {
  const strength = (step: number): number => lost[step]![chosen] ?? weights[step]![chosen]!;
  const order = weights.map((_, step) => step).sort((a, b) => strength(b) - strength(a));
  const scale = Math.max(...order.map((step) => Math.abs(strength(step))));
  const signed = lost.some((row) => row[chosen] != null);
  const rows = order.map((step) => ({
    label: piece(ui.trace.target, step),
    said: `${signed ? "effect" : "weight"} ${number(strength(step))}`,
    cell: [bar(strength(step), scale, signed), value(strength(step))],
    click: () => ui.go({ tick: tickOf(ui.line, step, 1), position: chosen }),
  }));
  return [
    h("h3", { dir: "auto" }, `What ${quoted(piece(ui.trace.source, chosen))} spoke for`),
    list(ui, "spoken", "Recommended items it spoke for, most first", rows),
  ];
}

function table(
  ui: Ui,
  weights: readonly number[],
  lost: readonly (number | null)[],
  order: readonly number[],
): Children {
  return twin({
    caption: "Every item of the history",
    corner: "item",
    columns: ["weight", "score with it minus score without it"],
    rows: order.map((i) => ({
      label: piece(ui.trace.source, i),
      values: [weights[i]!, lost[i] ?? null],
    })),
  });
}
