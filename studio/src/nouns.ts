/** What inputs and outputs are called, by task. */
import type { SiteRecord, Trace } from "./trace";

/** Singular and plural. */
export type Noun = readonly [string, string];

export interface TaskWords {
  readonly output: string; // one output token
  readonly outputNoun: Noun; // the same, next to inputs
  readonly inputNoun: Noun;
  readonly match: string; // completes "How well does each input word …?"
  readonly combine: string; // what happens to the context
  readonly choose: string; // how the output is chosen
  readonly caveat: string; // completes "Weights do not explain why …"
}

const GENERATION: TaskWords = {
  output: "word",
  outputNoun: ["output word", "output words"],
  inputNoun: ["input word", "input words"],
  match: "match the query",
  combine: "The context is combined with the decoder's state.",
  choose: "Every word of the vocabulary gets a probability; one is generated.",
  caveat: "it generated a word",
};
const OTHER_TASKS: Record<string, TaskWords> = {
  recommend: {
    output: "item",
    outputNoun: ["recommended item", "recommended items"],
    inputNoun: ["item of the history", "items of the history"],
    match: "match the recommended item",
    combine: "The context is compared with the recommended item.",
    choose: "The higher the score, the more likely the item.",
    caveat: "it recommended an item",
  },
  read: {
    output: "word",
    outputNoun: ["next word", "next words"],
    inputNoun: ["earlier word", "earlier words"],
    match: "match the query",
    combine: "The context is combined with the word just read.",
    choose: "Every word of the vocabulary gets a probability; the text continues with one of them.",
    caveat: "it expected a word",
  },
  classify: {
    output: "label",
    outputNoun: ["label", "labels"],
    inputNoun: ["input word", "input words"],
    match: "match the query",
    combine: "The context is the vector of the whole text.",
    choose: "Every label gets a probability; the most likely is the prediction.",
    caveat: "it predicted a label",
  },
};

export const taskWords = (trace: Trace): TaskWords => OTHER_TASKS[trace.model.task] ?? GENERATION;

/** What input tokens are called; those of an image are regions. */
export const inputNoun = (trace: Trace): Noun =>
  trace.source.image != null ? ["region", "regions"] : taskWords(trace).inputNoun;

/** What the queries and keys of a site are called, as `Trace.table` in Python. */
export const siteNouns = (trace: Trace, record: SiteRecord): { query: Noun; key: Noun } => ({
  query: record.query_side === "target" ? taskWords(trace).outputNoun : inputNoun(trace),
  key: record.key_side === "target" ? taskWords(trace).outputNoun : inputNoun(trace),
});
