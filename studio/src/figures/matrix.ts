/** A matrix of weights: rows ask, columns are read. Up to 4,096 cells every one is an element. */
import { h, type Attributes, type Element } from "../dom";
import { number, short } from "../format";
import { at } from "../fold";
import type { Ui } from "../ui";

export const ELEMENTS = 4096; // cells; a larger matrix is painted
const HEIGHT = 28;
const LETTER = 7.6; // pixels a letter of a label, roughly
const LONGEST = 20; // letters
const AXIS = 22; // for the title of an axis
const SUM = 52;
const SLOPE = 0.64; // sine and, nearly, cosine of the labels' angle

export interface Figure {
  readonly id: string;
  readonly title: string;
  readonly rowTitle: string;
  readonly columnTitle: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  readonly values: readonly (readonly (number | null)[])[];
  readonly valueName: string;
  readonly rings?: ReadonlySet<string>;
  readonly marked?: ReadonlySet<number>; // rows changed by hand
  readonly current?: number | null; // row of the word the Walk is at
  readonly selected?: string | null; // "row,column"
  readonly sums: boolean;
  readonly byRow?: boolean; // shades are shares of the row's largest value
  readonly pick: (row: number, column: number) => void;
}

export function clip(label: string): string {
  const letters = Array.from(label);
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : label;
}

/** How dark the cells of a row are, 0 to 1. */
export function shades({ values, byRow }: Figure, row: number): number[] {
  const mine = values[row]!.map((value) => Math.max(0, value ?? 0));
  const most = (byRow && Math.max(...mine)) || 1;
  return mine.map((value) => Math.min(1, value / most));
}

const wide = (labels: readonly string[]): number =>
  Math.max(2, ...labels.map((label) => Array.from(clip(label)).length)) * LETTER;

function cellWidth(columns: number): number {
  return columns <= 14 ? 44 : columns <= 22 ? 36 : 30;
}

/** Two decimals, as in the cell; what they cannot say is said in full. */
const amount = (value: number): string => (value < 0.005 ? number(value) : value.toFixed(2));

/** What a cell says aloud. */
export function said(figure: Figure, row: number, column: number): string {
  const value = figure.values[row]![column];
  const words = `${figure.rowTitle} ${figure.rows[row]}, ${figure.columnTitle} ${figure.columns[column]}: `;
  const ring = figure.rings?.has(at(row, column)) ? ", gold link" : "";
  return words + (value == null ? "cannot be read" : `${figure.valueName} ${amount(value)}`) + ring;
}

/** Where things stand: the first cell's corner, and the size of all. */
interface Plan {
  readonly left: number;
  readonly top: number;
  readonly cell: number;
  readonly width: number;
  readonly height: number;
}

function planOf({ rows, columns, sums, rowTitle, columnTitle }: Figure): Plan {
  const cell = cellWidth(columns.length);
  const left = AXIS + wide(rows) + 10;
  const top = AXIS + wide(columns) * SLOPE + 14;
  const body = columns.length * cell + (sums ? SUM : wide(columns) * 0.2);
  const width = left + Math.max(columnTitle.length * LETTER, body) + 8;
  const height = top + Math.max(rowTitle.length * LETTER, rows.length * HEIGHT) + 6; // its title stands upright
  return { left, top, cell, width, height };
}

