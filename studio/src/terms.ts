/** The terms of scores, read-outs and logits: what their sums are made of, from the tensors that traces hold for them. */
import { keyVectors } from "./check";
import type { Vector } from "./equations";
import { attentionSettings } from "./settings";
import type { Arrays } from "./tensor";
import type { SiteRecord, Trace } from "./trace";

/** One term of a score: a product of two numbers, or a weight times an activated sum. */
export interface ScoreTerm {
  readonly value: number;
  readonly factors: readonly [number, number];
  readonly activation: "tanh" | "relu" | null; // of the second factor's addends
  readonly addends: readonly number[]; // without an activation: none
}

const ACTIVATIONS: Record<string, "tanh" | "relu"> = {
  additive: "tanh",
  concat: "tanh",
  "concat-relu": "relu",
  "prod-relu": "relu",
};
const activate = { tanh: Math.tanh, relu: (x: number): number => Math.max(0, x) };

/** The vectors that a score combines: of the query and of one key, as the score uses them. */
interface ScoreVectors {
  readonly query: Vector;
  readonly key: Vector;
}

function scoreVectors(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  query: number,
  head: number,
  key: number,
): ScoreVectors | null {
  const [queries, keys] = [`${record.site}/score_query`, `${record.site}/score_keys`];
  if (!arrays.has(queries) || !arrays.has(keys)) return plainVectors(trace, arrays, record, query, key);
  const pair = { query: arrays.row(queries, query, head), key: arrays.row(keys, key, head) };
  return pair.query.length === pair.key.length ? pair : null;
}

/** Query and key themselves, which dot products without projections multiply. */
function plainVectors(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  query: number,
  key: number,
): ScoreVectors | null {
  const { score } = attentionSettings(trace, record);
  const keys = keyVectors(trace, arrays, record);
  if (record.query == null || keys === null || record.site === "copy") return null;
  if (score !== "dot" && score !== "scaled-dot") return null;
  const pair = { query: arrays.row(record.query, query), key: keys[key] ?? [] };
  return pair.query.length === pair.key.length ? pair : null;
}

/** How much weight a key had in the steps before (See 2017). */
function coverage(arrays: Arrays, record: SiteRecord, query: number, head: number, key: number): number {
  let sum = 0;
  for (let t = 0; t < query; t++) sum += arrays.row(record.weights, t, head)[key]!;
  return sum;
}

/** All terms of the score of a key; null if the trace does not have them. Their sum is the score. */
export function scoreTerms(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  [query, head, key]: readonly [number, number, number],
): ScoreTerm[] | null {
  const settings = attentionSettings(trace, record);
  const vectors = scoreVectors(trace, arrays, record, query, head, key);
  if (vectors === null) return null;
  const activation = ACTIVATIONS[settings.score];
  if (activation === undefined) {
    return productTerms(vectors, settings.score === "scaled-dot" ? Math.sqrt(vectors.query.length) : 1);
  }
  const name = `${record.site}/score_vector`;
  if (!arrays.has(name)) return null;
  const v = arrays.row(name, 0);
  const addends = settings.score === "prod-relu" ? productAddends : sumAddends;
  const covered = arrays.has(`${record.site}/score_coverage`)
    ? coverage(arrays, record, query, head, key)
    : null;
  return Array.from(v, (weight, d): ScoreTerm => {
    const parts = addends(arrays, record, vectors, d);
    if (covered !== null) parts.push(arrays.row(`${record.site}/score_coverage`, 0)[d]! * covered);
    const activated = activate[activation](parts.reduce((a, b) => a + b, 0));
    return { value: weight * activated, factors: [weight, activated], activation, addends: parts };
  });
}

function productTerms({ query, key }: ScoreVectors, divisor: number): ScoreTerm[] {
  return Array.from(query, (a, d) => ({
    value: (a * key[d]!) / divisor,
    factors: [a, key[d]!] as const,
    activation: null,
    addends: [],
  }));
}

const sumAddends = (_: Arrays, __: SiteRecord, { query, key }: ScoreVectors, d: number): number[] => [
  query[d]!,
  key[d]!,
];

