/** Alignment: where every output word was read from, as a matrix and as lines. */
import { edited } from "../check";
import { h, type Children } from "../dom";
import { painted } from "../figures/canvas";
import { hiddenSaid, lines } from "../figures/lines";
import { ELEMENTS, matrix, type Figure } from "../figures/matrix";
import { twin } from "../figures/table";
import { table, type Matrix } from "../fold";
import { FIGURES } from "../link";
import { place, tickOf } from "../tick";
import { axesOf } from "../speech";
import type { Looks } from "../trace";
import { headOf, looksOf, type Ui } from "../ui";
import { chooser, headChooser, siteChooser, toggle } from "./choosers";

const SHOWN = { both: "matrix and lines", matrix: "matrix", lines: "lines" } as const;

export function alignment(ui: Ui): Children {
  const { trace, state, arrays } = ui;
  const looks = looksOf(trace, state.site);
  if (looks === null) {
    return h(
      "p",
      { class: "note" },
      "This model has no attention: its decoder never looks back at the input, so there is nothing to align. Walk shows the words it wrote.",
    );
  }
  const head = headOf(looks, state.head);
  const found = table(trace, arrays, looks, head, state.merge, state.specials);
  const figure = figureOf(ui, looks, found);
  const large = found.rows.length * found.columns.length > ELEMENTS;
  const pieces =
    [...trace.source.tokens, ...trace.target.tokens].length !==
    [...trace.source.words, ...trace.target.words].length + specials(ui);
  return [
    h(
      "div",
      { class: "choosers" },
      siteChooser(ui, trace.sites, looks),
      headChooser(ui, looks, true),
      !large &&
        chooser(
          "figure",
          "Drawn as",
          state.figure,
          FIGURES.map((name) => [name, SHOWN[name]] as const),
          (name) => ui.go({ figure: FIGURES.find((one) => one === name) ?? "both" }),
        ),
      pieces && toggle("merge", "whole words", state.merge, null, (merge) => ui.go({ merge })),
      toggle("specials", "start and end tokens", state.specials, null, (on) => ui.go({ specials: on })),
      !large && toggle("numbers", "numbers", state.numbers, "N", (numbers) => ui.go({ numbers })),
      toggle("scale", "shade by row", state.byRow, null, (byRow) => ui.go({ byRow })),
      toggle("table", "table", state.table, "T", (on) => ui.go({ table: on })),
    ),
    h("h2", {}, headline(ui, looks, head)),
    h("p", { class: "legend" }, legend(ui, looks, found)),
    large ? painted(ui, figure) : linked(ui, figure),
    (large || state.table) && matrixTwin(figure),
  ];
}

const specials = (ui: Ui): number =>
  [...ui.trace.source.tokens, ...ui.trace.target.tokens].filter((token) => token.word < 0).length;

function headline(ui: Ui, looks: Looks, head: number | null): string {
  const { asks, reads } = axesOf(ui.trace, looks);
  const whose = looks.heads === 1 ? "" : head === null ? `, mean of ${looks.heads} heads` : `, head ${head}`;
  return `Each ${asks[0]}, and the ${reads[1]} it read from${whose}`;
}

function legend(ui: Ui, looks: Looks, found: Matrix): string {
  const said = ["Every row is one reader; its weights are shares of what it read."];
  if (looks.mass === "at_most_one") said.push("Here a row may sum to less than 1.");
  if (looks.mass === "free") said.push("Here a row may sum to anything.");
  if (found.gold.size > 0) said.push("Rings and orange lines: word links known from elsewhere to be right.");
  if (ui.state.byRow) said.push("The darkest cell of a row is its largest weight, however small.");
  if (!ui.state.specials) said.push("Start and end tokens are left out, so rows may sum to less than 1.");
  if (looks.kind === "self" && looks.asks === "target")
    said.push(
      "Places in the output are named by the word written there; a place reads only what came before.",
    );
  if (ui.trace.edits.length > 0) said.push("✎: weights changed by hand.");
  return said.join(" ");
}

function figureOf(ui: Ui, looks: Looks, found: Matrix): Figure {
  const { step, stage } = place(ui.line, ui.state.tick);
  const asks = looks.asks === "target";
  const names = axesOf(ui.trace, looks);
  const current = asks ? found.rows.findIndex((row) => row.positions.includes(step)) : null;
  const marked = found.rows.flatMap((row, i) =>
    asks && row.positions.some((t) => edited(ui.trace, looks, t)) ? [i] : [],
  );
  return {
    id: "alignment",
    title: headline(ui, looks, headOf(looks, ui.state.head)),
    rowTitle: asks ? names.asks[0] : `${names.asks[0]}, reading`,
    columnTitle: looks.reads === "source" ? names.reads[0] : `${names.reads[0]} so far`,
    rows: found.rows.map((row) => row.label),
    columns: found.columns.map((column) => column.label),
    values: found.values,
    valueName: "weight",
    rings: found.gold,
    marked: new Set(marked),
    current,
    sums: ui.state.numbers,
    byRow: ui.state.byRow,
    pick: (row) => {
      const first = found.rows[row]?.positions[0];
      if (asks && first !== undefined) ui.go({ tick: tickOf(ui.line, first, stage) });
    },
  };
}

function linked(ui: Ui, figure: Figure): Children {
  const { figure: shown } = ui.state;
  return [
    h(
      "div",
      { class: "linked" },
      shown !== "lines" && h("div", { class: "scroll", tabindex: -1 }, matrix(ui, figure)),
      shown !== "matrix" &&
        h(
          "div",
          { class: "scroll", tabindex: -1 },
          lines(ui, figure),
          h("p", { class: "legend" }, hiddenSaid(figure.values)),
        ),
    ),
  ];
}

export function matrixTwin(figure: Figure): Children {
  return twin({
    caption: `${figure.title}: ${figure.valueName}s`,
    corner: `${figure.rowTitle} ↓, ${figure.columnTitle} →`,
    columns: [...figure.columns, ...(figure.sums ? ["sum"] : [])],
    rows: figure.rows.map((label, i) => {
      const values = figure.values[i]!;
      return {
        label,
        values: [...values, ...(figure.sums ? [values.reduce<number>((a, b) => a + (b ?? 0), 0)] : [])],
      };
    }),
  });
}
