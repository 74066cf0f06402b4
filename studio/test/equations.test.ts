import { describe, expect, test } from "vitest";
import { DEFAULT_SETTINGS } from "../src/settings";
import {
  maxDifference,
  entmax15,
  weightedSum,
  normalize,
  weightsFromScores,
  sparsemax,
  type AttentionSettings,
} from "../src/equations";

const ALL = [true, true, true];
const GLOBAL: AttentionSettings = { ...DEFAULT_SETTINGS, score: "additive", window: 2 };

function close(actual: readonly number[], expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  expected.forEach((value, i) => expect(actual[i]).toBeCloseTo(value, 6));
}

describe("normalizers", () => {
  test("softmax", () => close(normalize([2, 1, 0], ALL, "softmax"), [0.665241, 0.244728, 0.090031]));
  test("masked scores get exactly 0", () => {
    const weights = normalize([2, 1, 0], [true, false, true], "softmax");
    expect(weights[1]).toBe(0);
    close(weights, [0.880797, 0, 0.119203]);
    expect(normalize([2, 1, 0], [false, false, false], "softmax")).toEqual([0, 0, 0]);
  });
  test("large scores stay finite", () =>
    close(normalize([1000, 999, 998], ALL, "softmax"), [0.665241, 0.244728, 0.090031]));
  test("smoothed softmax divides by the root of the sum at beta 1/2", () => {
    const root = Math.sqrt(Math.exp(2) + Math.exp(1) + 1);
    close(normalize([2, 1, 0], ALL, "smoothed-softmax", 0.5), [
      Math.exp(2) / root,
      Math.exp(1) / root,
      1 / root,
    ]);
    close(normalize([2, 1, 0], ALL, "smoothed-softmax", 1), [0.665241, 0.244728, 0.090031]);
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
  const allowed = [true, true, true, true, false];
  test("uniform ignores the scores", () => {
    close(
      weightsFromScores([5, 0, 0, 0, 0], allowed, { ...GLOBAL, placement: "uniform" }, 0, {}),
      [0.25, 0.25, 0.25, 0.25, 0],
    );
  });
  test("the window of local-m moves with the step and stops at the last allowed position", () => {
    const settings = { ...GLOBAL, placement: "local-m", window: 1 } as const;
    close(weightsFromScores(scores, allowed, settings, 1, {}), [1 / 3, 1 / 3, 1 / 3, 0, 0]);
    close(weightsFromScores(scores, allowed, settings, 9, {}), [0, 0, 0.5, 0.5, 0]);
  });
  test("local-p is a Gaussian around its center", () => {
    const settings = { ...GLOBAL, placement: "local-p", window: 2 } as const;
    const shape = [0, 1, 2, 3].map((i) => Math.exp(-((i - 1.5) ** 2) / 2));
    close(weightsFromScores(scores, allowed, settings, 0, { center: 1.5 }), [...shape.map((b) => b / 4), 0]);
    const sum = shape.reduce((a, b) => a + b);
    close(weightsFromScores(scores, allowed, { ...settings, renormalize: true }, 0, { center: 1.5 }), [
      ...shape.map((b) => b / sum),
      0,
    ]);
  });
  test("the window of local-p is around the integer part of the center", () => {
    const settings = { ...GLOBAL, placement: "local-p", window: 1 } as const;
    const weights = weightsFromScores(scores, allowed, settings, 0, { center: 1.9 });
    expect(weights[3]).toBe(0);
    expect(weights[0]).toBeGreaterThan(0);
  });
  test("hard attention takes the sampled position", () => {
    const settings = { ...GLOBAL, placement: "hard", hard_inference: "sample" } as const;
    expect(weightsFromScores([3, 2, 1], ALL, settings, 0, { sample: 1 })).toEqual([0, 1, 0]);
    close(
      weightsFromScores([2, 1, 0], ALL, { ...settings, hard_inference: "expectation" }, 0, { sample: 1 }),
      [0.665241, 0.244728, 0.090031],
    );
  });
});

test("the context is a weighted sum", () => {
  const values = [
    [1, 0],
    [0, 1],
    [1, 1],
  ];
  close(weightedSum([0.665241, 0.244728, 0.090031], values), [0.755272, 0.334759]);
});

test("NaN is never close", () => {
  expect(maxDifference([1, 2], [1, 2.5])).toBe(0.5);
  expect(maxDifference([NaN, 0], [0, 0])).toBeNaN();
});
