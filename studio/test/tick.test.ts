import { expect, test } from "vitest";
import { byWord, clamp, faster, last, place, tickOf } from "../src/tick";

const line = { steps: 3, stages: 5 };

test("a tick is a word and a stage", () => {
  expect(last(line)).toBe(14);
  expect(place(line, 0)).toEqual({ step: 0, stage: 0 });
  expect(place(line, 7)).toEqual({ step: 1, stage: 2 });
  expect(tickOf(line, 1, 2)).toBe(7);
  for (let tick = 0; tick <= last(line); tick++) {
    const { step, stage } = place(line, tick);
    expect(tickOf(line, step, stage)).toBe(tick);
  }
});

test("no tick lies outside", () => {
  expect([-1, 99, NaN, Infinity, 2.7].map((tick) => clamp(line, tick))).toEqual([0, 14, 0, 0, 2]);
});

test("by word keeps the stage, and goes to the ends where there is no further word", () => {
  expect(byWord(line, 7, 1)).toBe(12);
  expect(byWord(line, 7, -1)).toBe(2);
  expect(byWord(line, 2, -1)).toBe(0);
  expect(byWord(line, 12, 1)).toBe(14);
});

test("without a look there is one stage a word", () => {
  expect(last({ steps: 4, stages: 1 })).toBe(3);
  expect(tickOf({ steps: 4, stages: 1 }, 2, 3)).toBe(2);
});

test("speeds go from a quarter to four", () => {
  expect(faster(1, 1)).toBe(2);
  expect(faster(4, 1)).toBe(4);
  expect(faster(0.25, -1)).toBe(0.25);
});
