/** Recomputes scores, weights and contexts from the trace alone and compares them with the recorded ones. */
import {
  dot,
  isKnownMechanism,
  maxDifference,
  weightedSum,
  weightsFromScores,
  type AttentionSettings,
  type Extras,
} from "./equations";
import type { Arrays } from "./tensor";
import type { SiteRecord, Trace } from "./trace";

export const TOLERANCE = 1e-4; // a larger difference is shown in red

export const DEFAULT_SETTINGS: AttentionSettings = {
  score: "",
  normalizer: "softmax",
  placement: "global",
  heads: 0,
  bias: false,
  coverage: false,
  beta: 0.5,
  window: 10,
  renormalize: false,
  hard_inference: "expectation",
};

type Section = Record<string, unknown>;

export function section(trace: Trace, name: "encoder" | "decoder" | "attention" | "classifier"): Section {
  return (trace.model.settings[name] ?? {}) as Section;
}

/** The settings of a site: Transformers and pointers have their own, the rest those of the recipe. */
export function attentionSettings(trace: Trace, record: SiteRecord): AttentionSettings {
  if (record.site === "copy") return { ...DEFAULT_SETTINGS, score: "general" };
  if (record.kind === "self" || section(trace, "decoder").kind === "transformer") {
    return { ...DEFAULT_SETTINGS, score: "scaled-dot", heads: record.heads };
  }
  return { ...DEFAULT_SETTINGS, ...usable(section(trace, "attention")) };
}

/** The settings that this page knows, as far as they have the right type. */
function usable(settings: Section): Partial<AttentionSettings> {
  const defaults: Section = { ...DEFAULT_SETTINGS };
  return Object.fromEntries(
    Object.keys(defaults)
      .filter((name) => typeof settings[name] === typeof defaults[name])
      .filter((name) => !(typeof settings[name] === "string" && settings[name] in Object.prototype))
      .map((name) => [name, settings[name]]),
  );
}

/** A description of the query vector. */
export function queryMeaning(trace: Trace): string {
  if (trace.model.task === "recommend") return "the recommended item";
  if (trace.model.task === "classify") {
    const { query } = section(trace, "classifier") as { query?: string };
    return query === "final" ? "the encoder's final state" : "a learned vector";
  }
  const { kind, step_order } = section(trace, "decoder") as { kind?: string; step_order?: string };
  if (kind === "transformer" || kind === "conv") return "the decoder's hidden state";
  if (kind === "abs") return "the embeddings of the last words";
  if (kind === undefined) return "the query";
  return step_order?.startsWith("attend") ? "the decoder's previous state" : "the decoder's state";
}

const WEIGHT_EDITS = ["set", "onehot", "zero", "uniform", "permute", "gold", "mask-head"];

/** Whether the weights of a site were edited at a step; edits without a site apply to the alignment site. */
export function isEdited(trace: Trace, record: SiteRecord, step: number): boolean {
  return trace.edits.some(
    (edit) =>
      WEIGHT_EDITS.includes(edit.op) &&
      (edit.site ?? trace.alignment_site) === record.site &&
      (edit.step == null || edit.step === step),
  );
}

/** Which keys of a site are not masked for a query. */
export function allowedKeys(trace: Trace, arrays: Arrays, record: SiteRecord, query: number): boolean[] {
  const keys = trace.tensors[record.weights]!.shape[2]!;
  const keep = record.keep == null ? null : arrays.get(record.keep).data;
  const allowed = (test: (key: number) => boolean): boolean[] =>
    Array.from({ length: keys }, (_, key) => (keep === null || keep[key] !== 0) && test(key));
  if (record.kind === "pool" && record.query_side === "source") {
    // The last word of a sentence is its query, the sentence's words are the keys; other words have none.
    if (!arrays.has("sentence_ends")) return allowed(() => true);
    const isEnd = arrays.get("sentence_ends").data;
    const first = isEnd.slice(0, query).lastIndexOf(1) + 1;
    return allowed((key) => isEnd[query] === 1 && first <= key && key <= query);
  }
  if (record.kind === "tape") return allowed((key) => key < query);
  const causal = record.kind === "self" && (record.query_side === "target" || trace.model.task === "read");
  return allowed((key) => !causal || key <= query);
}

export function extrasAt(arrays: Arrays, record: SiteRecord, query: number, head: number): Extras {
  const extras: Extras = {};
  for (const name of ["center", "sample"] as const) {
    const tensor = record.extras[name];
    if (tensor !== undefined) extras[name] = arrays.get(tensor).data[query * record.heads + head]!;
  }
  return extras;
}

/** The score of a tape's empty slot, which is not a position of the text; an empty list where there is none. */
function emptySlotScores(arrays: Arrays, record: SiteRecord, query: number, head: number): number[] {
  const tensor = record.extras["empty_slot"];
  return tensor === undefined ? [] : [arrays.get(tensor).data[query * record.heads + head]!];
}

