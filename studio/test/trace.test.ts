/** What the page computes from a recorded trace of the phrase world. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { allowedKeys, isWithinTolerance, largestError, siteErrors } from "../src/check";
import { groupTokens, siteMatrix, weightTable } from "../src/fold";
import { Arrays, unpack } from "../src/tensor";
import type { Side, Trace } from "../src/trace";

const world = (): Trace =>
  JSON.parse(readFileSync(new URL("../../tests/viz/world.json", import.meta.url), "utf8"));

function packed(values: number[], ...shape: number[]) {
  const bytes = Buffer.from(new Float32Array(values).buffer);
  return { dtype: "f4" as const, shape, dims: shape.map(() => "x"), data: bytes.toString("base64") };
}

describe("arrays", () => {
  test("are unpacked exactly", () => {
    expect(Array.from(unpack(packed([0.5, -0.25, 3], 3)).data)).toEqual([0.5, -0.25, 3]);
  });
  test("rows of heads", () => {
    const trace = {
      ...world(),
      tensors: { a: packed([1, 2, 3, 4, 5, 6, 7, 8], 2, 2, 2), b: packed([1, 2, 3, 4], 2, 2) },
    };
    const arrays = new Arrays(trace);
    expect(Array.from(arrays.row("a", 1, 1))).toEqual([7, 8]);
    expect(Array.from(arrays.row("b", 1, 0))).toEqual([3, 4]);
  });
});

describe("recomputing", () => {
  test("a recorded trace agrees", () => {
    const trace = world();
    const errors = siteErrors(trace, new Arrays(trace), trace.sites[0]!);
    expect(errors.weights).toBeLessThan(1e-6);
    expect(errors.context).toBeLessThan(1e-6);
    expect(errors.rowSum).toBeLessThan(1e-6);
    expect(isWithinTolerance(largestError(errors)!)).toBe(true);
  });
  test.each(["cross/weights", "cross/scores", "context", "source"])(
    "one wrong number in %s is found",
    (name) => {
      const trace = world();
      const tensor = trace.tensors[name]!;
      const { data } = unpack(tensor);
      data[3] = data[3]! + 0.05 + Math.abs(data[3]!);
      trace.tensors[name] = packed(Array.from(data), ...tensor.shape);
      const errors = siteErrors(trace, new Arrays(trace), trace.sites[0]!);
      expect(isWithinTolerance(largestError(errors)!)).toBe(false);
    },
  );
  test("edited weights need not follow from their scores", () => {
    const trace = world();
    const { shape } = trace.tensors["cross/weights"]!;
    const weights = Array.from(unpack(trace.tensors["cross/weights"]!).data);
    weights[0]! -= 0.2;
    weights[1]! += 0.2;
    trace.tensors["cross/weights"] = packed(weights, ...shape);
    const error = (): number => siteErrors(trace, new Arrays(trace), trace.sites[0]!).weights!;
    expect(isWithinTolerance(error())).toBe(false);
    trace.edits = [{ op: "set", step: 0, position: 1, value: 0.2 }];
    expect(isWithinTolerance(error())).toBe(true);
    trace.edits = [{ op: "set", step: 1, position: 1, value: 0.2 }];
    expect(isWithinTolerance(error())).toBe(false);
  });
  test("self-attention of the decoder is causal", () => {
    const trace = world();
    const record = { ...trace.sites[0]!, kind: "self" as const, query_side: "target" as const };
    expect(allowedKeys(trace, new Arrays(trace), record, 1).slice(0, 4)).toEqual([true, true, false, false]);
  });
  test("a tape holds earlier positions, and an empty slot takes its share", () => {
    const half = 1 / (1 + Math.E);
    const trace = {
      ...world(),
      tensors: {
        weight: packed([0, 0, half, 0], 2, 1, 2),
        score: packed([9, 9, 0, 9], 2, 1, 2),
        slot: packed([0, 1], 2, 1),
      },
    };
    const site = { site: "tape.0", kind: "tape" as const, heads: 1, mass: "at_most_one" as const };
    const sides = { query_side: "source" as const, key_side: "source" as const };
    const record = { ...site, ...sides, weights: "weight", scores: "score", extras: { empty_slot: "slot" } };
    const arrays = new Arrays(trace);
    expect(allowedKeys(trace, arrays, record, 0)).toEqual([false, false]);
    expect(allowedKeys(trace, arrays, record, 1)).toEqual([true, false]);
    expect(siteErrors(trace, arrays, record).weights).toBeLessThan(1e-6);
    expect(siteErrors(trace, arrays, { ...record, extras: {} }).weights).toBeGreaterThan(0.1);
  });
});

describe("folding", () => {
  const side: Side = {
    text: "Park. ja",
    words: ["Park.", "ja"],
    tokens: [
      { text: "▁Park", word: 0, role: "normal" },
      { text: ".", word: 0, role: "normal" },
      { text: "▁ja", word: 1, role: "normal" },
      { text: "</s>", word: -1, role: "end" },
    ],
  };
  const weights = [
    [0.1, 0.2, 0.3, 0.4],
    [0.3, 0.4, 0.1, 0.2],
    [0.25, 0.25, 0.5, 0],
    [0, 0, 0, 1],
  ];
  const record = {
    site: "cross",
    kind: "cross",
    heads: 1,
    mass: "one",
    query_side: "target",
    key_side: "source",
    weights: "w",
    extras: {},
  } as const;
  const trace: Trace = {
    ...world(),
    source: side,
    target: side,
    gold: { sure: [[1, 0]], possible: [] },
    tensors: { w: packed(weights.flat(), 4, 1, 4) },
  };
  const arrays = new Arrays(trace);

  test("subwords are summed as keys and averaged as queries", () => {
    const result = weightTable(trace, arrays, record, null, true, true);
    expect(result.rows.map((row) => row.label)).toEqual(["Park.", "ja", "</s>"]);
    expect(result.values[0]![0]).toBeCloseTo((0.1 + 0.2 + 0.3 + 0.4) / 2, 6);
    expect(result.values[0]![1]).toBeCloseTo((0.3 + 0.1) / 2, 6);
    expect([...result.gold]).toEqual(["0,1"]);
  });
  test("subwords without the end token", () => {
    const result = weightTable(trace, arrays, record, 0, false, false);
    expect(result.columns.map((column) => column.label)).toEqual(["Park", ".", "ja"]);
    expect(result.values.length).toBe(3);
    expect(result.gold.size).toBe(0);
    expect(groupTokens(side, true, false).groups.map((group) => group.positions)).toEqual([[0, 1], [2]]);
  });
  test("the mean of all heads", () => {
    const two = { ...trace, tensors: { w: packed([1, 0, 0, 1], 1, 2, 2) } };
    expect(Array.from(siteMatrix(new Arrays(two), { ...record, heads: 2 }, null)[0]!)).toEqual([0.5, 0.5]);
    expect(Array.from(siteMatrix(new Arrays(two), { ...record, heads: 2 }, 1)[0]!)).toEqual([0, 1]);
  });
});

describe("hierarchical attention", () => {
  const sentences = (): Trace => {
    const trace = world();
    const token = (text: string, word: number) => ({ ...trace.source.tokens[0]!, text, word });
    const words = ["a", "b", "c"];
    const side = { text: "a b c", tokens: words.map(token), words, reference: null };
    const site = {
      kind: "pool" as const,
      heads: 1,
      mass: "one" as const,
      key_side: "source" as const,
      extras: {},
    };
    return {
      ...trace,
      source: side as Side,
      target: { ...side, tokens: side.tokens.slice(0, 1), words: ["a"] } as Side,
      steps: trace.steps.slice(0, 1),
      gold: null,
      sites: [
        { ...site, site: "enc.words", query_side: "source", weights: "w" },
        { ...site, site: "pool", query_side: "target", weights: "p", keys_from: "enc.words" },
      ],
      tensors: {
        w: packed([0, 0, 0, 0.25, 0.75, 0, 0, 0, 1], 3, 1, 3),
        p: packed([0, 0.4, 0.6], 1, 1, 3),
        sentence_ends: packed([0, 1, 1], 3),
      },
    };
  };
  test("a word's weight is a share of its sentence's", () => {
    const trace = sentences();
    const result = weightTable(trace, new Arrays(trace), trace.sites[1]!, null, true, true);
    expect(result.values[0]!.map((value) => Math.round(100 * value))).toEqual([10, 30, 60]);
  });
  test("only the last word of a sentence is a query", () => {
    const trace = sentences();
    const allowed = [0, 1, 2].map((query) => allowedKeys(trace, new Arrays(trace), trace.sites[0]!, query));
    expect(allowed).toEqual([
      [false, false, false],
      [true, true, false],
      [false, false, true],
    ]);
  });
});
