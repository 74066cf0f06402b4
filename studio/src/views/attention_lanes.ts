/** The first three lanes of the Walk: scores, weights, context. */
import { rich, t, type Text } from "../i18n";
import { queryMeaning } from "../settings";
import type { StepDetail } from "../detail";
import { h, type Children } from "../dom";
import { bar, list, type Row } from "../figures/list";
import { barStrip, maxAbs, vector } from "../figures/vector";
import { formatCount, formatDifference, formatNumber, tokenText } from "../format";
import {
  contextNumbers,
  contextRule,
  scoreNumbers,
  scoreRule,
  shownShift,
  weightNumbers,
  weightRule,
} from "../formulas";
import { inputNoun, taskWords } from "../nouns";
import { positionLabel, positionName } from "../regions";
import type { Ui } from "../ui";
import { badge } from "./badge";

export interface Lane {
  readonly title: string;
  readonly summary: Children;
  readonly rules: Children; // the formula
  readonly numbers: Children; // the formula with the step's numbers
  readonly body: Children;
  readonly footer: Children;
}

export const needsDetail = (): string =>
  t(
    "This trace has weights only. Record it with --detail steps (or full, for every site) to see these numbers.",
  );
const MIN_DRAWN_WEIGHT = 0.01; // vectors with a smaller weight would be flat lines

function makeRows(
  ui: Ui,
  detail: StepDetail,
  make: (i: number) => Pick<Row, "ariaLabel" | "cell" | "attributes">,
): Row[] {
  return detail.keySide.tokens.map((_, i) => ({
    label: positionLabel(detail.keySide, i),
    classes: [i === detail.position && "chosen", !detail.allowed[i] && "masked"].filter(Boolean).join(" "),
    click: () => ui.setState({ position: i }),
    ...make(i),
  }));
}

/** What one key is called. */
const keyNoun = ({ trace }: Ui, { record }: StepDetail): string =>
  record.key_side === "target" ? t("earlier output position") : inputNoun(trace)[0];

export const value = (amount: number, text = formatNumber(amount)): Children =>
  h("span", { class: "n", "data-v": String(amount) }, text);

const noValue = (allowed: boolean): Children =>
  h("span", { class: "n none" }, allowed ? t("outside the window") : t("masked"));

export function scoreLane(ui: Ui, detail: StepDetail): Lane {
  const { scores, inside, allowed, query, keys, position, keySide } = detail;
  const rule = scoreRule(detail);
  const word = tokenText(keySide, position);
  const noun = keyNoun(ui, detail);
  const sizes = Array.from(scores ?? [], (score, i) => (inside[i] ? Math.abs(score) : 0));
  const scale = scores === null ? 1 : Math.max(...sizes);
  const rows =
    scores === null
      ? []
      : makeRows(ui, detail, (i) => ({
          ariaLabel: inside[i] ? `${t("score")} ${formatNumber(scores[i]!)}` : t("masked"),
          cell: inside[i] ? [bar(scores[i]!, scale, true), value(scores[i]!)] : noValue(allowed[i]!),
          attributes: { "data-id": `e${i}`, "data-from": `q k${i}` },
        }));
  const recorded = ui.trace.checks?.scores;
  return {
    title: t("Score"),
    summary: t("How well does each {noun} {match}?", { noun, match: taskWords(ui.trace).match }),
    rules: rule && [rule.rule, h("p", { class: "letters" }, rule.meaning)],
    numbers: scoreNumbers(detail, word),
    body:
      scores === null
        ? h("p", { class: "note" }, needsDetail())
        : list(ui, "scores", t("Scores, one per {noun}", { noun }), rows),
    footer: [
      query &&
        vector({ id: "q", symbol: "q", meaning: `${t("query")}: ${queryMeaning(ui.trace)}`, values: query }),
      keys &&
        vector({
          id: `k${position}`,
          symbol: "k",
          meaning: t("key of {position}", { position: positionName(keySide, position) }),
          values: keys[position]!,
        }),
      detail.recomputed.errors.scores !== null && badge(detail.recomputed.errors.scores, ""),
      detail.recomputed.errors.scores === null &&
        recorded != null &&
        h(
          "p",
          { class: "badge plain" },
          t("Recomputed from the model's parameters when recorded: largest difference {difference}", {
            difference: formatDifference(recorded),
          }),
        ),
    ],
  };
}

