/** Input words on the left, output words on the right; the stronger a line, the larger its weight. */
import { h, type Children, type Element } from "../dom";
import { at } from "../fold";
import { number, percent } from "../format";
import type { Ui } from "../ui";
import { clip, type Figure } from "./matrix";

export const LEAST = 0.01; // lines of less weight are not drawn; how much is hidden is said
const HEIGHT = 26;
const LETTER = 7.6;
const GAP = 190;
const TOP = 30;

const wide = (title: string, labels: readonly string[]): number =>
  Math.max(title.length, ...labels.map((label) => Array.from(clip(label)).length)) * LETTER + 14;

/** The share of all weight that is in lines too faint to be drawn. */
export function hidden(values: Figure["values"]): number {
  const all = values.flat().map((value) => value ?? 0);
  const total = all.reduce((a, b) => a + b, 0);
  const faint = all.filter((value) => value < LEAST).reduce((a, b) => a + b, 0);
  return total > 0 ? faint / total : 0;
}

function spread(count: number, most: number): (i: number) => number {
  const gap = count < 2 ? 0 : Math.min(2.2, (most - 1) / (count - 1));
  const first = (most - 1 - gap * (count - 1)) / 2;
  return (i) => TOP + (first + i * gap + 0.5) * HEIGHT;
}

/** Where things stand: the two sides, and the height of each word. */
interface Plan {
  readonly x0: number;
  readonly x1: number;
  readonly right: number;
  readonly from: (column: number) => number;
  readonly to: (row: number) => number;
}

export function lines(ui: Ui, figure: Figure): Element {
  const { rows, columns } = figure;
  const id = `${figure.id}-lines`;
  ui.picks(id, figure.pick);
  const most = Math.max(rows.length, columns.length);
  const x0 = wide(figure.columnTitle, columns);
  const [x1, right] = [x0 + GAP, wide(figure.rowTitle, rows)];
  const plan: Plan = { x0, x1, right, from: spread(columns.length, most), to: spread(rows.length, most) };
  const size = { width: x1 + right, height: TOP + most * HEIGHT + 8 };
  const focused = Math.min(ui.focused(id)[0], rows.length - 1);
  const title = { class: "axis-title", y: 14, "aria-hidden": "true" };
  return h(
    "svg",
    {
      class: "lines",
      role: "grid",
      "aria-label": `${figure.title}, as lines`,
      "data-grid": id,
      "data-rows": rows.length,
      "data-columns": 1,
      viewBox: `0 0 ${size.width} ${size.height}`,
      ...size,
    },
    h("text", { ...title, x: x0 - 10, "text-anchor": "end" }, figure.columnTitle),
    h("text", { ...title, x: x1 + 10 }, figure.rowTitle),
    h("g", { "aria-hidden": "true" }, links(figure, plan), sources(figure, plan)),
    rows.map((_, i) => reader(figure, plan, i, focused)),
  );
}

function links(figure: Figure, { x0, x1, from, to }: Plan): Children {
  const curve = (i: number, j: number): string => {
    const [y0, y1] = [from(j).toFixed(1), to(i).toFixed(1)];
    return `M${x0} ${y0}C${x0 + GAP / 2} ${y0} ${x1 - GAP / 2} ${y1} ${x1} ${y1}`;
  };
  return figure.values.map((row, i) =>
    row.map((value, j) => {
      const weight = Math.min(1, value ?? 0);
      if (weight < LEAST) return null;
      return h("path", {
        class: figure.rings?.has(at(i, j)) ? "link gold" : "link",
        d: curve(i, j),
        "stroke-width": (0.6 + 4.4 * weight).toFixed(2),
        "stroke-opacity": (0.12 + 0.88 * weight).toFixed(3),
        "data-row": i,
        "data-col": j,
      });
    }),
  );
}

function sources({ columns }: Figure, { x0, from }: Plan): Children {
  return columns.map((label, j) =>
    h(
      "g",
      { class: "column", "data-col": j },
      h("title", {}, label),
      h("text", { x: x0 - 10, y: from(j) + 4.5, "text-anchor": "end" }, clip(label)),
    ),
  );
}

function reader(figure: Figure, { x1, right, to }: Plan, i: number, focused: number): Element {
  const box = { x: x1 + 3, y: to(i) - HEIGHT / 2 + 1, width: right - 6, height: HEIGHT - 2, rx: 3 };
  return h(
    "g",
    { role: "row", class: i === figure.current ? "line current" : "line" },
    h(
      "g",
      {
        role: "gridcell",
        class: "row-label",
        tabindex: i === focused ? 0 : -1,
        "aria-label": spoken(figure, i),
        "data-r": i,
        "data-c": 0,
        "data-row": i,
      },
      h("rect", { class: "focus", ...box }),
      h("text", { x: x1 + 10, y: to(i) + 4.5 }, (figure.marked?.has(i) ? "✎ " : "") + clip(figure.rows[i]!)),
    ),
  );
}

function spoken(figure: Figure, row: number): string {
  const found = figure.values[row]!.map((value, j) => ({ value: value ?? 0, label: figure.columns[j]! }))
    .filter(({ value }) => value >= LEAST)
    .sort((a, b) => b.value - a.value);
  const words = found.slice(0, 5).map(({ value, label }) => `${label} ${number(value, 2)}`);
  return `${figure.rowTitle} ${figure.rows[row]} read from ${words.join(", ") || "nothing in particular"}`;
}

export function hiddenSaid(values: Figure["values"]): string {
  return `Lines under 1 % are not drawn; they hold ${percent(hidden(values))} of the weight.`;
}
