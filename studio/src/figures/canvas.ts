/** A matrix too large for an element a cell: painted, with its table below. */
import { h, type Element } from "../dom";
import type { Ui } from "../ui";
import { said, shades, type Figure } from "./matrix";

const WIDEST = 1100;

export function painted(ui: Ui, figure: Figure): Element {
  const [rows, columns] = [figure.rows.length, figure.columns.length];
  const cell = Math.max(2, Math.min(10, Math.floor(WIDEST / columns)));
  const [row, column] = ui.focused(figure.id);
  const [r, c] = [Math.min(row, rows - 1), Math.min(column, columns - 1)];
  ui.picks(figure.id, figure.pick);
  ui.paint(figure.id, (canvas) => paint(canvas, figure, cell, r, c));
  const find = (event: Event): void => {
    const { offsetX, offsetY } = event as MouseEvent;
    figure.pick(
      Math.min(rows - 1, Math.floor(offsetY / cell)),
      Math.min(columns - 1, Math.floor(offsetX / cell)),
    );
  };
  return h(
    "div",
    { class: "painted" },
    h("p", { class: "axis-title" }, `across, each ${figure.columnTitle}; down, each ${figure.rowTitle}`),
    h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": "matrix",
      "aria-label": `${figure.title}. Arrow keys go from cell to cell; the table below has every number.`,
      "aria-describedby": `${figure.id}-cell`,
      "data-canvas": figure.id,
      "data-grid": figure.id,
      "data-rows": rows,
      "data-columns": columns,
      width: columns * cell,
      height: rows * cell,
      onclick: find,
    }),
    h("p", { id: `${figure.id}-cell`, class: "cell-said", "aria-live": "polite" }, said(figure, r, c)),
  );
}

function paint(canvas: HTMLCanvasElement, figure: Figure, cell: number, row: number, column: number): void {
  const pen = canvas.getContext("2d");
  if (pen === null) return;
  const style = getComputedStyle(canvas);
  const gap = cell > 4 ? 1 : 0;
  pen.globalAlpha = 1;
  pen.fillStyle = style.getPropertyValue("--cell");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.getPropertyValue("--more");
  figure.rows.forEach((_, i) => {
    shades(figure, i).forEach((dark, j) => {
      pen.globalAlpha = dark;
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
