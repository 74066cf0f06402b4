/** What things are called: a model writes words, gives a text a label, or recommends items. */
import type { Trace } from "./trace";

export interface Speech {
  readonly one: string; // what is written
  readonly read: string; // what is read
  readonly asks: string; // how each of these is asked about
  readonly joins: string; // what comes of a look
  readonly chosen: string; // how one is found among all
  readonly why: string; // what weights do not explain
}

const WORDS: Speech = {
  one: "word",
  read: "input word",
  asks: "fit what the decoder asks for",
  joins: "What was read joins what the decoder already knows.",
  chosen: "Every word of the vocabulary gets a probability; one is written.",
  why: "it wrote a word",
};
const OTHERS: Record<string, Speech> = {
  recommend: {
    one: "item",
    read: "item of the history",
    asks: "fit the item in question",
    joins: "What was read is compared with the item in question.",
    chosen: "The higher its score, the likelier is the item to be taken.",
    why: "it chose an item",
  },
  classify: {
    one: "label",
    read: "input word",
    asks: "fit what is asked for",
    joins: "What was read stands for the whole text.",
    chosen: "Every label gets a probability; the likeliest is the answer.",
    why: "it chose a label",
  },
};

export const speech = (trace: Trace): Speech => OTHERS[trace.model.task] ?? WORDS;

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
