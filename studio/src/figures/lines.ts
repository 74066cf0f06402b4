/** Input words on the left, output words on the right; the stronger a line, the larger its weight. */
import { h, type Element } from "../dom";
import { at } from "../fold";
import { number, percent } from "../format";
import type { Ui } from "../ui";
import { clip, type Figure } from "./matrix";

export const LEAST = 0.01; // lines of less weight are not drawn; how much is hidden is said
const HEIGHT = 26;
const LETTER = 7.6;
const GAP = 190;
const TOP = 30;

const wide = (labels: readonly string[]): number =>
  Math.max(11, ...labels.map((label) => Array.from(clip(label)).length)) * LETTER + 14;

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

export function lines(ui: Ui, figure: Figure): Element {
  const { rows, columns, values } = figure;
  ui.picks(`${figure.id}-lines`, figure.pick);
  const most = Math.max(rows.length, columns.length);
  const [left, right] = [wide(columns), wide(rows)];
  const [x0, x1] = [left, left + GAP];
  const [from, to] = [spread(columns.length, most), spread(rows.length, most)];
  const size = { width: x1 + right, height: TOP + most * HEIGHT + 8 };
  const focused = Math.min(ui.focused(`${figure.id}-lines`)[0], rows.length - 1);
  const drawn = values.flatMap((row, i) =>
    row.flatMap((value, j) => ((value ?? 0) < LEAST ? [] : [{ i, j, value: value! }])),
  );
  return h(
    "svg",
    {
      class: "lines",
      role: "grid",
      "aria-label": `${figure.title}, as lines`,
      "data-grid": `${figure.id}-lines`,
      "data-rows": rows.length,
      "data-columns": 1,
      viewBox: `0 0 ${size.width} ${size.height}`,
      ...size,
    },
    h("text", { class: "axis-title", x: x0 - 10, y: 14, "text-anchor": "end", "aria-hidden": "true" }, figure.columnTitle),
    h("text", { class: "axis-title", x: x1 + 10, y: 14, "aria-hidden": "true" }, figure.rowTitle),
    h(
      "g",
      { "aria-hidden": "true" },
      drawn.map(({ i, j, value }) =>
        h("path", {
          class: figure.rings?.has(at(i, j)) ? "link gold" : "link",
          d: `M${x0} ${from(j).toFixed(1)}C${x0 + GAP / 2} ${from(j).toFixed(1)} ${x1 - GAP / 2} ${to(i).toFixed(1)} ${x1} ${to(i).toFixed(1)}`,
          "stroke-width": (0.6 + 4.4 * Math.min(1, value)).toFixed(2),
          "stroke-opacity": (0.12 + 0.88 * Math.min(1, value)).toFixed(3),
          "data-row": i,
          "data-col": j,
        }),
      ),
      columns.map((label, j) =>
        h("g", { class: "column", "data-col": j }, h("title", {}, label), h("text", { x: x0 - 10, y: from(j) + 4.5, "text-anchor": "end" }, clip(label))),
      ),
    ),
    rows.map((label, i) =>
      h(
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
          h("rect", { class: "focus", x: x1 + 3, y: to(i) - HEIGHT / 2 + 1, width: right - 6, height: HEIGHT - 2, rx: 3 }),
          h("text", { x: x1 + 10, y: to(i) + 4.5 }, (figure.marked?.has(i) ? "✎ " : "") + clip(label)),
        ),
      ),
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
