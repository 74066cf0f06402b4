/** One sentence about each tick, also for screen readers. */
import { t } from "../i18n";
import { argmax, type StepDetail } from "../detail";
import { formatNumber, formatPercent, quote, tokenText } from "../format";
import { inputNoun, taskWords } from "../nouns";
import { positionName } from "../regions";
import type { Ui } from "../ui";

export function narrateStage(ui: Ui, detail: StepDetail): string {
  const { weights, scores, step, keySide, stage, inside } = detail;
  const word = (i: number): string => positionName(keySide, i);
  const top = argmax(weights);
  const [key, keys] =
    detail.record.key_side === "target" ? [t("output position"), t("output positions")] : inputNoun(ui.trace);
  switch (stage) {
    case 0: {
      if (scores === null) return t("This trace does not have the scores.");
      const best = argmax(Array.from(scores, (score, i) => (inside[i] ? score : -Infinity)));
      return t(
        "Every {noun} gets a score for how well it matches the query; {best} has the highest, {score}.",
        {
          noun: key,
          best: word(best),
          score: formatNumber(scores[best]!),
        },
      );
    }
    case 1:
      return detail.edited
        ? t("These weights were edited; {top} has {share}.", {
            top: word(top),
            share: formatPercent(weights[top]!),
          })
        : t("Scores become weights; {top} gets {share}.", {
            top: word(top),
            share: formatPercent(weights[top]!),
          });
    case 2:
      return t(
        "The context is the sum of the values of all {nouns} times their weights, mostly that of {top}.",
        {
          nouns: keys,
          top: word(top),
        },
      );
    case 3:
      return taskWords(ui.trace).combine;
    default:
      return narrateOutput(ui, step);
  }
}

export function narrateOutput(ui: Ui, step: number): string {
  const stepRecord = ui.trace.steps[step]!;
  const word = quote(tokenText(ui.trace.target, step));
  const { output } = taskWords(ui.trace);
  const probability = formatPercent(Math.exp(stepRecord.logp));
  if (ui.trace.model.task === "recommend")
    return t("{word} has a probability of {probability}.", { word, probability });
  if (stepRecord.top.length === 0)
    return t("{word} is generated; the trace does not have other candidates.", { word });
  const rank =
    stepRecord.rank == null || stepRecord.rank === 0
      ? t("the most likely {output}", { output })
      : t("number {n} by probability", { n: stepRecord.rank + 1 });
  if (ui.trace.model.task === "read")
    return t("{word} comes next in the text: {rank}, with a probability of {probability} ({bits} bits).", {
      word,
      rank,
      probability,
      bits: formatNumber(-stepRecord.logp / Math.LN2, 1),
    });
  const sentence = stepRecord.forced
    ? "{word} was forced: {rank}, with a probability of {probability}."
    : ui.trace.model.task === "classify"
      ? "{word} is the prediction: {rank}, with a probability of {probability}."
      : "{word} is generated: {rank}, with a probability of {probability}.";
  return t(sentence, { word, rank, probability });
}
