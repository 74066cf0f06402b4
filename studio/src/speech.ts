/** What things are called: a model writes words, gives a text a label, or recommends items. */
import type { Looks, Trace } from "./trace";

/** One, and many. */
export type Named = readonly [string, string];

export interface Speech {
  readonly one: string; // what is written
  readonly said: Named; // the same, beside what is read
  readonly read: Named; // what is read
  readonly asks: string; // how each of these is asked about
  readonly joins: string; // what comes of a look
  readonly chosen: string; // how one is found among all
  readonly why: string; // what weights do not explain
}

const WORDS: Speech = {
  one: "word",
  said: ["output word", "output words"],
  read: ["input word", "input words"],
  asks: "fit what the decoder asks for",
  joins: "What was read joins what the decoder already knows.",
  chosen: "Every word of the vocabulary gets a probability; one is written.",
  why: "it wrote a word",
};
const OTHERS: Record<string, Speech> = {
  recommend: {
    one: "item",
    said: ["recommended item", "recommended items"],
    read: ["item of the history", "items of the history"],
    asks: "fit the item in question",
    joins: "What was read is compared with the item in question.",
    chosen: "The higher its score, the likelier is the item to be taken.",
    why: "it chose an item",
  },
  classify: {
    one: "label",
    said: ["label", "labels"],
    read: ["input word", "input words"],
    asks: "fit what is asked for",
    joins: "What was read stands for the whole text.",
    chosen: "Every label gets a probability; the likeliest is the answer.",
    why: "it chose a label",
  },
};

export const speech = (trace: Trace): Speech => OTHERS[trace.model.task] ?? WORDS;

/** What was read: regions of a picture, too. */
export const readIn = (trace: Trace): Named =>
  trace.source.image != null ? ["region", "regions"] : speech(trace).read;

/** What stands on the two axes of a site's weights, as `Trace.table` says it. */
export const axesOf = (trace: Trace, looks: Looks): { asks: Named; reads: Named } => ({
  asks: looks.asks === "target" ? speech(trace).said : readIn(trace),
  reads: looks.reads === "target" ? speech(trace).said : readIn(trace),
});

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
