/** Photo: what was read of the picture for each word, and which words used a region. */
import { h, type Children, type Element } from "../dom";
import { bar, list } from "../figures/list";
import { twin } from "../figures/table";
import { number, percent, piece, quoted } from "../format";
import { heaviest } from "../moment";
import { place, tickOf } from "../tick";
import type { Photo } from "../trace";
import { looksOf, meanWeights, type Ui } from "../ui";
import { headChooser, siteChooser, steps, toggle } from "./choosers";

const WIDE = 560; // pixels of the picture
const DARK = 0.8; // how dark a place is that is not read

export function photo(ui: Ui): Children {
  const { trace, state } = ui;
  const image = trace.source.image;
  const looks = looksOf(trace, state.site);
  if (image == null) return h("p", { class: "note" }, "This trace was not made of a picture.");
  if (looks === null || looks.reads !== "source" || looks.asks !== "target") {
    return h("p", { class: "note" }, "This model has no attention: it never looks at parts of the picture.");
  }
  const { step } = place(ui.line, state.tick);
  const weights = meanWeights(ui, looks);
  const chosen = state.position ?? heaviest(weights[step]!);
  return [
    h(
      "div",
      { class: "choosers" },
      siteChooser(
        ui,
        trace.sites.filter((one) => one.reads === "source" && one.asks === "target"),
        looks,
      ),
      headChooser(ui, looks, true),
      toggle("table", "table", state.table, "T", (on) => ui.go({ table: on })),
    ),
    h("h2", {}, "Read for ", h("span", { class: "written", dir: "auto" }, quoted(piece(trace.target, step)))),
    h(
      "p",
      { class: "legend", "aria-live": "polite", id: "photo-said" },
      said(ui, image, weights, step, chosen),
    ),
    steps(ui, step, "Words of the caption"),
    h(
      "div",
      { class: "asked" },
      picture(ui, image, weights[step]!, chosen),
      h("div", { class: "answer" }, users(ui, image, weights, chosen)),
    ),
    state.table && table(ui, image, weights),
  ];
}

const where = ({ grid }: Photo, region: number): string =>
  `row ${Math.floor(region / grid[1]) + 1}, column ${(region % grid[1]) + 1}`;

function said(ui: Ui, image: Photo, weights: readonly number[][], step: number, chosen: number): string {
  const mine = weights[step]!;
  const best = heaviest(mine);
  const word = quoted(piece(ui.trace.target, step));
  const asked =
    chosen === best ? "" : ` The region chosen (${where(image, chosen)}) has ${percent(mine[chosen]!)}.`;
  return `For ${word} the lightest region, ${where(image, best)}, has ${percent(mine[best]!)} of the weight. The grid is as the model has it, ${image.grid[0]} by ${image.grid[1]}, not smoothed.${asked}`;
}

function picture(ui: Ui, image: Photo, weights: readonly number[], chosen: number): Element {
  const [rows, columns] = image.grid;
  const [wide, high] = [WIDE, (WIDE * image.height) / image.width];
  const [w, t] = [wide / columns, high / rows];
  const most = Math.max(...weights) || 1;
  const [row, column] = ui.focused("photo");
  ui.picks("photo", (r, c) => ui.go({ position: r * columns + c }));
  const cell = (r: number, c: number): Element => {
    const region = r * columns + c;
    const weight = weights[region]!;
    const at = { x: c * w, y: r * t, width: w, height: t };
    return h(
      "g",
      {
        role: "gridcell",
        class: "region",
        tabindex: r === row && c === column ? 0 : -1,
        "data-r": r,
        "data-c": c,
        "data-v": String(weight),
        "aria-selected": String(region === chosen),
        "aria-label": `${where(image, region)}: weight ${number(weight)}`,
      },
      h("rect", { class: "shadow", ...at, "fill-opacity": (DARK * (1 - weight / most)).toFixed(4) }),
      h("rect", { class: "focus", ...at }),
    );
  };
  return h(
    "svg",
    {
      class: "photo-grid",
      viewBox: `0 0 ${wide} ${high}`,
      width: wide,
      height: high,
      role: "grid",
      "aria-label": "The picture, lit where it was read",
      "data-grid": "photo",
      "data-rows": rows,
      "data-columns": columns,
    },
    h("image", {
      href: image.href,
      width: wide,
      height: high,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    }),
    Array.from({ length: rows }, (_, r) =>
      h(
        "g",
        { role: "row" },
        Array.from({ length: columns }, (_, c) => cell(r, c)),
      ),
    ),
  );
}

/** The words that used a region, most first. */
function users(ui: Ui, image: Photo, weights: readonly number[][], chosen: number): Children {
  const order = weights.map((_, step) => step).sort((a, b) => weights[b]![chosen]! - weights[a]![chosen]!);
  const rows = order.map((step) => ({
    label: piece(ui.trace.target, step),
    said: `weight ${number(weights[step]![chosen]!)}`,
    cell: [
      bar(weights[step]![chosen]!, weights[order[0]!]![chosen]!),
      h("span", { class: "n", "data-v": String(weights[step]![chosen]!) }, number(weights[step]![chosen]!)),
    ],
    click: () => ui.go({ tick: tickOf(ui.line, step, 1), position: chosen }),
  }));
  return [
    h("h3", {}, `Words that used this region (${where(image, chosen)})`),
    list(ui, "users", "Words that used the region, most first", rows),
  ];
}

function table(ui: Ui, image: Photo, weights: readonly number[][]): Children {
  return twin({
    caption: "What was read of each region for each word",
    corner: "region",
    columns: ui.trace.target.tokens.map((_, i) => piece(ui.trace.target, i)),
    rows: Array.from({ length: image.grid[0] * image.grid[1] }, (_, region) => ({
      label: where(image, region),
      values: weights.map((row) => row[region]!),
    })),
  });
}
