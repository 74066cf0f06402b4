/** What the page computes again from the trace alone, and how far it is from what was recorded. */
import { apart, dot, mixture, placed, type Attention, type Extra } from "./maths";
import type { Arrays } from "./tensor";
import type { Looks, Trace } from "./trace";

export const TOLERANCE = 1e-4; // a larger difference is shown in red

export const DEFAULTS: Attention = {
  score: "",
  normaliser: "softmax",
  placement: "global",
  heads: 0,
  bias: false,
  coverage: false,
  beta: 0.5,
  window: 10,
  renormalise: false,
  generate: "expectation",
};

type Settings = Record<string, unknown>;

export function section(trace: Trace, name: "encoder" | "decoder" | "attention" | "classifier"): Settings {
  return (trace.model.settings[name] ?? {}) as Settings;
}

/** The recipe's words for a site: Transformers and pointers look by plain softmax. */
export function attentionOf(trace: Trace, looks: Looks): Attention {
  if (looks.site === "copy") return { ...DEFAULTS, score: "general" };
  if (looks.kind === "self" || section(trace, "decoder").kind === "transformer") {
    return { ...DEFAULTS, score: "scaled-dot", heads: looks.heads };
  }
  return { ...DEFAULTS, ...section(trace, "attention") };
}

/** What asks, in words. */
export function askerOf(trace: Trace): string {
  if (trace.model.task === "recommend") return "the item in question";
  if (trace.model.task === "classify") {
    const { query } = section(trace, "classifier") as { query?: string };
    return query === "final" ? "the reader's last state" : "a learned vector";
  }
  const { kind, order } = section(trace, "decoder") as { kind?: string; order?: string };
  if (kind === "transformer" || kind === "conv") return "what the decoder has so far";
  if (kind === "abs") return "the last words written";
  if (kind === undefined) return "what asks";
  return order?.startsWith("look") ? "the decoder's state before this word" : "the decoder's state";
}

const BY_HAND = ["set", "onehot", "zero", "uniform", "permute", "gold", "mask-head"];

/** Were the weights of this site changed by hand at this step? An edit without a site is the alignment's. */
export function edited(trace: Trace, looks: Looks, step: number): boolean {
  return trace.edits.some(
    (edit) =>
      BY_HAND.includes(edit.op) &&
      (edit.site ?? trace.alignment) === looks.site &&
      (edit.step == null || edit.step === step),
  );
}

/** What a query of this site may read. */
export function allowed(trace: Trace, arrays: Arrays, looks: Looks, query: number): boolean[] {
  const keys = trace.tensors[looks.weight]!.shape[2]!;
  const mask = looks.mask == null ? null : arrays.get(looks.mask).data;
  if (looks.kind === "pool" && looks.asks === "source") {
    const ends = arrays.get("ends").data; // the last word of a sentence reads it, and nobody else
    const first = ends.slice(0, query).lastIndexOf(1) + 1;
    const own = (key: number) => ends[query] === 1 && first <= key && key <= query;
    return Array.from({ length: keys }, (_, key) => (mask === null || mask[key] !== 0) && own(key));
  }
  const ahead = looks.kind === "self" && (looks.asks === "target" || trace.model.task === "read");
  const last = looks.kind === "tape" ? query - 1 : ahead ? query : keys; // a tape holds what came before
  return Array.from({ length: keys }, (_, key) => (mask === null || mask[key] !== 0) && key <= last);
}

export function extraOf(arrays: Arrays, looks: Looks, query: number, head: number): Extra {
  const found: Extra = {};
  for (const name of ["centre", "sample"] as const) {
    const tensor = looks.extra[name];
    if (tensor !== undefined) found[name] = arrays.get(tensor).data[query * looks.heads + head]!;
  }
  return found;
}

/** The score of a tape's empty slot, which is no position; nothing where there is none. */
function slotOf(arrays: Arrays, looks: Looks, query: number, head: number): number[] {
  const tensor = looks.extra["slot"];
  return tensor === undefined ? [] : [arrays.get(tensor).data[query * looks.heads + head]!];
}

