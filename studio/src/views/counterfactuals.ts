/** What-if: the output distribution of a step if one input word had all of the weight, or none. */
import { rich, t, type Text } from "../i18n";
import { h, type Children, type VNode } from "../dom";
import { canvasMatrix } from "../figures/canvas";
import { bar, list, type Row } from "../figures/list";
import { MAX_CELLS, matrix, type MatrixFigure } from "../figures/matrix";
import { cellKey } from "../fold";
import { capitalize, formatNumber, formatPercent, quote, tokenText, withoutMarker } from "../format";
import { imageGrid } from "../figures/image_grid";
import type { Op } from "../link";
import { inputNoun, taskWords } from "../nouns";
import { positionName, thumbnail } from "../regions";
import { positionAt, tickAt } from "../timeline";
import type { Candidate, Counterfactual } from "../trace";
import type { Ui } from "../ui";
import { matrixTable } from "./alignment";
import { stepButtons, toggleButton } from "./selects";

const OPS: readonly (readonly [Op, Text])[] = [
  ["onehot", "all weight on it"],
  ["zero", "no weight on it"],
];

export function counterfactuals(ui: Ui): Children {
  const { trace, state } = ui;
  if (trace.sites.length === 0) {
    return h("p", { class: "note" }, t("This model has no attention, so there are no weights to change."));
  }
  if (trace.counterfactuals.length === 0) {
    return h(
      "p",
      { class: "note" },
      rich(
        "This trace has no counterfactuals, which are computed for short texts only. Record it with {command}.",
        {
          command: h("code", {}, "heedful trace --what-if"),
        },
      ),
    );
  }
  const byCell = new Map(
    trace.counterfactuals
      .filter(({ op }) => op === state.op)
      .map((counterfactual) => [cellKey(counterfactual.step, counterfactual.position), counterfactual]),
  );
  const [step, position] = chosenCell(ui, byCell);
  const figure = makeFigure(ui, byCell, step, position);
  const large = figure.rows.length * figure.columns.length > MAX_CELLS;
  const { image } = trace.source;
  const { task } = trace.model;
  const change =
    task === "recommend"
      ? t("the change of the item's probability by the edit")
      : t(
          "the total variation distance between the output distributions with and without the edit (0: no change; 1: everything changes)",
        );
  const subject =
    task === "recommend" ? t("a recommendation") : trace.steps.length > 1 ? t("a step") : t("the model");
  const prefix =
    trace.steps.length > 1 && task !== "recommend" ? `${t("Earlier words stay the same.")} ` : "";
  return [
    h(
      "div",
      { class: "selects" },
      h(
        "div",
        { class: "pair", role: "group", "aria-label": t("Edit") },
        OPS.map(([op, label]) =>
          toggleButton(`op-${op}`, t(label), state.op === op, null, () => ui.setState({ op })),
        ),
      ),
      image == null &&
        toggleButton("numbers", t("numbers"), state.numbers, "N", (numbers) => ui.setState({ numbers })),
      toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on })),
    ),
    h(
      "h2",
      {},
      state.op === "onehot"
        ? t("What if {subject} attended to one {noun} only?", { subject, noun: inputNoun(trace)[0] })
        : t("What if {subject} did not attend to one {noun}?", { subject, noun: inputNoun(trace)[0] }),
    ),
    h(
      "p",
      { class: "legend" },
      `${image == null ? t("Each number is {change}.", { change }) : t("The brightness of a region is {change}.", { change })} ${prefix}${image == null ? t("Choose a cell to see the most likely outputs.") : t("Choose a region to see the most likely outputs.")}`,
    ),
    image != null && stepButtons(ui, step, t("Words of the caption"), { cell: null }),
    h(
      "div",
      { class: "split" },
      image != null
        ? imageGrid(ui, {
            id: "what-if",
            title: t("The image, bright where the edit changes most"),
            image,
            values: figure.values[step]!.map((change) => change ?? 0),
            valueName: t("change"),
            chosen: position,
            pick: (region) => figure.pick(step, region),
          })
        : large
          ? canvasMatrix(ui, figure)
          : h("div", { class: "scroll", tabindex: -1 }, matrix(ui, figure)),
      comparison(ui, byCell.get(cellKey(step, position)), step, position),
    ),
    ((large && image == null) || state.table) && matrixTable(figure),
  ];
}

/** The chosen cell, by default the current step's with the largest change. */
function chosenCell(ui: Ui, byCell: ReadonlyMap<string, Counterfactual>): readonly [number, number] {
  const { cell } = ui.state;
  if (cell !== null && byCell.has(cellKey(...cell))) return cell;
  const { step } = positionAt(ui.timeline, ui.state.tick);
  const ofStep = [...byCell.values()].filter((counterfactual) => counterfactual.step === step);
  const largest = ofStep.reduce<Counterfactual | null>(
    (best, next) => (best === null || next.tvd > best.tvd ? next : best),
    null,
  );
  return [step, largest?.position ?? 0];
}

