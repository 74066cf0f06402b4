/** A lane's list: a grid of rows with a label and one cell, reached by one Tab. */
import { h, type Attributes, type Children, type Element } from "../dom";
import type { Ui } from "../ui";

export interface Row {
  readonly label: string;
  readonly said: string | null; // the cell in words; null: it speaks for itself
  readonly cell: Children;
  readonly attributes?: Attributes; // of the cell
  readonly marks?: string; // classes of the row
  readonly click?: () => void;
}

export function list(ui: Ui, id: string, title: string, rows: readonly Row[]): Element {
  const focused = Math.min(ui.focused(id)[0], rows.length - 1);
  return h(
    "div",
    {
      class: "list",
      role: "grid",
      "aria-label": title,
      "data-grid": id,
      "data-rows": rows.length,
      "data-columns": 1,
    },
    rows.map(({ label, said, cell, attributes, marks, click }, i) =>
      h(
        "div",
        { role: "row", class: `row ${marks ?? ""}`.trim(), onclick: click },
        h("span", { role: "rowheader", class: "label", title: label, dir: "auto" }, label),
        h(
          "span",
          {
            role: "gridcell",
            class: "cell",
            tabindex: i === focused ? 0 : -1,
            "aria-label": said,
            "data-r": i,
            "data-c": 0,
            ...attributes,
          },
          cell,
        ),
      ),
    ),
  );
}

/** A bar from the left; one of both signs goes from the middle. */
export function bar(value: number, scale: number, signed = false): Element {
  const share = Math.min(1, Math.abs(value) / (scale || 1)) * (signed ? 50 : 100);
  const style = signed
    ? { width: `${share}%`, left: `${value < 0 ? 50 - share : 50}%` }
    : { width: `${share}%`, left: "0" };
  const kind = signed ? (value < 0 ? "bar minus" : "bar plus") : "bar";
  return h(
    "span",
    { class: signed ? "track signed" : "track", "aria-hidden": "true" },
    h("span", { class: kind, style }),
  );
}
