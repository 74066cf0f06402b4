/** History: the weight of each item of a history for a recommended item, and its leave-one-out effect. */
import { rich, t } from "../i18n";
import { h, type Children } from "../dom";
import { bar, list, type Row } from "../figures/list";
import { argmax } from "../detail";
import { dataTable } from "../figures/table";
import { formatCount, formatNumber, quote, tokenText } from "../format";
import { positionAt, tickAt } from "../timeline";
import type { SiteRecord } from "../trace";
import { findSite, stepWeights, type Ui } from "../ui";
import { value } from "./attention_lanes";
import { headSelect, stepButtons, toggleButton } from "./selects";

const MAX_ITEMS = 40; // the table has all
const effectName = (): string => t("score with it minus score without it");

export function history(ui: Ui): Children {
  const { trace, state } = ui;
  const record = findSite(trace, null);
  if (record === null || record.kind !== "history") {
    return h("p", { class: "note" }, t("The input of this trace is not a history."));
  }
  const { step } = positionAt(ui.timeline, state.tick);
  const weights = stepWeights(ui, record);
  const effects = trace.steps.map((_, i) => stepEffects(ui, i));
  const order = ranked(weights[step]!, effects[step]!);
  const chosen = state.position ?? order[0] ?? argmax(weights[step]!);
  return [
    h(
      "div",
      { class: "selects" },
      headSelect(ui, record, true),
      toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on })),
    ),
    h(
      "h2",
      {},
      rich("History items for {item}", {
        item: h("span", { class: "written", dir: "auto" }, quote(tokenText(trace.target, step))),
      }),
    ),
    h(
      "p",
      { class: "legend", "aria-live": "polite", id: "history-summary" },
      summary(ui, record, weights[step]!, effects[step]!, order),
    ),
    stepButtons(ui, step, t("Recommended items, best first")),
    h(
      "div",
      { class: "split" },
      h("div", { class: "bars" }, bars(ui, weights[step]!, effects[step]!, order, chosen)),
      h("div", { class: "side-panel" }, itemsOf(ui, weights, effects, chosen)),
    ),
    state.table && itemTable(ui, weights[step]!, effects[step]!, order),
  ];
}

/** The leave-one-out effect of each item; null where it was not computed. */
function stepEffects(ui: Ui, step: number): (number | null)[] {
  const name = ui.trace.attributions["leave-one-out"];
  if (name === undefined) return ui.trace.source.tokens.map(() => null);
  return Array.from(ui.arrays.row(name, step), (effect) => (Number.isNaN(effect) ? null : effect));
}

/** The largest effects first; items without one by weight. */
function ranked(weights: readonly number[], effects: readonly (number | null)[]): number[] {
  const size = (i: number): number => Math.abs(effects[i] ?? 0);
  return weights.map((_, i) => i).sort((a, b) => size(b) - size(a) || weights[b]! - weights[a]!);
}

function summary(
  ui: Ui,
  record: SiteRecord,
  weights: readonly number[],
  effects: readonly (number | null)[],
  order: readonly number[],
): string {
  const best = order[0];
  if (best === undefined) return t("The history is empty.");
  const name = quote(tokenText(ui.trace.source, best));
  const effect = effects[best];
  const first =
    effect === null || effect === undefined
      ? t("{item} has the largest weight, {weight}.", { item: name, weight: formatNumber(weights[best]!) })
      : t(
          effect >= 0
            ? "{item} has the largest effect: without it the score would be {amount} lower."
            : "{item} has the largest effect: without it the score would be {amount} higher.",
          { item: name, amount: formatNumber(Math.abs(effect)) },
        );
  const free = record.mass === "free" ? ` ${t("The weights need not sum to 1.")}` : "";
  return `${first}${free} ${t("The history has {n} items; their order does not matter.", { n: formatCount(weights.length) })}`;
}

function bars(
  ui: Ui,
  weights: readonly number[],
  effects: readonly (number | null)[],
  order: readonly number[],
  chosen: number,
): Children {
  const largest = Math.max(...weights);
  const scale = Math.max(...effects.map((effect) => Math.abs(effect ?? 0)));
  const rows = order.slice(0, MAX_ITEMS).map((i): Row => {
    const effect = effects[i] ?? null;
    return {
      label: tokenText(ui.trace.source, i),
      ariaLabel: null,
      classes: i === chosen ? "chosen" : "",
      click: () => ui.setState({ position: i }),
      cell: [
        hiddenText(t("weight")),
        bar(weights[i]!, largest),
        value(weights[i]!),
        hiddenText(effectName()),
        effect === null ? h("span", { class: "n light" }, t("not computed")) : bar(effect, scale, true),
        effect === null ? h("span", {}) : value(effect),
      ],
      attributes: { "data-item": i },
    };
  });
  const hidden = order.length - rows.length;
  return [
    h(
      "div",
      { class: "history-heads", "aria-hidden": "true" },
      h("span", {}, t("item of the history")),
      h("span", {}, t("weight")),
      h("span", {}, effectName()),
    ),
    list(ui, "history", t("Items of the history, largest effect first"), rows),
    hidden > 0 &&
      h(
        "p",
        { class: "letters" },
        t("{n} more items with smaller effects are in the table.", { n: formatCount(hidden) }),
      ),
  ];
}

/** For screen readers: others read it above the column. */
const hiddenText = (text: string): Children => h("span", { class: "visually-hidden" }, text);

/** The recommended items that an item of the history affects. */
function itemsOf(
  ui: Ui,
  weights: readonly number[][],
  effects: readonly (readonly (number | null)[])[],
  chosen: number,
): Children {
  const strength = (step: number): number => effects[step]![chosen] ?? weights[step]![chosen]!;
  const order = weights.map((_, step) => step).sort((a, b) => strength(b) - strength(a));
  const scale = Math.max(...order.map((step) => Math.abs(strength(step))));
  const signed = effects.some((row) => row[chosen] != null);
  const rows = order.map((step) => ({
    label: tokenText(ui.trace.target, step),
    ariaLabel: `${signed ? t("effect") : t("weight")} ${formatNumber(strength(step))}`,
    cell: [bar(strength(step), scale, signed), value(strength(step))],
    click: () => ui.setState({ tick: tickAt(ui.timeline, step, 1), position: chosen }),
  }));
  const item = quote(tokenText(ui.trace.source, chosen));
  return [
    h("h3", { dir: "auto" }, signed ? t("Effect of {item}", { item }) : t("Weight of {item}", { item })),
    list(ui, "affected", t("Recommended items, largest effect first"), rows),
  ];
}

function itemTable(
  ui: Ui,
  weights: readonly number[],
  effects: readonly (number | null)[],
  order: readonly number[],
): Children {
  return dataTable({
    caption: t("Every item of the history"),
    corner: t("item"),
    columns: [t("weight"), effectName()],
    rows: order.map((i) => ({
      label: tokenText(ui.trace.source, i),
      values: [weights[i]!, effects[i] ?? null],
    })),
  });
}
