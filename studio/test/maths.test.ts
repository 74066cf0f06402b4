import { describe, expect, test } from "vitest";
import { DEFAULTS } from "../src/check";
import { apart, entmax15, mixture, normalise, placed, sparsemax, type Attention } from "../src/maths";

const ALL = [true, true, true];
const GLOBAL: Attention = { ...DEFAULTS, score: "additive", window: 2 };

function close(found: readonly number[], wanted: readonly number[]): void {
  expect(found.length).toBe(wanted.length);
  wanted.forEach((value, i) => expect(found[i]).toBeCloseTo(value, 6));
}

describe("normalisers", () => {
  test("softmax", () => close(normalise([2, 1, 0], ALL, "softmax"), [0.665241, 0.244728, 0.090031]));
  test("what may not be read has exactly nothing", () => {
    const weights = normalise([2, 1, 0], [true, false, true], "softmax");
    expect(weights[1]).toBe(0);
    close(weights, [0.880797, 0, 0.119203]);
    expect(normalise([2, 1, 0], [false, false, false], "softmax")).toEqual([0, 0, 0]);
  });
  test("large scores stay finite", () =>
    close(normalise([1000, 999, 998], ALL, "softmax"), [0.665241, 0.244728, 0.090031]));
  test("smoothed softmax divides by the root of the sum at beta 1/2", () => {
    const root = Math.sqrt(Math.exp(2) + Math.exp(1) + 1);
    close(normalise([2, 1, 0], ALL, "smoothed-softmax", 0.5), [
      Math.exp(2) / root,
      Math.exp(1) / root,
      1 / root,
    ]);
    close(normalise([2, 1, 0], ALL, "smoothed-softmax", 1), [0.665241, 0.244728, 0.090031]);
  });
  test("sparsemax", () => {
    close(sparsemax([2, 1, 0]).weights, [1, 0, 0]);
    close(sparsemax([0.5, 0.3, -1]).weights, [0.6, 0.4, 0]);
    expect(sparsemax([0.5, 0.3, -1]).tau).toBeCloseTo(-0.1, 9);
  });
  test("entmax 1.5 lies between", () => {
    const { weights, tau } = entmax15([1, 0.5, 0]);
    expect(weights.reduce((a, b) => a + b)).toBeCloseTo(1, 9);
    // by hand: sum (x/2 - tau)^2 = 1 with x/2 = .5, .25, 0 has tau = (.75 - sqrt(.75^2 - 3 (.3125 - 1))) / 3
    const exact = (0.75 - Math.sqrt(0.5625 + 2.0625)) / 3;
    expect(tau).toBeCloseTo(exact, 9);
    close(weights, [(0.5 - exact) ** 2, (0.25 - exact) ** 2, exact ** 2]);
    expect(entmax15([4, 0, -4]).weights[2]).toBe(0);
  });
});

describe("placements", () => {
  const scores = [0, 0, 0, 0, 0];
  const open = [true, true, true, true, false];
  test("uniform does not ask the scores", () => {
    close(
      placed([5, 0, 0, 0, 0], open, { ...GLOBAL, placement: "uniform" }, 0, {}),
      [0.25, 0.25, 0.25, 0.25, 0],
    );
  });
  test("local-m weighs a window that moves on and stops at the last readable position", () => {
    const how = { ...GLOBAL, placement: "local-m", window: 1 } as const;
    close(placed(scores, open, how, 1, {}), [1 / 3, 1 / 3, 1 / 3, 0, 0]);
    close(placed(scores, open, how, 9, {}), [0, 0, 0.5, 0.5, 0]);
  });
  test("local-p puts a bell around its centre", () => {
    const how = { ...GLOBAL, placement: "local-p", window: 2 } as const;
    const bell = [0, 1, 2, 3].map((i) => Math.exp(-((i - 1.5) ** 2) / 2));
    close(placed(scores, open, how, 0, { centre: 1.5 }), [...bell.map((b) => b / 4), 0]);
    const sum = bell.reduce((a, b) => a + b);
    close(placed(scores, open, { ...how, renormalise: true }, 0, { centre: 1.5 }), [
      ...bell.map((b) => b / sum),
      0,
    ]);
  });
  test("local-p counts its window from the whole part of the centre", () => {
    const how = { ...GLOBAL, placement: "local-p", window: 1 } as const;
    const weights = placed(scores, open, how, 0, { centre: 1.9 });
    expect(weights[3]).toBe(0);
    expect(weights[0]).toBeGreaterThan(0);
  });
  test("hard takes the one that was drawn", () => {
    const how = { ...GLOBAL, placement: "hard", generate: "sample" } as const;
    expect(placed([3, 2, 1], ALL, how, 0, { sample: 1 })).toEqual([0, 1, 0]);
    close(
      placed([2, 1, 0], ALL, { ...how, generate: "expectation" }, 0, { sample: 1 }),
      [0.665241, 0.244728, 0.090031],
    );
  });
});

test("the mixture", () => {
  const values = [
    [1, 0],
    [0, 1],
    [1, 1],
  ];
  close(mixture([0.665241, 0.244728, 0.090031], values), [0.755272, 0.334759]);
});

test("what is not a number is never close", () => {
  expect(apart([1, 2], [1, 2.5])).toBe(0.5);
  expect(apart([NaN, 0], [0, 0])).toBeNaN();
});
