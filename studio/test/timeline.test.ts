import { expect, test } from "vitest";
import { changeSpeed, clampTick, lastTick, moveSteps, positionAt, tickAt } from "../src/timeline";

const timeline = { steps: 3, stages: 5 };

test("a tick is a step and a stage", () => {
  expect(lastTick(timeline)).toBe(14);
  expect(positionAt(timeline, 0)).toEqual({ step: 0, stage: 0 });
  expect(positionAt(timeline, 7)).toEqual({ step: 1, stage: 2 });
  expect(tickAt(timeline, 1, 2)).toBe(7);
  for (let tick = 0; tick <= lastTick(timeline); tick++) {
    const { step, stage } = positionAt(timeline, tick);
    expect(tickAt(timeline, step, stage)).toBe(tick);
  }
});

test("ticks are clamped to the timeline", () => {
  expect([-1, 99, NaN, Infinity, 2.7].map((tick) => clampTick(timeline, tick))).toEqual([0, 14, 0, 0, 2]);
});

test("moving by step keeps the stage, and stops at the ends", () => {
  expect(moveSteps(timeline, 7, 1)).toBe(12);
  expect(moveSteps(timeline, 7, -1)).toBe(2);
  expect(moveSteps(timeline, 2, -1)).toBe(0);
  expect(moveSteps(timeline, 12, 1)).toBe(14);
});

test("without attention there is one stage per step", () => {
  expect(lastTick({ steps: 4, stages: 1 })).toBe(3);
  expect(tickAt({ steps: 4, stages: 1 }, 2, 3)).toBe(2);
});

test("speeds are between 0.25 and 4", () => {
  expect(changeSpeed(1, 1)).toBe(2);
  expect(changeSpeed(4, 1)).toBe(4);
  expect(changeSpeed(0.25, -1)).toBe(0.25);
});