const NORMALIZER_TITLES: Record<string, Text> = {
  softmax: "Softmax",
  "smoothed-softmax": "Smoothed softmax",
  sparsemax: "Sparsemax",
  entmax15: "Entmax",
};

const MAX_LINKED_SCORES = 200; // with more keys only a key's own score is highlighted

export function weightLane(ui: Ui, detail: StepDetail): Lane {
  const { weights, allowed, inside, position, keySide, settings } = detail;
  const sum = Array.from(weights).reduce((a, b) => a + b, 0);
  const rule = detail.scores === null ? null : weightRule(detail);
  const shift = detail.edited ? null : shownShift(detail);
  const noun = keyNoun(ui, detail);
  const allScores = Array.from(weights, (_, j) => `e${j}`).join(" ");
  const rows = makeRows(ui, detail, (i) => ({
    ariaLabel: allowed[i] ? `${t("weight")} ${formatNumber(weights[i]!)}` : t("masked"),
    cell:
      allowed[i] && (inside[i] || weights[i]! > 0)
        ? [bar(weights[i]!, 1), value(weights[i]!)]
        : noValue(allowed[i]!),
    attributes: {
      "data-id": `a${i}`,
      "data-from": weights.length > MAX_LINKED_SCORES ? `e${i}` : allScores,
    },
  }));
  return {
    title: t(
      settings.placement === "uniform" ? "Uniform" : (NORMALIZER_TITLES[settings.normalizer] ?? "Softmax"),
    ),
    summary: t("Scores become attention weights, one per {noun}.", { noun }),
    rules: rule && [rule.rule, h("p", { class: "letters" }, rule.meaning)],
    numbers: [
      weightNumbers(detail, tokenText(keySide, position)),
      shift !== null &&
        h(
          "p",
          { class: "letters" },
          rich("Scores are shown relative to the largest, {shift}: same weights.", { shift: value(shift) }),
        ),
    ],
    body: list(ui, "weights", t("Weights, one per {noun}", { noun }), rows),
    footer: [
      h("p", { class: "sum" }, `${t("sum")} `, value(sum)),
      detail.edited
        ? h("p", { class: "badge plain" }, t("✎ Edited at this step: not compared with the scores."))
        : badge(
            detail.recomputed.errors.weights,
            t("This trace has no scores to recompute the weights from."),
          ),
    ],
  };
}

export function contextLane(ui: Ui, detail: StepDetail): Lane {
  const { weights, values, context, recomputed, allowed } = detail;
  const scale = values === null ? 1 : Math.max(...values.map(maxAbs));
  const isDrawn = (i: number): boolean => weights[i]! >= MIN_DRAWN_WEIGHT;
  const rows =
    values === null
      ? []
      : makeRows(ui, detail, (i) => ({
          ariaLabel: t("{weight} times {n} numbers", {
            weight: formatNumber(weights[i]!),
            n: formatCount(values[i]!.length),
          }),
          cell: !allowed[i]
            ? noValue(false)
            : [
                h(
                  "span",
                  { class: isDrawn(i) ? "n times" : "n times light" },
                  `${formatNumber(weights[i]!)} ×`,
                ),
                isDrawn(i)
                  ? barStrip(values[i]!, scale, weights[i]!)
                  : h("span", { class: "blank", "aria-hidden": "true" }),
              ],
          attributes: { "data-id": `v${i}`, "data-from": `a${i} k${i}` },
        }));
  const from = Array.from(weights, (_, i) => (isDrawn(i) ? `a${i} v${i}` : ""))
    .join(" ")
    .trim();
  return {
    title: t("Context"),
    summary: t("The sum of the values, one per {noun}, times their weights.", { noun: keyNoun(ui, detail) }),
    rules: [
      contextRule(),
      values &&
        h("p", { class: "letters" }, t("v: value vectors, scaled by their weights; none drawn under 1 %.")),
    ],
    numbers: contextNumbers(detail),
    body:
      values === null
        ? h("p", { class: "note" }, needsDetail())
        : list(ui, "values", t("Values times their weights"), rows),
    footer: [
      context && vector({ id: "context", symbol: "c", meaning: t("context"), values: context, from }),
      values !== null && badge(recomputed.errors.context, t("This trace does not have the context.")),
    ],
  };
}
