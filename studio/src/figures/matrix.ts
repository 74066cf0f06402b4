/** A matrix of weights: rows are queries, columns are keys, one element per cell. */
import { t } from "../i18n";
import { h, type Attributes, type VNode } from "../dom";
import { formatNumber, formatWeight } from "../format";
import { cellKey } from "../fold";
import type { Ui } from "../ui";

export const MAX_CELLS = 4096; // a larger matrix is painted on a canvas
const ROW_HEIGHT = 28;
const LETTER_WIDTH = 7.6; // pixels, roughly
const MAX_LABEL_LETTERS = 20;
const AXIS_TITLE = 22; // pixels
const SUM_WIDTH = 52;
const SLOPE = 0.64; // sine of the column labels' angle
const COLUMN_COSINE = 0.77; // and its cosine

export interface ColumnBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface MatrixFigure {
  readonly id: string;
  readonly title: string;
  readonly rowTitle: string;
  readonly columnTitle: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  readonly drawColumn?: (column: number, box: ColumnBox) => VNode; // instead of its label
  readonly values: readonly (readonly (number | null)[])[];
  readonly valueName: string;
  readonly rings?: ReadonlySet<string>;
  readonly edited?: ReadonlySet<number>; // edited rows
  readonly current?: number | null; // row of the current step
  readonly selected?: string | null; // a `cellKey`
  readonly sums: boolean;
  readonly byRow?: boolean; // shades relative to the row's largest value
  readonly pick: (row: number, column: number) => void;
}

export function clip(label: string): string {
  const letters = Array.from(label);
  return letters.length > MAX_LABEL_LETTERS ? `${letters.slice(0, MAX_LABEL_LETTERS - 1).join("")}…` : label;
}

/** The shades of a row's cells, 0 to 1. */
export function shades({ values, byRow }: MatrixFigure, row: number): number[] {
  const cells = values[row]!.map((value) => Math.max(0, value ?? 0));
  const scale = (byRow && Math.max(...cells)) || 1;
  return cells.map((value) => Math.min(1, value / scale));
}

const labelWidth = (labels: readonly string[]): number =>
  Math.max(2, ...labels.map((label) => Array.from(clip(label)).length)) * LETTER_WIDTH;

function cellWidth(columns: number): number {
  return columns <= 14 ? 44 : columns <= 22 ? 36 : 30;
}

/** Two decimals, as in the cell; smaller values in full. */
const amount = (value: number): string => (value < 0.005 ? formatNumber(value) : value.toFixed(2));

/** The text of a cell for screen readers. */
export function cellLabel(figure: MatrixFigure, row: number, column: number): string {
  const value = figure.values[row]![column];
  const start = `${figure.rowTitle} ${figure.rows[row]}, ${figure.columnTitle} ${figure.columns[column]}: `;
  const ring = figure.rings?.has(cellKey(row, column)) ? `, ${t("gold link")}` : "";
  return start + (value == null ? t("masked") : `${figure.valueName} ${amount(value)}`) + ring;
}

/** The layout: the first cell's corner, and the sizes. */
interface Layout {
  readonly left: number;
  readonly top: number;
  readonly cell: number;
  readonly width: number;
  readonly height: number;
}

function computeLayout({ rows, columns, sums, rowTitle, columnTitle }: MatrixFigure): Layout {
  const cell = cellWidth(columns.length);
  const left = AXIS_TITLE + labelWidth(rows) + 10;
  const top = AXIS_TITLE + labelWidth(columns) * SLOPE + 14;
  const labelEnds = columns.map((label, j) => (j + 0.45) * cell + labelWidth([label]) * COLUMN_COSINE);
  const body = Math.max(columns.length * cell + (sums ? SUM_WIDTH : 0), ...labelEnds);
  const width = left + Math.max(columnTitle.length * LETTER_WIDTH, body) + 8;
  const height = top + Math.max(rowTitle.length * LETTER_WIDTH, rows.length * ROW_HEIGHT) + 6; // room for the rotated title
  return { left, top, cell, width, height };
}

export function matrix(ui: Ui, figure: MatrixFigure): VNode {
  const { rows, columns } = figure;
  ui.onPick(figure.id, figure.pick);
  const layout = computeLayout(figure);
  const { left, top, width, height } = layout;
  const middle = (top + height) / 2;
  const [row, column] = ui.focused(figure.id);
  const focused = cellKey(Math.min(row, rows.length - 1), Math.min(column, columns.length - 1));
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
    header(figure, layout),
    rows.map((_, i) => line(ui, figure, layout, i, focused)),
  );
}

