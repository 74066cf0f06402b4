/** Keys on the left, queries on the right, and a line per weight: the stronger, the larger the weight. */
import { t } from "../i18n";
import { h, type Children, type VNode } from "../dom";
import { cellKey } from "../fold";
import { formatNumber, formatPercent } from "../format";
import type { Ui } from "../ui";
import { clip, type MatrixFigure } from "./matrix";

export const MIN_WEIGHT = 0.01; // smaller weights have no line; their share is given below
const ROW_HEIGHT = 26;
const LETTER_WIDTH = 7.6;
const GAP = 190;
const TOP = 30;

const sideWidth = (title: string, labels: readonly string[]): number =>
  Math.max(title.length, ...labels.map((label) => Array.from(clip(label)).length)) * LETTER_WIDTH + 14;

/** The share of the weight that has no line. */
export function hiddenShare(values: MatrixFigure["values"]): number {
  const all = values.flat().map((value) => value ?? 0);
  const total = all.reduce((a, b) => a + b, 0);
  const small = all.filter((value) => value < MIN_WEIGHT).reduce((a, b) => a + b, 0);
  return total > 0 ? small / total : 0;
}

function spread(count: number, longest: number): (i: number) => number {
  const gap = count < 2 ? 0 : Math.min(2.2, (longest - 1) / (count - 1));
  const first = (longest - 1 - gap * (count - 1)) / 2;
  return (i) => TOP + (first + i * gap + 0.5) * ROW_HEIGHT;
}

/** The layout: where the two sides are, and the height of each word. */
interface Layout {
  readonly x0: number;
  readonly x1: number;
  readonly right: number;
  readonly from: (column: number) => number;
  readonly to: (row: number) => number;
}

export function lines(ui: Ui, figure: MatrixFigure): VNode {
  const { rows, columns } = figure;
  const id = `${figure.id}-lines`;
  ui.onPick(id, figure.pick);
  const longest = Math.max(rows.length, columns.length);
  const x0 = sideWidth(figure.columnTitle, columns);
  const [x1, right] = [x0 + GAP, sideWidth(figure.rowTitle, rows)];
  const layout: Layout = {
    x0,
    x1,
    right,
    from: spread(columns.length, longest),
    to: spread(rows.length, longest),
  };
  const size = { width: x1 + right, height: TOP + longest * ROW_HEIGHT + 8 };
  const focused = Math.min(ui.focused(id)[0], rows.length - 1);
  const title = { class: "axis-title", y: 14, "aria-hidden": "true" };
  return h(
    "svg",
    {
      class: "lines",
      role: "grid",
      "aria-label": t("{figure}, as lines", { figure: figure.title }),
      "data-grid": id,
      "data-rows": rows.length,
      "data-columns": 1,
      viewBox: `0 0 ${size.width} ${size.height}`,
      ...size,
    },
    h("text", { ...title, x: x0 - 10, "text-anchor": "end" }, figure.columnTitle),
    h("text", { ...title, x: x1 + 10 }, figure.rowTitle),
    h("g", { "aria-hidden": "true" }, links(figure, layout), keyLabels(figure, layout)),
    rows.map((_, i) => queryLabel(figure, layout, i, focused)),
  );
}

function links(figure: MatrixFigure, { x0, x1, from, to }: Layout): Children {
  const curve = (i: number, j: number): string => {
    const [y0, y1] = [from(j).toFixed(1), to(i).toFixed(1)];
    return `M${x0} ${y0}C${x0 + GAP / 2} ${y0} ${x1 - GAP / 2} ${y1} ${x1} ${y1}`;
  };
  return figure.values.map((row, i) =>
    row.map((value, j) => {
      const weight = Math.min(1, value ?? 0);
      if (weight < MIN_WEIGHT) return null;
      return h("path", {
        class: figure.rings?.has(cellKey(i, j)) ? "link gold" : "link",
        d: curve(i, j),
        "stroke-width": (0.6 + 4.4 * weight).toFixed(2),
        "stroke-opacity": (0.12 + 0.88 * weight).toFixed(3),
        "data-row": i,
        "data-col": j,
      });
    }),
  );
}

function keyLabels({ columns }: MatrixFigure, { x0, from }: Layout): Children {
  return columns.map((label, j) =>
    h(
      "g",
      { class: "column", "data-col": j },
      h("title", {}, label),
      h("text", { x: x0 - 10, y: from(j) + 4.5, "text-anchor": "end" }, clip(label)),
    ),
  );
}

function queryLabel(figure: MatrixFigure, { x1, right, to }: Layout, i: number, focused: number): VNode {
  const box = { x: x1 + 3, y: to(i) - ROW_HEIGHT / 2 + 1, width: right - 6, height: ROW_HEIGHT - 2, rx: 3 };
  return h(
    "g",
    { role: "row", class: i === figure.current ? "line current" : "line" },
    h(
      "g",
      {
        role: "gridcell",
        class: "row-label",
        tabindex: i === focused ? 0 : -1,
        "aria-label": rowLabel(figure, i),
        "data-r": i,
        "data-c": 0,
        "data-row": i,
      },
      h("rect", { class: "focus", ...box }),
      h("text", { x: x1 + 10, y: to(i) + 4.5 }, (figure.edited?.has(i) ? "✎ " : "") + clip(figure.rows[i]!)),
    ),
  );
}

function rowLabel(figure: MatrixFigure, row: number): string {
  const largest = figure.values[row]!.map((value, j) => ({ value: value ?? 0, label: figure.columns[j]! }))
    .filter(({ value }) => value >= MIN_WEIGHT)
    .sort((a, b) => b.value - a.value);
  const words = largest.slice(0, 5).map(({ value, label }) => `${label} ${formatNumber(value, 2)}`);
  return t("{query} attends to {keys}", {
    query: `${figure.rowTitle} ${figure.rows[row]}`,
    keys: words.join(", ") || t("no word in particular"),
  });
}

export function hiddenNote(values: MatrixFigure["values"]): string {
  return t("Weights under 1 % have no line; together they make up {share} of the weight.", {
    share: formatPercent(hiddenShare(values)),
  });
}
