/** The timeline of the animation: a tick is one stage of one step, `tick = step * stages + stage`. */

export const STAGES = ["Score", "Softmax", "Context", "Combine", "Word"] as const;
export const SPEEDS = [0.25, 0.5, 1, 2, 4] as const;
const TICK_MILLISECONDS = 1400; // at speed 1

export interface Timeline {
  readonly steps: number;
  readonly stages: number; // per step: 5, or 1 without attention
}

export interface Position {
  readonly step: number;
  readonly stage: number;
}

export const lastTick = (timeline: Timeline): number => timeline.steps * timeline.stages - 1;

/** The tick at which a page opens: the end of the first step, when all its numbers are there. */
export const firstTick = (timeline: Timeline): number => timeline.stages - 1;

export function clampTick(timeline: Timeline, tick: number): number {
  return Math.max(0, Math.min(lastTick(timeline), Number.isFinite(tick) ? Math.trunc(tick) : 0));
}

export function positionAt(timeline: Timeline, tick: number): Position {
  const clamped = clampTick(timeline, tick);
  return { step: Math.floor(clamped / timeline.stages), stage: clamped % timeline.stages };
}

export function tickAt(timeline: Timeline, step: number, stage = 0): number {
  return clampTick(timeline, step * timeline.stages + Math.min(stage, timeline.stages - 1));
}

/** The tick of the same stage `by` steps later; at either end, that of the first or last stage. */
export function moveSteps(timeline: Timeline, tick: number, by: number): number {
  const { step, stage } = positionAt(timeline, tick);
  const target = Math.max(0, Math.min(timeline.steps - 1, step + by));
  if (target !== step) return tickAt(timeline, target, stage);
  return by < 0 ? tickAt(timeline, step) : tickAt(timeline, step, timeline.stages - 1);
}

export function changeSpeed(speed: number, by: 1 | -1): number {
  const index = SPEEDS.indexOf(speed as (typeof SPEEDS)[number]);
  return SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, (index < 0 ? 2 : index) + by))]!;
}

export const tickDelay = (speed: number): number => TICK_MILLISECONDS / speed;
