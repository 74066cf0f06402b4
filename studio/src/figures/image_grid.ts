/** An image under the grid of its regions: the larger a region's number, the brighter it is. */
import { h, type VNode } from "../dom";
import { formatNumber } from "../format";
import { regionLabel } from "../regions";
import type { SourceImage } from "../trace";
import type { Ui } from "../ui";

const IMAGE_WIDTH = 560; // pixels
const MAX_SHADE = 0.8; // of regions with the smallest numbers

export interface ImageGrid {
  readonly id: string;
  readonly title: string;
  readonly image: SourceImage;
  readonly values: readonly number[];
  readonly valueName: string;
  readonly chosen: number;
  readonly pick: (region: number) => void;
}

export function imageGrid(ui: Ui, { id, title, image, values, valueName, chosen, pick }: ImageGrid): VNode {
  const [rows, columns] = image.grid;
  const [width, height] = [IMAGE_WIDTH, (IMAGE_WIDTH * image.height) / image.width];
  const [cellWidth, cellHeight] = [width / columns, height / rows];
  const largest = Math.max(...values) || 1;
  const [row, column] = ui.focused(id);
  ui.onPick(id, (r, c) => pick(r * columns + c));
  const cell = (r: number, c: number): VNode => {
    const region = r * columns + c;
    const value = values[region] ?? 0;
    const box = { x: c * cellWidth, y: r * cellHeight, width: cellWidth, height: cellHeight };
    return h(
      "g",
      {
        role: "gridcell",
        class: "region",
        tabindex: r === row && c === column ? 0 : -1,
        "data-r": r,
        "data-c": c,
        "data-v": String(value),
        "aria-selected": String(region === chosen),
        "aria-label": `${regionLabel(image, region)}: ${valueName} ${formatNumber(value)}`,
      },
      h("rect", { class: "shadow", ...box, "fill-opacity": (MAX_SHADE * (1 - value / largest)).toFixed(4) }),
      h("rect", { class: "focus", ...box }),
    );
  };
  return h(
    "svg",
    {
      class: "photo-grid",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "grid",
      "aria-label": title,
      "data-grid": id,
      "data-rows": rows,
      "data-columns": columns,
    },
    h("image", {
      href: image.data_uri,
      width,
      height,
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
