/** One sentence about each tick, also for screen readers. */
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
    detail.record.key_side === "target" ? ["output position", "output positions"] : inputNoun(ui.trace);
  switch (stage) {
    case 0: {
      if (scores === null) return "This trace does not have the scores.";
      const best = argmax(Array.from(scores, (score, i) => (inside[i] ? score : -Infinity)));
      return `Every ${key} gets a score for how well it matches the query; ${word(best)} has the highest, ${formatNumber(scores[best]!)}.`;
    }
    case 1:
      return detail.edited
        ? `These weights were edited; ${word(top)} has ${formatPercent(weights[top]!)}.`
        : `Scores become weights; ${word(top)} gets ${formatPercent(weights[top]!)}.`;
    case 2:
      return `The context is the sum of the values of all ${keys} times their weights, mostly that of ${word(top)}.`;
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
  if (output === "item") return `${word} has a probability of ${probability}.`;
  if (stepRecord.top.length === 0) return `${word} is generated; the trace does not have other candidates.`;
  const rank =
    stepRecord.rank == null || stepRecord.rank === 0
      ? `the most likely ${output}`
      : `number ${stepRecord.rank + 1} by probability`;
  if (ui.trace.model.task === "read")
    return `${word} comes next in the text: ${rank}, with a probability of ${probability} (${formatNumber(-stepRecord.logp / Math.LN2, 1)} bits).`;
  const verb = stepRecord.forced ? "was forced" : output === "label" ? "is the prediction" : "is generated";
  return `${word} ${verb}: ${rank}, with a probability of ${probability}.`;
}