/** Row d of `W (q ⊙ k) + b`. */
function productAddends(
  arrays: Arrays,
  record: SiteRecord,
  { query, key }: ScoreVectors,
  d: number,
): number[] {
  const row = arrays.row(`${record.site}/score_matrix`, d);
  let sum = 0;
  for (let i = 0; i < row.length; i++) sum += row[i]! * query[i]! * key[i]!;
  return [sum, arrays.row(`${record.site}/score_bias`, 0)[d]!];
}

/** The score of each key of a query, computed from its terms; null if the trace does not have them. */
export function scoreFromTerms(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  query: number,
  head: number,
): ((key: number) => number) | null {
  if (scoreTerms(trace, arrays, record, [query, head, 0]) === null) return null;
  return (key) =>
    (scoreTerms(trace, arrays, record, [query, head, key]) ?? []).reduce((sum, term) => sum + term.value, 0);
}

/** The terms with the largest absolute values, the sum of the others, and their number. */
export interface LargestTerms<T> {
  readonly largest: readonly T[];
  readonly rest: number;
  readonly others: number;
}

export function largestTerms<T extends { readonly value: number }>(
  terms: readonly T[],
  count: number,
): LargestTerms<T> {
  const order = [...terms].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const rest = order.slice(count);
  return {
    largest: order.slice(0, count),
    rest: rest.reduce((sum, term) => sum + term.value, 0),
    others: rest.length,
  };
}

/** The logit of a step's output: its largest terms, and the log of the sum of all exponentiated logits. */
export interface LogitTerms {
  readonly terms: readonly { readonly index: number; readonly weight: number; readonly feature: number }[];
  readonly bias: number;
  readonly logit: number;
  readonly logSum: number;
  readonly width: number;
}

/** The features of a step: recorded, or the state and the context, which a linear read-out concatenates. */
export function featuresAt(trace: Trace, arrays: Arrays, step: number): number[] | null {
  const { features, state, context } = trace.intermediates;
  if (features !== undefined) return Array.from(arrays.row(features, step));
  if (state === undefined) return null;
  return [
    ...Array.from(arrays.row(state, step)),
    ...(context === undefined ? [] : Array.from(arrays.row(context, step))),
  ];
}

/** The log of the sum of all exponentiated logits of a step; null if the trace does not have it. */
export function logSumAt(arrays: Arrays, step: number): number | null {
  return arrays.has("output/log_sum") ? (arrays.get("output/log_sum").data[step] ?? null) : null;
}

export function logitTerms(trace: Trace, arrays: Arrays, step: number): LogitTerms | null {
  const features = featuresAt(trace, arrays, step);
  const { logp } = trace.steps[step]!;
  const commonSum = logSumAt(arrays, step);
  const ownLogit = arrays.has("output/logit") ? arrays.get("output/logit").data[step]! : null; // of a two-level softmax
  const logit = commonSum === null ? ownLogit : logp + commonSum;
  if (logit === null || features === null || !arrays.has("output/terms") || !arrays.has("output/bias"))
    return null;
  const terms = triples(arrays, "output/terms", step, 2).map(([index, weight]) => ({
    index: index!,
    weight: weight!,
    feature: features[index!] ?? NaN,
  }));
  if (terms.length === 0 || terms.some(({ feature }) => Number.isNaN(feature))) return null;
  const bias = arrays.get("output/bias").data[step]!;
  return { terms, bias, logit, logSum: logit - logp, width: features.length };
}

/** The rows of a step in a tensor (step, term, number). */
function triples(arrays: Arrays, name: string, step: number, size: number): number[][] {
  const { shape, data } = arrays.get(name);
  if (shape.length !== 3 || shape[2] !== size) return [];
  const count = shape[1]!;
  return Array.from({ length: count }, (_, i) =>
    Array.from(data.subarray((step * count + i) * size, (step * count + i + 1) * size)),
  );
}

/** The feature with the largest term of the logit: its largest terms before the activation, and their sum. */
export interface FeatureTerms {
  readonly terms: readonly { readonly index: number; readonly weight: number; readonly input: number }[];
  readonly sum: number;
}

export function featureTerms(arrays: Arrays, step: number): FeatureTerms | null {
  if (!arrays.has("read_out/terms") || !arrays.has("read_out/sum")) return null;
  const terms = triples(arrays, "read_out/terms", step, 3).map(([index, weight, input]) => ({
    index: index!,
    weight: weight!,
    input: input!,
  }));
  return terms.length === 0 ? null : { terms, sum: arrays.get("read_out/sum").data[step]! };
}
