/** Photo: the image, bright where each word attends, and the words that attend to a region. */
import { rich, t } from "../i18n";
import { h, type Children } from "../dom";
import { imageGrid } from "../figures/image_grid";
import { bar, list } from "../figures/list";
import { dataTable } from "../figures/table";
import { argmax } from "../detail";
import { formatNumber, formatPercent, quote, tokenText } from "../format";
import { regionLabel } from "../regions";
import { positionAt, tickAt } from "../timeline";
import type { SourceImage } from "../trace";
import { findSite, stepWeights, type Ui } from "../ui";
import { headSelect, siteSelect, stepButtons, toggleButton } from "./selects";

export function photo(ui: Ui): Children {
  const { trace, state } = ui;
  const image = trace.source.image;
  const record = findSite(trace, state.site);
  if (image == null) return h("p", { class: "note" }, t("The input of this trace is not an image."));
  if (record === null || record.key_side !== "source" || record.query_side !== "target") {
    return h("p", { class: "note" }, t("This model has no attention over the regions of the image."));
  }
  const { step } = positionAt(ui.timeline, state.tick);
  const weights = stepWeights(ui, record);
  const chosen = state.position ?? argmax(weights[step]!);
  return [
    h(
      "div",
      { class: "selects" },
      siteSelect(
        ui,
        trace.sites.filter((one) => one.key_side === "source" && one.query_side === "target"),
        record,
      ),
      headSelect(ui, record, true),
      toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on })),
    ),
    h(
      "h2",
      {},
      rich("Attention for {word}", {
        word: h("span", { class: "written", dir: "auto" }, quote(tokenText(trace.target, step))),
      }),
    ),
    h(
      "p",
      { class: "legend", "aria-live": "polite", id: "photo-summary" },
      summary(ui, image, weights, step, chosen),
    ),
    stepButtons(ui, step, t("Words of the caption")),
    h(
      "div",
      { class: "split" },
      imageGrid(ui, {
        id: "photo",
        title: t("The image, bright where the word attends"),
        image,
        values: weights[step]!,
        valueName: t("weight"),
        chosen,
        pick: (position) => ui.setState({ position }),
      }),
      h("div", { class: "side-panel" }, wordsOfRegion(ui, image, weights, chosen)),
    ),
    state.table && regionTable(ui, image, weights),
  ];
}

function summary(
  ui: Ui,
  image: SourceImage,
  weights: readonly number[][],
  step: number,
  chosen: number,
): string {
  const row = weights[step]!;
  const best = argmax(row);
  const word = quote(tokenText(ui.trace.target, step));
  const selected =
    chosen === best
      ? ""
      : ` ${t("The selected region ({place}) has {share}.", { place: regionLabel(image, chosen), share: formatPercent(row[chosen]!) })}`;
  return (
    t(
      "For {word} the largest weight is that of {place}: {share}. The grid is the model's, {rows} by {columns}, without smoothing.",
      {
        word,
        place: regionLabel(image, best),
        share: formatPercent(row[best]!),
        rows: image.grid[0],
        columns: image.grid[1],
      },
    ) + selected
  );
}

/** The words that attend to a region, largest weight first. */
function wordsOfRegion(ui: Ui, image: SourceImage, weights: readonly number[][], chosen: number): Children {
  const order = weights.map((_, step) => step).sort((a, b) => weights[b]![chosen]! - weights[a]![chosen]!);
  const rows = order.map((step) => ({
    label: tokenText(ui.trace.target, step),
    ariaLabel: `${t("weight")} ${formatNumber(weights[step]![chosen]!)}`,
    cell: [
      bar(weights[step]![chosen]!, weights[order[0]!]![chosen]!),
      h(
        "span",
        { class: "n", "data-v": String(weights[step]![chosen]!) },
        formatNumber(weights[step]![chosen]!),
      ),
    ],
    click: () => ui.setState({ tick: tickAt(ui.timeline, step, 1), position: chosen }),
  }));
  return [
    h("h3", {}, t("Words that attend to this region ({place})", { place: regionLabel(image, chosen) })),
    list(ui, "users", t("Words that attend to the region, largest weight first"), rows),
  ];
}

function regionTable(ui: Ui, image: SourceImage, weights: readonly number[][]): Children {
  return dataTable({
    caption: t("Weights of each region for each word"),
    corner: t("region"),
    columns: ui.trace.target.tokens.map((_, i) => tokenText(ui.trace.target, i)),
    rows: Array.from({ length: image.grid[0] * image.grid[1] }, (_, region) => ({
      label: regionLabel(image, region),
      values: weights.map((row) => row[region]!),
    })),
  });
}
