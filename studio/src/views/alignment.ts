/** Alignment: the weights of a site as a matrix and as lines. */
import { t, type Text } from "../i18n";
import { isEdited } from "../check";
import { h, type Children } from "../dom";
import { canvasMatrix } from "../figures/canvas";
import { hiddenNote, lines } from "../figures/lines";
import { MAX_CELLS, matrix, type MatrixFigure } from "../figures/matrix";
import { dataTable } from "../figures/table";
import { weightTable, type WeightTable } from "../fold";
import { FIGURES, type Figure } from "../link";
import { siteNouns } from "../nouns";
import { drawnRegion } from "../regions";
import { positionAt, tickAt } from "../timeline";
import type { SiteRecord } from "../trace";
import { findSite, validHead, type Ui } from "../ui";
import { headSelect, labeledSelect, siteSelect, toggleButton } from "./selects";

const FIGURE_LABELS: Record<Figure, Text> = { both: "matrix and lines", matrix: "matrix", lines: "lines" };

export function alignment(ui: Ui): Children {
  const { trace, state, arrays } = ui;
  const record = findSite(trace, state.site);
  if (record === null) {
    return h(
      "p",
      { class: "note" },
      t("This model has no attention, so there are no weights to show. Walk shows its output words."),
    );
  }
  const head = validHead(record, state.head);
  const table = weightTable(trace, arrays, record, head, state.merge, state.specials);
  const figure = makeFigure(ui, record, table);
  const large = table.rows.length * table.columns.length > MAX_CELLS;
  return [
    h(
      "div",
      { class: "selects" },
      siteSelect(ui, trace.sites, record),
      headSelect(ui, record, true),
      !large &&
        labeledSelect(
          "figure",
          t("Figure"),
          state.figure,
          FIGURES.map((name) => [name, t(FIGURE_LABELS[name])] as const),
          (name) => ui.setState({ figure: FIGURES.find((figure) => figure === name) ?? "both" }),
        ),
      hasSubwords(ui) &&
        toggleButton("merge", t("whole words"), state.merge, null, (merge) => ui.setState({ merge })),
      toggleButton("specials", t("start and end tokens"), state.specials, null, (on) =>
        ui.setState({ specials: on }),
      ),
      !large &&
        toggleButton("numbers", t("numbers"), state.numbers, "N", (numbers) => ui.setState({ numbers })),
      toggleButton("scale", t("shade by row"), state.byRow, null, (byRow) => ui.setState({ byRow })),
      toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on })),
    ),
    h("h2", {}, headline(ui, record, head)),
    h("p", { class: "legend" }, legend(ui, record, table)),
    large ? canvasMatrix(ui, figure) : linkedFigures(ui, figure),
    (large || state.table) && matrixTable(figure),
  ];
}

function hasSubwords({ trace }: Ui): boolean {
  const tokens = [...trace.source.tokens, ...trace.target.tokens];
  const specials = tokens.filter((token) => token.word < 0).length;
  return tokens.length !== trace.source.words.length + trace.target.words.length + specials;
}

function headline(ui: Ui, record: SiteRecord, head: number | null): string {
  const { query, key } = siteNouns(ui.trace, record);
  const heads =
    record.heads === 1
      ? ""
      : `, ${head === null ? t("mean of {n} heads", { n: record.heads }) : t("head {head}", { head })}`;
  return t("Attention of each {query} to the {keys}", { query: query[0], keys: key[1] }) + heads;
}

function legend(ui: Ui, record: SiteRecord, table: WeightTable): string {
  const parts = [t("Every row has the weights of one query.")];
  if (record.mass === "at_most_one") parts.push(t("At this site a row may sum to less than 1."));
  if (record.mass === "free") parts.push(t("At this site a row may have any sum."));
  if (table.gold.size > 0) parts.push(t("Rings and orange lines: gold links."));
  if (ui.state.byRow) parts.push(t("The darkest cell of a row is its largest weight, however small."));
  if (!ui.state.specials) parts.push(t("Start and end tokens are hidden, so rows may sum to less than 1."));
  if (record.kind === "self" && record.query_side === "target")
    parts.push(
      t("Output positions are labeled by the word generated there; a query reads only earlier positions."),
    );
  if (ui.trace.edits.length > 0) parts.push(t("✎: edited weights."));
  return parts.join(" ");
}

function makeFigure(ui: Ui, record: SiteRecord, table: WeightTable): MatrixFigure {
  const { step, stage } = positionAt(ui.timeline, ui.state.tick);
  const isTarget = record.query_side === "target";
  const nouns = siteNouns(ui.trace, record);
  const { image } = ui.trace.source;
  const edited = table.rows.flatMap((row, i) =>
    isTarget && row.positions.some((t) => isEdited(ui.trace, record, t)) ? [i] : [],
  );
  return {
    id: "alignment",
    title: headline(ui, record, validHead(record, ui.state.head)),
    rowTitle: isTarget ? nouns.query[0] : t("{noun} (query)", { noun: nouns.query[0] }),
    columnTitle: record.key_side === "source" ? nouns.key[0] : t("earlier {noun}", { noun: nouns.key[0] }),
    rows: table.rows.map((row) => row.label),
    columns: table.columns.map((column) => column.label),
    ...(image != null && record.key_side === "source"
      ? { drawColumn: (column, box) => drawnRegion(image, table.columns[column]!.positions[0]!, box) }
      : {}),
    values: table.values,
    valueName: t("weight"),
    rings: table.gold,
    edited: new Set(edited),
    current: isTarget ? table.rows.findIndex((row) => row.positions.includes(step)) : null,
    sums: ui.state.numbers,
    byRow: ui.state.byRow,
    pick: (row) => {
      const first = table.rows[row]?.positions[0];
      if (isTarget && first !== undefined) ui.setState({ tick: tickAt(ui.timeline, first, stage) });
    },
  };
}

function linkedFigures(ui: Ui, figure: MatrixFigure): Children {
  const { figure: chosen } = ui.state;
  return [
    h(
      "div",
      { class: "linked" },
      chosen !== "lines" && h("div", { class: "scroll", tabindex: -1 }, matrix(ui, figure)),
      chosen !== "matrix" &&
        h(
          "div",
          { class: "scroll", tabindex: -1 },
          lines(ui, figure),
          h("p", { class: "legend" }, hiddenNote(figure.values)),
        ),
    ),
  ];
}

export function matrixTable(figure: MatrixFigure): Children {
  return dataTable({
    caption: `${figure.title}: ${figure.valueName}`,
    corner: `${figure.rowTitle} ↓, ${figure.columnTitle} →`,
    columns: [...figure.columns, ...(figure.sums ? [t("sum")] : [])],
    rows: figure.rows.map((label, i) => {
      const values = figure.values[i]!;
      const sum = values.reduce<number>((a, b) => a + (b ?? 0), 0);
      return { label, values: [...values, ...(figure.sums ? [sum] : [])] };
    }),
  });
}