const title = (text: string, where: Attributes): VNode =>
  h("text", { class: "axis-title", "aria-hidden": "true", ...where }, text);

const sumX = ({ columns }: MatrixFigure, { left, cell }: Layout): number =>
  left + columns.length * cell + SUM_WIDTH - 4;

function header(figure: MatrixFigure, layout: Layout): VNode {
  const { left, top, cell } = layout;
  const rotated = (j: number): string => `translate(${left + (j + 0.45) * cell} ${top - 8}) rotate(-40)`;
  const sums = { class: "sum-title", x: sumX(figure, layout), y: top - 8, "text-anchor": "end" };
  return h(
    "g",
    { role: "row", "aria-rowindex": 1 },
    figure.columns.map((label, j) =>
      h(
        "g",
        { role: "columnheader", class: "column", "data-col": j, "aria-colindex": j + 2 },
        h("title", {}, label),
        figure.drawColumn !== undefined
          ? figure.drawColumn(j, {
              x: left + j * cell + 2,
              y: top - cell - 2,
              width: cell - 4,
              height: cell - 4,
            })
          : h("text", { transform: rotated(j) }, clip(label)),
      ),
    ),
    figure.sums && h("g", { role: "columnheader" }, h("text", sums, t("sum"))),
  );
}

function line(ui: Ui, figure: MatrixFigure, layout: Layout, i: number, focused: string): VNode {
  const { left, top, cell } = layout;
  const y = top + i * ROW_HEIGHT;
  const label = figure.rows[i]!;
  const edited = figure.edited?.has(i) ?? false;
  return h(
    "g",
    { role: "row", class: i === figure.current ? "line current" : "line", "aria-rowindex": i + 2 },
    h(
      "g",
      { role: "rowheader", class: "row-label", "data-row": i, "aria-colindex": 1 },
      h("title", {}, edited ? `${label} (${t("edited weights")})` : label),
      h(
        "text",
        { x: left - 8, y: y + ROW_HEIGHT / 2 + 4.5, "text-anchor": "end" },
        (edited ? "✎ " : "") + clip(label),
      ),
    ),
    shades(figure, i).map((shade, j) => box(ui, figure, [i, j], shade, [left + j * cell, y, cell], focused)),
    figure.sums && sum(figure.values[i]!, sumX(figure, layout), y),
  );
}

type Cell = readonly [row: number, column: number];
type Box = readonly [x: number, y: number, width: number];

function box(
  ui: Ui,
  figure: MatrixFigure,
  [i, j]: Cell,
  shade: number,
  [x, y, width]: Box,
  focused: string,
): VNode {
  const value = figure.values[i]![j] ?? null;
  const key = cellKey(i, j);
  const inside = { x: x + 1, y: y + 1, width: width - 2, height: ROW_HEIGHT - 2, rx: 2 };
  return h(
    "g",
    {
      role: "gridcell",
      class: value === null ? "box masked" : "box",
      tabindex: key === focused ? 0 : -1,
      "aria-label": cellLabel(figure, i, j),
      "aria-selected": figure.selected === undefined ? null : String(figure.selected === key),
      "aria-colindex": j + 2,
      "data-r": i,
      "data-c": j,
      "data-row": i,
      "data-col": j,
      "data-v": value === null ? null : String(value),
    },
    h("rect", { class: "paper", ...inside }),
    h("rect", { class: "shade", ...inside, "fill-opacity": shade.toFixed(4) }),
    figure.rings?.has(key) &&
      h("rect", { class: "ring", x: x + 3, y: y + 3, width: width - 6, height: ROW_HEIGHT - 6, rx: 9 }),
    ui.state.numbers &&
      h(
        "text",
        {
          class: shade > 0.5 ? "on-dark" : "on-light",
          x: x + width / 2,
          y: y + ROW_HEIGHT / 2 + 4,
          "text-anchor": "middle",
        },
        value === null ? "×" : formatWeight(value),
      ),
    h("rect", { class: "focus", ...inside }),
  );
}

function sum(values: readonly (number | null)[], x: number, y: number): VNode {
  const total = values.reduce<number>((a, b) => a + (b ?? 0), 0);
  return h(
    "g",
    { role: "gridcell", class: "sum" },
    h(
      "text",
      { x, y: y + ROW_HEIGHT / 2 + 4, "text-anchor": "end", "data-v": String(total) },
      total.toFixed(2),
    ),
  );
}