/** What a query was compared with, where the trace has it: without projections, the source as it was read. */
export function keysOf(trace: Trace, arrays: Arrays, looks: Looks): ArrayLike<number>[] | null {
  if (looks.kind !== "cross" || attentionOf(trace, looks).heads > 0 || !arrays.has("source")) return null;
  return trace.source.tokens.map((_, i) => arrays.row("source", i));
}

/** Scores that follow from what the trace has: dot products without projections. */
export function scoresOf(trace: Trace, arrays: Arrays, looks: Looks, query: number): number[] | null {
  const { score } = attentionOf(trace, looks);
  const keys = keysOf(trace, arrays, looks);
  if (looks.query == null || keys === null || looks.site === "copy") return null;
  if (score !== "dot" && score !== "scaled-dot") return null;
  const asked = arrays.row(looks.query, query);
  const scale = score === "dot" ? 1 : 1 / Math.sqrt(asked.length);
  return keys.map((key) => dot(asked, key) * scale);
}

/** Largest differences of one query and head; null: the trace does not have what it takes. */
export interface Again {
  score: number | null;
  softmax: number | null;
  context: number | null;
  sum: number | null;
  weights: number[] | null; // made here
  mixed: number[] | null; // made here
}

export function again(trace: Trace, arrays: Arrays, looks: Looks, query: number, head: number): Again {
  const found: Again = { score: null, softmax: null, context: null, sum: null, weights: null, mixed: null };
  const weights = arrays.row(looks.weight, query, head);
  const byHand = edited(trace, looks, query);
  if (!byHand) found.sum = sumApart(looks, weights);
  if (looks.score != null) {
    const scores = arrays.row(looks.score, query, head);
    const open = allowed(trace, arrays, looks, query);
    const how = attentionOf(trace, looks);
    const slot = slotOf(arrays, looks, query, head);
    found.weights = placed(
      [...Array.from(scores), ...slot],
      [...open, ...slot.map(() => true)],
      how,
      query,
      extraOf(arrays, looks, query, head),
    ).slice(0, scores.length);
    if (!byHand) found.softmax = apart(found.weights, weights);
    const made = scoresOf(trace, arrays, looks, query);
    if (made !== null)
      found.score = apart(
        made.map((value, i) => (open[i] ? value : scores[i]!)),
        scores,
      );
  }
  if (looks.context != null && looks.value != null) {
    const values = Array.from({ length: weights.length }, (_, i) => arrays.row(looks.value!, i, head));
    found.mixed = mixture(weights, values);
    found.context = apart(found.mixed, arrays.row(looks.context, query, head));
  }
  return found;
}

/** How far a row is from summing to what its site promises; a query that may read nothing has zeros. */
function sumApart(looks: Looks, weights: ArrayLike<number>): number | null {
  const sum = Array.from(weights).reduce((a, b) => a + b, 0);
  if (looks.mass === "free") return null;
  if (looks.mass === "at_most_one") return Math.max(0, sum - 1);
  return sum === 0 ? 0 : Math.abs(sum - 1);
}

/** The largest differences over all queries, heads and sites; what is null was nowhere in the trace. */
export interface Verdict {
  score: number | null;
  softmax: number | null;
  context: number | null;
  sum: number | null;
}

export const NOTHING: Verdict = { score: null, softmax: null, context: null, sum: null };

export function worst(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Number.isNaN(a) || Number.isNaN(b) ? NaN : Math.max(a, b);
}

export function siteVerdict(trace: Trace, arrays: Arrays, looks: Looks): Verdict {
  let verdict = NOTHING;
  const queries = trace.tensors[looks.weight]!.shape[0]!;
  for (let query = 0; query < queries; query++) {
    for (let head = 0; head < looks.heads; head++) {
      verdict = joined(verdict, again(trace, arrays, looks, query, head));
    }
  }
  return verdict;
}

export function joined(a: Verdict, b: Verdict): Verdict {
  return {
    score: worst(a.score, b.score),
    softmax: worst(a.softmax, b.softmax),
    context: worst(a.context, b.context),
    sum: worst(a.sum, b.sum),
  };
}

/** The one number that decides between green and red. */
export function largest(verdict: Verdict): number | null {
  return [verdict.score, verdict.softmax, verdict.context, verdict.sum].reduce(worst, null);
}

export const agrees = (value: number): boolean => value <= TOLERANCE;
