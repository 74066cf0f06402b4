/** A matrix with too many cells for one element each: painted on a canvas, with its table below. */
import { t } from "../i18n";
import { h, type VNode } from "../dom";
import type { Ui } from "../ui";
import { cellLabel, shades, type MatrixFigure } from "./matrix";

const MAX_WIDTH = 1100; // pixels

export function canvasMatrix(ui: Ui, figure: MatrixFigure): VNode {
  const [rows, columns] = [figure.rows.length, figure.columns.length];
  const cell = Math.max(2, Math.min(10, Math.floor(MAX_WIDTH / columns)));
  const [row, column] = ui.focused(figure.id);
  const [r, c] = [Math.min(row, rows - 1), Math.min(column, columns - 1)];
  ui.onPick(figure.id, figure.pick);
  ui.onPaint(figure.id, (canvas) => paint(canvas, figure, cell, r, c));
  const pickAt = (event: Event): void => {
    const { offsetX, offsetY } = event as MouseEvent;
    figure.pick(
      Math.min(rows - 1, Math.floor(offsetY / cell)),
      Math.min(columns - 1, Math.floor(offsetX / cell)),
    );
  };
  return h(
    "div",
    { class: "canvas-matrix" },
    h(
      "p",
      { class: "axis-title" },
      t("columns: {columns}; rows: {rows}", { columns: figure.columnTitle, rows: figure.rowTitle }),
    ),
    h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": t("matrix"),
      "aria-label": `${figure.title}. ${t("Arrow keys move between cells; the table below has all numbers.")}`,
      "aria-describedby": `${figure.id}-cell`,
      "data-canvas": figure.id,
      "data-grid": figure.id,
      "data-rows": rows,
      "data-columns": columns,
      width: columns * cell,
      height: rows * cell,
      onclick: pickAt,
    }),
    h("p", { id: `${figure.id}-cell`, class: "cell-label", "aria-live": "polite" }, cellLabel(figure, r, c)),
  );
}

function paint(
  canvas: HTMLCanvasElement,
  figure: MatrixFigure,
  cell: number,
  row: number,
  column: number,
): void {
  const pen = canvas.getContext("2d");
  if (pen === null) return;
  const style = getComputedStyle(canvas);
  const gap = cell > 4 ? 1 : 0;
  pen.globalAlpha = 1;
  pen.fillStyle = style.getPropertyValue("--cell");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.getPropertyValue("--more");
  figure.rows.forEach((_, i) => {
    shades(figure, i).forEach((shade, j) => {
      pen.globalAlpha = shade;
      pen.fillRect(j * cell, i * cell, cell - gap, cell - gap);
    });
  });
  pen.globalAlpha = 1;
  pen.strokeStyle = style.getPropertyValue("--ring");
  pen.lineWidth = 2;
  for (const key of figure.rings ?? []) {
    const [i, j] = key.split(",").map(Number) as [number, number];
    pen.strokeRect(j * cell, i * cell, cell, cell);
  }
  pen.strokeStyle = style.getPropertyValue("--focus");
  pen.strokeRect(column * cell - 1, row * cell - 1, cell + 2, cell + 2);
}
