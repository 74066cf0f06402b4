/** What inputs and outputs are called, by task. */
import { t } from "./i18n";
import type { SiteRecord, Trace } from "./trace";

/** Singular and plural. */
export type Noun = readonly [string, string];

export interface TaskWords {
  readonly output: string; // one output token
  readonly outputs: string; // several of them
  readonly outputNoun: Noun; // the same, next to inputs
  readonly inputNoun: Noun;
  readonly match: string; // completes "How well does each input word …?"
  readonly combine: string; // what happens to the context
  readonly choose: string; // how the output is chosen
  readonly caveat: string; // completes "Weights do not explain why …"
}

const generation = (): TaskWords => ({
  output: t("word"),
  outputs: t("words"),
  outputNoun: [t("output word"), t("output words")],
  inputNoun: [t("input word"), t("input words")],
  match: t("match the query"),
  combine: t("The context is combined with the decoder's state."),
  choose: t("Every word of the vocabulary gets a probability; one is generated."),
  caveat: t("it generated a word"),
});
const otherTasks: Record<string, () => TaskWords> = {
  recommend: () => ({
    output: t("item"),
    outputs: t("items"),
    outputNoun: [t("recommended item"), t("recommended items")],
    inputNoun: [t("item of the history"), t("items of the history")],
    match: t("match the recommended item"),
    combine: t("The context is compared with the recommended item."),
    choose: t("The higher the score, the more likely the item."),
    caveat: t("it recommended an item"),
  }),
  read: () => ({
    output: t("word"),
    outputs: t("words"),
    outputNoun: [t("next word"), t("next words")],
    inputNoun: [t("earlier word"), t("earlier words")],
    match: t("match the query"),
    combine: t("The context is combined with the word just read."),
    choose: t("Every word of the vocabulary gets a probability; the text continues with one of them."),
    caveat: t("it expected a word"),
  }),
  classify: () => ({
    output: t("label"),
    outputs: t("labels"),
    outputNoun: [t("label"), t("labels")],
    inputNoun: [t("input word"), t("input words")],
    match: t("match the query"),
    combine: t("The context is the vector of the whole text."),
    choose: t("Every label gets a probability; the most likely is the prediction."),
    caveat: t("it predicted a label"),
  }),
};

export const taskWords = (trace: Trace): TaskWords => (otherTasks[trace.model.task] ?? generation)();

/** What input tokens are called; those of an image are regions. */
export const inputNoun = (trace: Trace): Noun =>
  trace.source.image != null ? [t("region"), t("regions")] : taskWords(trace).inputNoun;

/** What the queries and keys of a site are called, as `Trace.table` in Python. */
export const siteNouns = (trace: Trace, record: SiteRecord): { query: Noun; key: Noun } => ({
  query: record.query_side === "target" ? taskWords(trace).outputNoun : inputNoun(trace),
  key: record.key_side === "target" ? taskWords(trace).outputNoun : inputNoun(trace),
});