function makeFigure(
  ui: Ui,
  byCell: ReadonlyMap<string, Counterfactual>,
  step: number,
  position: number,
): MatrixFigure {
  const { source, target } = ui.trace;
  return {
    id: "what-if",
    title: t("Change of the output distribution"),
    rowTitle: taskWords(ui.trace).outputNoun[0],
    columnTitle: inputNoun(ui.trace)[0],
    rows: target.tokens.map((_, t) => tokenText(target, t)),
    columns: source.tokens.map((_, i) => tokenText(source, i)),
    values: target.tokens.map((_, t) => source.tokens.map((_, i) => byCell.get(cellKey(t, i))?.tvd ?? null)),
    valueName: t("change"),
    selected: cellKey(step, position),
    current: step,
    sums: false,
    pick: (row, column) => {
      const { stage } = positionAt(ui.timeline, ui.state.tick);
      ui.setState({ cell: [row, column], tick: tickAt(ui.timeline, row, stage) });
    },
  };
}

/** The most likely outputs with and without the edit. */
function comparison(ui: Ui, edited: Counterfactual | undefined, step: number, position: number): VNode {
  const { trace, state } = ui;
  const { output, outputs } = taskWords(trace);
  const { task } = trace.model;
  const word = quote(tokenText(trace.target, step));
  const input = positionName(trace.source, position);
  if (edited === undefined)
    return h(
      "section",
      { class: "side-panel" },
      h("p", { class: "note" }, t("{input} is masked.", { input: capitalize(input) })),
    );
  const original = originalCandidates(ui, step, edited.top.length);
  const [before, after] = [original[0], edited.top[0]];
  const changes = before !== undefined && after !== undefined && before.text !== after.text;
  const condition =
    state.op === "onehot"
      ? t("With all weight on {input}", { input })
      : t("Without weight on {input}", { input });
  const percent = (candidate: Candidate): string => formatPercent(Math.exp(candidate.logp));
  const outcome =
    task === "recommend"
      ? t("the probability of {word} would be {after} instead of {before}.", {
          word,
          after: percent(after!),
          before: percent(before!),
        })
      : changes
        ? t("the most likely {output} would be {after} instead of {before}.", {
            output,
            after: quote(withoutMarker(after)),
            before: quote(withoutMarker(before)),
          })
        : t("the most likely {output} would still be {after}.", {
            output,
            after: quote(withoutMarker(after ?? before!)),
          });
  return h(
    "section",
    { class: "side-panel", "aria-live": "polite", "aria-labelledby": "comparison-title" },
    h(
      "h3",
      { id: "comparison-title" },
      task === "classify"
        ? `${t("Label")} ${word}`
        : `${task === "recommend" ? t("Item") : t("Step")} ${step + 1}, ${word}`,
    ),
    h(
      "div",
      { class: "region-outcome" },
      trace.source.image != null && thumbnail(trace.source.image, position, "large"),
      h("p", { class: changes ? "outcome changed" : "outcome" }, `${condition}, ${outcome}`),
    ),
    h(
      "p",
      { class: "tvd" },
      `${task === "recommend" ? t("Change of the probability:") : t("Total variation distance:")} `,
      h("b", { "data-v": String(edited.tvd), id: "tvd" }, formatNumber(edited.tvd)),
      task === "recommend"
        ? null
        : ` (${t("{share} of the probability moves", { share: formatPercent(edited.tvd) })})`,
    ),
    h(
      "div",
      { class: "sides" },
      h(
        "div",
        {},
        h("h4", {}, t("original")),
        list(ui, "before", t("Most likely {outputs}, original", { outputs }), makeRows(original, original)),
      ),
      h(
        "div",
        {},
        h("h4", {}, t("edited")),
        list(ui, "after", t("Most likely {outputs}, edited", { outputs }), makeRows(edited.top, original)),
      ),
    ),
  );
}

/** The most likely outputs of a step; a recommender's outputs are independent, so it is the item itself. */
function originalCandidates({ trace }: Ui, step: number, count: number): readonly Candidate[] {
  const { top, logp } = trace.steps[step]!;
  return top.length > 0 ? top.slice(0, count) : [{ text: trace.target.tokens[step]!.text, logp }];
}

/** Candidates with their probabilities; those that are not among the others are marked. */
function makeRows(candidates: readonly Candidate[], others: readonly Candidate[]): Row[] {
  return candidates.map((candidate) => {
    const p = Math.exp(candidate.logp);
    const isNew = !others.some((other) => other.text === candidate.text);
    return {
      label: withoutMarker(candidate),
      ariaLabel: `${t("probability")} ${formatNumber(p)}${isNew ? `, ${t("new")}` : ""}`,
      classes: isNew ? "new" : "",
      cell: [bar(p, 1), h("span", { class: "n", "data-v": String(p) }, formatNumber(p))],
      attributes: { "data-logp": String(candidate.logp) },
    };
  });
}
