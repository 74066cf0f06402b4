/** Recomputes scores, weights and contexts from the trace alone and compares them with the recorded ones. */
import { isKnownMechanism, maxDifference, weightedSum, weightsFromScores, type Extras } from "./equations";
import { attentionSettings, section } from "./settings";
import type { Arrays } from "./tensor";
import { scoreFromTerms } from "./terms";
import type { SiteRecord, Trace } from "./trace";

export const TOLERANCE = 1e-4; // a larger difference is shown in red

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
  if (record.kind === "history") {
    // An item of the history does not attend to itself (He 2018).
    const item = trace.target.tokens[query]?.id;
    return allowed((key) => item == null || trace.source.tokens[key]?.id !== item);
  }
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

const SOURCE_KEYS = ["cross", "pool", "history"]; // kinds of sites whose keys are the encoder's output

/** The key vectors where the trace has them: without projections they are the encoder's output. */
export function keyVectors(trace: Trace, arrays: Arrays, record: SiteRecord): ArrayLike<number>[] | null {
  const changed = record.keys_from != null || section(trace, "classifier").form === "zhou";
  if (!SOURCE_KEYS.includes(record.kind) || record.query_side !== "target" || changed) return null;
  if (attentionSettings(trace, record).heads > 0 || !arrays.has("source")) return null;
  return trace.source.tokens.map((_, i) => arrays.row("source", i));
}

/** The scores that follow from the trace alone, from their terms. */
export function recomputeScores(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  query: number,
  head: number,
): number[] | null {
  const score = scoreFromTerms(trace, arrays, record, query, head);
  return score && Array.from(arrays.row(record.weights, query, head), (_, key) => score(key));
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
    const recomputed = recomputeScores(trace, arrays, record, query, head);
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

/** The largest differences over all heads of one query of a site. */
export function queryErrors(trace: Trace, arrays: Arrays, record: SiteRecord, query: number): Errors {
  let errors = NO_ERRORS;
  for (let head = 0; head < record.heads; head++) {
    errors = mergeErrors(errors, recompute(trace, arrays, record, query, head).errors);
  }
  return errors;
}

/** The largest differences over all queries and heads of a site. */
export function siteErrors(trace: Trace, arrays: Arrays, record: SiteRecord): Errors {
  const queries = trace.tensors[record.weights]!.shape[0]!;
  return Array.from({ length: queries }, (_, query) => queryErrors(trace, arrays, record, query)).reduce(
    mergeErrors,
    NO_ERRORS,
  );
}

/** The largest of all errors, which decides between green and red. */
export function largestError(errors: Errors): number | null {
  return [errors.scores, errors.weights, errors.context, errors.rowSum].reduce(maxError, null);
}

export const isWithinTolerance = (error: number): boolean => error <= TOLERANCE;
