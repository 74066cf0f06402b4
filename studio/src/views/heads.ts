/** Heads: one small matrix per site and head, by words; a click opens it in Alignment. */
import { h, type Children } from "../dom";
import { dataTable } from "../figures/table";
import { weightTable, type WeightTable } from "../fold";
import { formatNumber, formatPercent } from "../format";
import { t } from "../i18n";
import type { SiteRecord } from "../trace";
import type { Ui } from "../ui";
import { siteLabel, toggleButton } from "./selects";

const THUMBNAIL = 132; // pixels, the longer side at most
const MAX_HEADS = 400;
const SINK_SHARE = 0.5; // of the weight on start and end tokens, from which a head counts as a sink

export function heads(ui: Ui): Children {
  const { trace, state } = ui;
  const all = trace.sites.flatMap((record) =>
    Array.from({ length: record.heads }, (_, head) => ({ record, head })),
  );
  if (all.length === 0)
    return h("p", { class: "note" }, t("This model has no attention, so it has no heads."));
  const shown = all.slice(0, MAX_HEADS).map(({ record, head }) => ({
    record,
    head,
    table: weightTable(trace, ui.arrays, record, head, true, true),
  }));
  const folded = (table: WeightTable): boolean => !state.sinks && sinkShare(ui, table) >= SINK_SHARE;
  const visible = shown.filter(({ table }) => !folded(table));
  return [
    h(
      "div",
      { class: "selects" },
      toggleButton("sinks", t("fold attention sinks"), !state.sinks, null, (on) =>
        ui.setState({ sinks: !on }),
      ),
      toggleButton("scale", t("shade by row"), state.byRow, null, (byRow) => ui.setState({ byRow })),
      toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on })),
    ),
    h("h2", {}, t("Every head of every layer: {n} in all", { n: all.length })),
    h(
      "p",
      { class: "legend" },
      t("Rows are queries, columns are keys, as in Alignment. Choose a head to see it there.") +
        (visible.length < shown.length
          ? ` ${t("{n} heads with more than half of their weight on start and end tokens are folded.", { n: shown.length - visible.length })}`
          : ""),
    ),
    trace.sites.map((record) => {
      const own = visible.filter((one) => one.record === record);
      return h(
        "section",
        { class: "layer", "aria-label": siteLabel(record) },
        h("h3", {}, siteLabel(record)),
        h(
          "div",
          { class: "thumbnails" },
          own.map(({ head, table }) => thumbnail(ui, record, head, table)),
          own.length === 0 && h("p", { class: "letters" }, t("All heads of this site are folded.")),
        ),
      );
    }),
    state.table && headTable(ui, shown),
  ];
}

function thumbnail(ui: Ui, record: SiteRecord, head: number, table: WeightTable): Children {
  const id = `${record.site}-${head}`;
  const [rows, columns] = [table.rows.length, table.columns.length];
  const cell = Math.max(2, Math.min(16, Math.floor(THUMBNAIL / Math.max(rows, columns, 1))));
  ui.onPaint(id, (canvas) => paint(canvas, table, cell, ui.state.byRow));
  const entropy = meanEntropy(table);
  return h(
    "button",
    {
      type: "button",
      class: "thumbnail-button",
      "data-site": record.site,
      "data-head": head,
      title: t("{site}, head {head}: mean entropy {entropy} bits", {
        site: siteLabel(record),
        head,
        entropy: formatNumber(entropy, 2),
      }),
      onclick: () => ui.setState({ view: "alignment", site: record.site, head }),
    },
    h("canvas", { "data-canvas": id, width: columns * cell, height: rows * cell, "aria-hidden": "true" }),
    h(
      "span",
      { class: "letters" },
      `${t("head {head}", { head })} · `,
      h("span", { "data-v": String(entropy) }, t("{n} bits", { n: formatNumber(entropy, 2) })),
    ),
  );
}

function paint(canvas: HTMLCanvasElement, table: WeightTable, cell: number, byRow: boolean): void {
  const pen = canvas.getContext("2d");
  if (pen === null) return;
  const style = getComputedStyle(canvas);
  pen.globalAlpha = 1;
  pen.fillStyle = style.getPropertyValue("--cell");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.getPropertyValue("--more");
  table.values.forEach((row, i) => {
    const scale = (byRow && Math.max(...row)) || 1;
    row.forEach((value, j) => {
      pen.globalAlpha = Math.max(0, Math.min(1, value / scale));
      pen.fillRect(j * cell, i * cell, cell - (cell > 4 ? 1 : 0), cell - (cell > 4 ? 1 : 0));
    });
  });
}

/** The share of the weight that is on start and end tokens. */
function sinkShare({ trace }: Ui, table: WeightTable): number {
  const special = table.columns.map(({ positions }) =>
    positions.every((position) =>
      [trace.source, trace.target].some((side) => {
        const token = side.tokens[position];
        return token !== undefined && (token.role === "start" || token.role === "end");
      }),
    ),
  );
  let [sink, total] = [0, 0];
  for (const row of table.values) {
    row.forEach((value, j) => {
      total += value;
      if (special[j]) sink += value;
    });
  }
  return total > 0 ? sink / total : 0;
}

function meanEntropy(table: WeightTable): number {
  const entropies = table.values.map((row) => {
    const total = row.reduce((a, b) => a + b, 0) || 1;
    return row.reduce(
      (sum, value) => (value > 0 ? sum - (value / total) * Math.log2(value / total) : sum),
      0,
    );
  });
  return entropies.reduce((a, b) => a + b, 0) / (entropies.length || 1);
}

function headTable(
  ui: Ui,
  all: readonly { readonly record: SiteRecord; readonly head: number; readonly table: WeightTable }[],
): Children {
  return dataTable({
    caption: t("Every head"),
    corner: t("head"),
    columns: [t("mean entropy, bits"), t("weight on start and end tokens")],
    rows: all.map(({ record, head, table }) => ({
      label: `${record.site} ${head}`,
      values: [meanEntropy(table), formatPercent(sinkShare(ui, table))],
    })),
  });
}
