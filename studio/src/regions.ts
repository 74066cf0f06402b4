/** The regions of an image: their names, and thumbnails cut out of the image. */
import { t } from "./i18n";
import { h, type Children, type VNode } from "./dom";
import { tokenText } from "./format";
import type { Side, SourceImage } from "./trace";

/** The row and column of a region, from 0. */
export const regionCell = ({ grid }: SourceImage, region: number): readonly [number, number] => [
  Math.floor(region / grid[1]),
  region % grid[1],
];

export function regionLabel(image: SourceImage, region: number): string {
  const [row, column] = regionCell(image, region);
  return t("row {row}, column {column}", { row: row + 1, column: column + 1 });
}

/** What a position is called in a sentence: its token, or where a region is. */
export const positionName = (side: Side, position: number): string =>
  side.image == null
    ? `“${tokenText(side, position)}”`
    : t("the region in {place}", { place: regionLabel(side.image, position) });

/** Make the image available to thumbnails; styles are set through the object model. */
export function provideImage(root: HTMLElement, side: Side): void {
  if (side.image != null) root.style.setProperty("--photo", `url("${side.image.data_uri}")`);
}

const share = (index: number, count: number): string => `${count < 2 ? 0 : (100 * index) / (count - 1)}%`;

/** One region, cut out of the image. */
export function thumbnail(image: SourceImage, region: number, kind: "small" | "large" = "small"): VNode {
  const [rows, columns] = image.grid;
  const [row, column] = regionCell(image, region);
  return h("span", {
    class: `thumbnail ${kind}`,
    "aria-hidden": "true", // its place is written next to it
    "data-region": region,
    style: {
      "background-size": `${100 * columns}% ${100 * rows}%`,
      "background-position": `${share(column, columns)} ${share(row, rows)}`,
      "aspect-ratio": `${image.width / columns} / ${image.height / rows}`,
    },
  });
}

/** The label of a position in a list: its token, or a region's thumbnail and place. */
export function positionLabel(side: Side, position: number): Children {
  if (side.image == null) return tokenText(side, position);
  return [thumbnail(side.image, position), h("span", { class: "place" }, regionLabel(side.image, position))];
}

/** A region as a part of a drawing. */
export function drawnRegion(
  image: SourceImage,
  region: number,
  box: { readonly x: number; readonly y: number; readonly width: number; readonly height: number },
): VNode {
  const [row, column] = regionCell(image, region);
  const [width, height] = [image.width / image.grid[1], image.height / image.grid[0]];
  return h(
    "svg",
    {
      ...box,
      viewBox: `${column * width} ${row * height} ${width} ${height}`,
      preserveAspectRatio: "xMidYMid slice",
      "aria-hidden": "true",
    },
    h("image", {
      href: image.data_uri,
      width: image.width,
      height: image.height,
      preserveAspectRatio: "none",
    }),
  );
}