export function matrix(ui: Ui, figure: Figure): Element {
  const { rows, columns } = figure;
  ui.picks(figure.id, figure.pick);
  const plan = planOf(figure);
  const { left, top, width, height } = plan;
  const middle = (top + height) / 2;
  const [row, column] = ui.focused(figure.id);
  const focused = at(Math.min(row, rows.length - 1), Math.min(column, columns.length - 1));
  return h(
    "svg",
    {
      class: "matrix",
      role: "grid",
      "aria-label": figure.title,
      "aria-rowcount": rows.length + 1,
      "aria-colcount": columns.length + 1,
      "data-grid": figure.id,
      "data-rows": rows.length,
      "data-columns": columns.length,
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
    },
    title(figure.columnTitle, { x: left, y: 14 }),
    title(figure.rowTitle, { transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle" }),
    header(figure, plan),
    rows.map((_, i) => line(ui, figure, plan, i, focused)),
  );
}

const title = (text: string, where: Attributes): Element =>
  h("text", { class: "axis-title", "aria-hidden": "true", ...where }, text);

const sumPlace = ({ columns }: Figure, { left, cell }: Plan): number =>
  left + columns.length * cell + SUM - 4;

function header(figure: Figure, plan: Plan): Element {
  const { left, top, cell } = plan;
  const turned = (j: number): string => `translate(${left + (j + 0.45) * cell} ${top - 8}) rotate(-40)`;
  const sums = { class: "sum-title", x: sumPlace(figure, plan), y: top - 8, "text-anchor": "end" };
  return h(
    "g",
    { role: "row", "aria-rowindex": 1 },
    figure.columns.map((label, j) =>
      h(
        "g",
        { role: "columnheader", class: "column", "data-col": j, "aria-colindex": j + 2 },
        h("title", {}, label),
        h("text", { transform: turned(j) }, clip(label)),
      ),
    ),
    figure.sums && h("g", { role: "columnheader" }, h("text", sums, "sum")),
  );
}

function line(ui: Ui, figure: Figure, plan: Plan, i: number, focused: string): Element {
  const { left, top, cell } = plan;
  const y = top + i * HEIGHT;
  const label = figure.rows[i]!;
  const byHand = figure.marked?.has(i) ?? false;
  return h(
    "g",
    { role: "row", class: i === figure.current ? "line current" : "line", "aria-rowindex": i + 2 },
    h(
      "g",
      { role: "rowheader", class: "row-label", "data-row": i, "aria-colindex": 1 },
      h("title", {}, byHand ? `${label} (weights changed by hand)` : label),
      h(
        "text",
        { x: left - 8, y: y + HEIGHT / 2 + 4.5, "text-anchor": "end" },
        (byHand ? "✎ " : "") + clip(label),
      ),
    ),
    shades(figure, i).map((dark, j) => box(ui, figure, [i, j], dark, [left + j * cell, y, cell], focused)),
    figure.sums && sum(figure.values[i]!, sumPlace(figure, plan), y),
  );
}

type Cell = readonly [row: number, column: number];
type Box = readonly [x: number, y: number, width: number];

function box(
  ui: Ui,
  figure: Figure,
  [i, j]: Cell,
  dark: number,
  [x, y, wide]: Box,
  focused: string,
): Element {
  const value = figure.values[i]![j] ?? null;
  const here = at(i, j);
  const inside = { x: x + 1, y: y + 1, width: wide - 2, height: HEIGHT - 2, rx: 2 };
  return h(
    "g",
    {
      role: "gridcell",
      class: value === null ? "box closed" : "box",
      tabindex: here === focused ? 0 : -1,
      "aria-label": said(figure, i, j),
      "aria-selected": figure.selected === undefined ? null : String(figure.selected === here),
      "aria-colindex": j + 2,
      "data-r": i,
      "data-c": j,
      "data-row": i,
      "data-col": j,
      "data-v": value === null ? null : String(value),
    },
    h("rect", { class: "paper", ...inside }),
    h("rect", { class: "shade", ...inside, "fill-opacity": dark.toFixed(4) }),
    figure.rings?.has(here) &&
      h("rect", { class: "ring", x: x + 3, y: y + 3, width: wide - 6, height: HEIGHT - 6, rx: 9 }),
    ui.state.numbers &&
      h(
        "text",
        {
          class: dark > 0.5 ? "on-dark" : "on-light",
          x: x + wide / 2,
          y: y + HEIGHT / 2 + 4,
          "text-anchor": "middle",
        },
        value === null ? "×" : short(value),
      ),
    h("rect", { class: "focus", ...inside }),
  );
}

function sum(values: readonly (number | null)[], x: number, y: number): Element {
  const total = values.reduce<number>((a, b) => a + (b ?? 0), 0);
  return h(
    "g",
    { role: "gridcell", class: "sum" },
    h("text", { x, y: y + HEIGHT / 2 + 4, "text-anchor": "end", "data-v": String(total) }, total.toFixed(2)),
  );
}
