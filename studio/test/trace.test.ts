/** What the page computes from a recorded trace of the phrase world. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { agrees, allowed, largest, siteVerdict } from "../src/check";
import { byToken, groups, table } from "../src/fold";
import { Arrays, unpack } from "../src/tensor";
import type { Side, Trace } from "../src/trace";

const world = (): Trace =>
  JSON.parse(readFileSync(new URL("../../tests/view/world.json", import.meta.url), "utf8"));

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

describe("computed again", () => {
  test("a recorded trace agrees", () => {
    const trace = world();
    const verdict = siteVerdict(trace, new Arrays(trace), trace.sites[0]!);
    expect(verdict.softmax).toBeLessThan(1e-6);
    expect(verdict.context).toBeLessThan(1e-6);
    expect(verdict.sum).toBeLessThan(1e-6);
    expect(agrees(largest(verdict)!)).toBe(true);
  });
  test.each(["cross/weight", "cross/score", "context", "source"])(
    "one wrong number of %s does not",
    (name) => {
      const trace = world();
      const tensor = trace.tensors[name]!;
      const { data } = unpack(tensor);
      data[3] = data[3]! + 0.05 + Math.abs(data[3]!);
      trace.tensors[name] = packed(Array.from(data), ...tensor.shape);
      expect(agrees(largest(siteVerdict(trace, new Arrays(trace), trace.sites[0]!))!)).toBe(false);
    },
  );
  test("weights changed by hand need not follow from their scores", () => {
    const trace = world();
    const { shape } = trace.tensors["cross/weight"]!;
    const weights = Array.from(unpack(trace.tensors["cross/weight"]!).data);
    weights[0]! -= 0.2;
    weights[1]! += 0.2;
    trace.tensors["cross/weight"] = packed(weights, ...shape);
    const softmax = (): number => siteVerdict(trace, new Arrays(trace), trace.sites[0]!).softmax!;
    expect(agrees(softmax())).toBe(false);
    trace.edits = [{ op: "set", step: 0, position: 1, value: 0.2 }];
    expect(agrees(softmax())).toBe(true);
    trace.edits = [{ op: "set", step: 1, position: 1, value: 0.2 }];
    expect(agrees(softmax())).toBe(false);
  });
  test("a written word is not read before it is written", () => {
    const trace = world();
    const looks = { ...trace.sites[0]!, kind: "self" as const, asks: "target" as const };
    expect(allowed(trace, new Arrays(trace), looks, 1).slice(0, 4)).toEqual([true, true, false, false]);
  });
  test("a tape holds what came before, and an empty slot takes its share", () => {
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
    const sides = { asks: "source" as const, reads: "source" as const };
    const looks = { ...site, ...sides, weight: "weight", score: "score", extra: { slot: "slot" } };
    const arrays = new Arrays(trace);
    expect(allowed(trace, arrays, looks, 0)).toEqual([false, false]);
    expect(allowed(trace, arrays, looks, 1)).toEqual([true, false]);
    expect(siteVerdict(trace, arrays, looks).softmax).toBeLessThan(1e-6);
    expect(siteVerdict(trace, arrays, { ...looks, extra: {} }).softmax).toBeGreaterThan(0.1);
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
  const looks = {
    site: "cross",
    kind: "cross",
    heads: 1,
    mass: "one",
    asks: "target",
    reads: "source",
    weight: "w",
    extra: {},
  } as const;
  const trace: Trace = {
    ...world(),
    source: side,
    target: side,
    gold: { sure: [[1, 0]], possible: [] },
    tensors: { w: packed(weights.flat(), 4, 1, 4) },
  };
  const arrays = new Arrays(trace);

  test("sums over pieces that are read, means over pieces that ask", () => {
    const found = table(trace, arrays, looks, null, true, true);
    expect(found.rows.map((row) => row.label)).toEqual(["Park.", "ja", "</s>"]);
    expect(found.values[0]![0]).toBeCloseTo((0.1 + 0.2 + 0.3 + 0.4) / 2, 6);
    expect(found.values[0]![1]).toBeCloseTo((0.3 + 0.1) / 2, 6);
    expect([...found.gold]).toEqual(["0,1"]);
  });
  test("pieces as they are, and without the end", () => {
    const found = table(trace, arrays, looks, 0, false, false);
    expect(found.columns.map((column) => column.label)).toEqual(["Park", "‑.", "ja"]);
    expect(found.values.length).toBe(3);
    expect(found.gold.size).toBe(0);
    expect(groups(side, true, false).found.map((group) => group.positions)).toEqual([[0, 1], [2]]);
  });
  test("the mean of heads", () => {
    const two = { ...trace, tensors: { w: packed([1, 0, 0, 1], 1, 2, 2) } };
    expect(Array.from(byToken(new Arrays(two), { ...looks, heads: 2 }, null)[0]!)).toEqual([0.5, 0.5]);
    expect(Array.from(byToken(new Arrays(two), { ...looks, heads: 2 }, 1)[0]!)).toEqual([0, 1]);
  });
});

describe("words, then sentences", () => {
  const sentences = (): Trace => {
    const trace = world();
    const token = (text: string, word: number) => ({ ...trace.source.tokens[0]!, text, word });
    const words = ["a", "b", "c"];
    const side = { text: "a b c", tokens: words.map(token), words, reference: null };
    const site = {
      kind: "pool" as const,
      heads: 1,
      mass: "one" as const,
      reads: "source" as const,
      extra: {},
    };
    return {
      ...trace,
      source: side as Side,
      target: { ...side, tokens: side.tokens.slice(0, 1), words: ["a"] } as Side,
      steps: trace.steps.slice(0, 1),
      gold: null,
      sites: [
        { ...site, site: "enc.words", asks: "source", weight: "w" },
        { ...site, site: "pool", asks: "target", weight: "p", through: "enc.words" },
      ],
      tensors: {
        w: packed([0, 0, 0, 0.25, 0.75, 0, 0, 0, 1], 3, 1, 3),
        p: packed([0, 0.4, 0.6], 1, 1, 3),
        ends: packed([0, 1, 1], 3),
      },
    };
  };
  test("a word has its share of its sentence", () => {
    const trace = sentences();
    const seen = table(trace, new Arrays(trace), trace.sites[1]!, null, true, true);
    expect(seen.values[0]!.map((value) => Math.round(100 * value))).toEqual([10, 30, 60]);
  });
  test("the last word of a sentence reads it, nobody else", () => {
    const trace = sentences();
    const open = [0, 1, 2].map((query) => allowed(trace, new Arrays(trace), trace.sites[0]!, query));
    expect(open).toEqual([
      [false, false, false],
      [true, true, false],
      [false, false, true],
    ]);
  });
});
