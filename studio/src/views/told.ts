/** Each tick in one sentence, for the ear and for the eye. */
import { number, percent, piece, quoted } from "../format";
import { heaviest, type Moment } from "../moment";
import { readIn, speech } from "../speech";
import type { Ui } from "../ui";

export function told(ui: Ui, moment: Moment): string {
  const { weights, scores, step, reads, stage, inside } = moment;
  const word = (i: number): string => quoted(piece(reads, i));
  const top = heaviest(weights);
  const [ask, all] = moment.looks.reads === "target" ? ["output place", "output places"] : readIn(ui.trace);
  switch (stage) {
    case 0: {
      if (scores === null) return "This trace does not hold the scores.";
      const open = Array.from(scores, (score, i) => (inside[i] ? score : -Infinity));
      const best = heaviest(open);
      return `Every ${ask} gets a score for how well it can ${speech(ui.trace).asks}; ${word(best)} has the highest, ${number(scores[best]!)}.`;
    }
    case 1:
      return moment.byHand
        ? `These weights were set by hand; ${word(top)} has ${percent(weights[top]!)}.`
        : `Scores become weights; ${word(top)} gets ${percent(weights[top]!)} of them.`;
    case 2:
      return `The vectors of all ${all} are mixed by their weights, mostly that of ${word(top)}. The mixture is called the context.`;
    case 3:
      return speech(ui.trace).joins;
    default:
      return toldWord(ui, step);
  }
}

export function toldWord(ui: Ui, step: number): string {
  const record = ui.trace.steps[step]!;
  const word = quoted(piece(ui.trace.target, step));
  const { one } = speech(ui.trace);
  if (one === "item") return `${word} is taken with a probability of ${percent(Math.exp(record.logp))}.`;
  if (record.top.length === 0) return `${word} is written; the trace does not say what else was likely.`;
  const place =
    record.rank == null || record.rank === 0
      ? `the likeliest ${one}`
      : `number ${record.rank + 1} in likelihood`;
  const how = record.forced ? "was given, not chosen" : one === "label" ? "is the answer" : "is written";
  return `${word} ${how}: ${place}, with a probability of ${percent(Math.exp(record.logp))}.`;
}
