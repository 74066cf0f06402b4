/** The terms of scores and logits, and the state in which a page opens. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { recomputeScores } from "../src/check";
import { initialState } from "../src/link";
import { Arrays } from "../src/tensor";
import { featureTerms, featuresAt, largestTerms, logSumAt, logitTerms, scoreTerms } from "../src/terms";
import type { Trace } from "../src/trace";
import { walkableSites } from "../src/ui";

const load = (name: string): Trace =>
  JSON.parse(readFileSync(new URL(`../../tests/viz/${name}.json`, import.meta.url), "utf8"));
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

test("the terms of an additive score sum to it", () => {
  const trace = load("reader");
  const arrays = new Arrays(trace);
  const record = trace.sites[0]!;
  const query = trace.steps.length - 1;
  for (let key = 0; key < query; key++) {
    const terms = scoreTerms(trace, arrays, record, [query, 0, key])!;
    expect(terms[0]!.activation).toBe("tanh");
    expect(sum(terms.map(({ value }) => value))).toBeCloseTo(arrays.row(record.scores!, query)[key]!, 5);
    const [weight, activated] = terms[0]!.factors;
    expect(activated).toBeCloseTo(Math.tanh(sum(terms[0]!.addends)), 6);
    expect(terms[0]!.value).toBeCloseTo(weight * activated, 6);
  }
});

test("dot products without projections need no terms in the trace", () => {
  const trace = load("recommender");
  const arrays = new Arrays(trace);
  const record = trace.sites[0]!;
  const scores = recomputeScores(trace, arrays, record, 1, 0)!;
  scores.forEach((score, key) => expect(score).toBeCloseTo(arrays.row(record.scores!, 1)[key]!, 5));
});

test("old traces have no terms", () => {
  const trace = load("world");
  const arrays = new Arrays(trace);
  expect(scoreTerms(trace, arrays, trace.sites[0]!, [0, 0, 0])).toBeNull();
  expect(logitTerms(trace, arrays, 0)).toBeNull();
  expect(featureTerms(arrays, 0)).toBeNull();
  expect(logSumAt(arrays, 0)).toBeNull();
  expect(featuresAt(trace, arrays, 0)).toHaveLength(384); // state and context
});

test("the largest terms, and the rest as one", () => {
  const terms = [1, -5, 0.5, 3].map((value) => ({ value }));
  const { largest, rest, others } = largestTerms(terms, 2);
  expect(largest.map(({ value }) => value)).toEqual([-5, 3]);
  expect([rest, others]).toEqual([1.5, 2]);
});

test("a logit is its log-probability plus the log of the sum of all", () => {
  const trace = load("reader");
  const arrays = new Arrays(trace);
  const { terms, logit, logSum, width } = logitTerms(trace, arrays, 2)!;
  expect(logit - logSum).toBeCloseTo(trace.steps[2]!.logp, 6);
  const features = featuresAt(trace, arrays, 2)!;
  expect(width).toBe(features.length);
  for (const { index, feature } of terms) expect(feature).toBe(features[index]);
});

test("terms that name a feature that does not exist are not shown", () => {
  const trace = load("reader");
  const tensors = { ...trace.tensors, features: trace.tensors["output/bias"]! };
  expect(logitTerms({ ...trace, tensors }, new Arrays({ ...trace, tensors }), 2)).toBeNull();
});

test("the queries of a language model are walkable", () => {
  expect(walkableSites(load("reader"))).toHaveLength(1);
  const trace = load("reader");
  expect(walkableSites({ ...trace, model: { ...trace.model, task: "classify" } })).toEqual([]);
});

test("a page opens at the end of the first word, unless its address says otherwise", () => {
  const trace = load("world");
  const timeline = { steps: trace.steps.length, stages: 5 };
  expect(initialState("", trace, timeline).tick).toBe(4);
  expect(initialState("#/walk?merge=1&specials=1", trace, timeline).tick).toBe(4);
  expect(initialState("#/walk?tick=0", trace, timeline).tick).toBe(0);
});
