/** A list of labeled cells: an ARIA grid that is one stop of the Tab key. */
import { h, type Attributes, type Children, type VNode } from "../dom";
import type { Ui } from "../ui";

export interface Row {
  readonly label: Children;
  readonly title?: string; // of a label that may be cut
  readonly ariaLabel: string | null; // of the cell; null: its text suffices
  readonly cell: Children;
  readonly attributes?: Attributes; // of the cell
  readonly classes?: string; // of the row
  readonly click?: () => void;
}

const MAX_LINE_LETTERS = 12; // of a label; longer ones take two lines

export function list(ui: Ui, id: string, name: string, rows: readonly Row[]): VNode {
  const focused = Math.min(ui.focused(id)[0], rows.length - 1);
  return h(
    "div",
    {
      class: rows.some(({ label }) => typeof label === "string" && label.length > MAX_LINE_LETTERS)
        ? "list long"
        : "list",
      role: "grid",
      "aria-label": name,
      "data-grid": id,
      "data-rows": rows.length,
      "data-columns": 1,
    },
    rows.map(({ label, title, ariaLabel, cell, attributes, classes, click }, i) =>
      h(
        "div",
        { role: "row", class: `row ${classes ?? ""}`.trim(), onclick: click },
        h(
          "span",
          {
            role: "rowheader",
            class: "label",
            title: title ?? (typeof label === "string" ? label : null),
            dir: "auto",
          },
          label,
        ),
        h(
          "span",
          {
            role: "gridcell",
            class: "cell",
            tabindex: i === focused ? 0 : -1,
            "aria-label": ariaLabel,
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

/** A bar from the left; a signed one starts in the middle. */
export function bar(value: number, scale: number, signed = false): VNode {
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
