/** A figure's numbers as an HTML table, with six digits. */
import { h, type VNode } from "../dom";

export interface DataTable {
  readonly caption: string;
  readonly corner: string;
  readonly columns: readonly string[];
  readonly rows: readonly { readonly label: string; readonly values: readonly (number | string | null)[] }[];
}

export function dataTable({ caption, corner, columns, rows }: DataTable): VNode {
  return h(
    "div",
    { class: "data-table", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, corner),
          columns.map((label) => h("th", { scope: "col", dir: "auto" }, label)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(({ label, values }) =>
          h("tr", {}, h("th", { scope: "row", dir: "auto" }, label), values.map(cell)),
        ),
      ),
    ),
  );
}

function cell(value: number | string | null): VNode {
  if (typeof value !== "number") return h("td", { class: value === null ? "" : "text" }, value ?? "–");
  return h("td", { "data-v": String(value) }, exact(value));
}

function exact(value: number): string {
  const size = Math.abs(value);
  return size !== 0 && size < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(6)));
}