/** The key vectors where the trace has them: without projections they are the encoder's output. */
export function keyVectors(trace: Trace, arrays: Arrays, record: SiteRecord): ArrayLike<number>[] | null {
  if (record.kind !== "cross" || attentionSettings(trace, record).heads > 0 || !arrays.has("source")) {
    return null;
  }
  return trace.source.tokens.map((_, i) => arrays.row("source", i));
}

/** The scores that follow from the trace alone: dot products without projections. */
export function recomputeScores(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  query: number,
): number[] | null {
  const { score } = attentionSettings(trace, record);
  const keys = keyVectors(trace, arrays, record);
  if (record.query == null || keys === null || record.site === "copy") return null;
  if (score !== "dot" && score !== "scaled-dot") return null;
  const vector = arrays.row(record.query, query);
  const scale = score === "dot" ? 1 : 1 / Math.sqrt(vector.length);
  return keys.map((key) => dot(vector, key) * scale);
}

/** Largest differences; null: the trace lacks the numbers to recompute. */
export interface Errors {
  scores: number | null;
  weights: number | null;
  context: number | null;
  rowSum: number | null;
}

export const NO_ERRORS: Errors = { scores: null, weights: null, context: null, rowSum: null };

/** The recomputed numbers of one query and head, and their differences from the recorded ones. */
export interface Recomputed {
  readonly errors: Errors;
  readonly weights: readonly number[] | null;
  readonly context: readonly number[] | null;
}

export function recompute(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  query: number,
  head: number,
): Recomputed {
  const errors = { ...NO_ERRORS };
  let weights: number[] | null = null;
  let context: number[] | null = null;
  const recorded = arrays.row(record.weights, query, head);
  const edited = isEdited(trace, record, query);
  if (!edited) errors.rowSum = rowSumError(record, recorded);
  const settings = attentionSettings(trace, record);
  if (record.scores != null && isKnownMechanism(settings)) {
    const scores = arrays.row(record.scores, query, head);
    const allowed = allowedKeys(trace, arrays, record, query);
    const slots = emptySlotScores(arrays, record, query, head);
    weights = weightsFromScores(
      [...Array.from(scores), ...slots],
      [...allowed, ...slots.map(() => true)],
      settings,
      query,
      extrasAt(arrays, record, query, head),
    ).slice(0, scores.length);
    if (!edited) errors.weights = maxDifference(weights, recorded);
    const recomputed = recomputeScores(trace, arrays, record, query);
    if (recomputed !== null) {
      const masked = recomputed.map((score, i) => (allowed[i] ? score : scores[i]!));
      errors.scores = maxDifference(masked, scores);
    }
  }
  if (record.context != null && record.values != null) {
    const values = Array.from({ length: recorded.length }, (_, i) => arrays.row(record.values!, i, head));
    context = weightedSum(recorded, values);
    errors.context = maxDifference(context, arrays.row(record.context, query, head));
  }
  return { errors, weights, context };
}

/** The difference of a row's sum from the sum that the site's mass requires; a query without any key has zeros. */
function rowSumError(record: SiteRecord, weights: ArrayLike<number>): number | null {
  const sum = Array.from(weights).reduce((a, b) => a + b, 0);
  if (record.mass === "free") return null;
  if (record.mass === "at_most_one") return Math.max(0, sum - 1);
  return sum === 0 ? 0 : Math.abs(sum - 1);
}

/** The larger of two errors, null counting as none and NaN as the largest. */
function maxError(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Number.isNaN(a) || Number.isNaN(b) ? NaN : Math.max(a, b);
}

export function mergeErrors(a: Errors, b: Errors): Errors {
  return {
    scores: maxError(a.scores, b.scores),
    weights: maxError(a.weights, b.weights),
    context: maxError(a.context, b.context),
    rowSum: maxError(a.rowSum, b.rowSum),
  };
}

/** The largest differences over all queries and heads of a site. */
export function siteErrors(trace: Trace, arrays: Arrays, record: SiteRecord): Errors {
  let errors = NO_ERRORS;
  const queries = trace.tensors[record.weights]!.shape[0]!;
  for (let query = 0; query < queries; query++) {
    for (let head = 0; head < record.heads; head++) {
      errors = mergeErrors(errors, recompute(trace, arrays, record, query, head).errors);
    }
  }
  return errors;
}

/** The largest of all errors, which decides between green and red. */
export function largestError(errors: Errors): number | null {
  return [errors.scores, errors.weights, errors.context, errors.rowSum].reduce(maxError, null);
}

export const isWithinTolerance = (error: number): boolean => error <= TOLERANCE;
