/** The timeline: one whole number, `tick`, is all there is to know about the animation. */

export const STAGES = ["Score", "Softmax", "Context", "Combine", "Word"] as const;
export type Stage = 0 | 1 | 2 | 3 | 4;
export const SPEEDS = [0.25, 0.5, 1, 2, 4] as const;
const PACE = 1400; // milliseconds a tick at speed 1

export interface Line {
  readonly steps: number;
  readonly stages: number; // 5, or 1 where nothing is looked at
}

export interface Place {
  readonly step: number;
  readonly stage: number;
}

export const last = (line: Line): number => line.steps * line.stages - 1;

export function clamp(line: Line, tick: number): number {
  return Math.max(0, Math.min(last(line), Number.isFinite(tick) ? Math.trunc(tick) : 0));
}

export function place(line: Line, tick: number): Place {
  const at = clamp(line, tick);
  return { step: Math.floor(at / line.stages), stage: at % line.stages };
}

export function tickOf(line: Line, step: number, stage = 0): number {
  return clamp(line, step * line.stages + Math.min(stage, line.stages - 1));
}

/** To the same stage of another word. */
export function byWord(line: Line, tick: number, words: number): number {
  const { step, stage } = place(line, tick);
  const to = Math.max(0, Math.min(line.steps - 1, step + words));
  return to === step
    ? words < 0
      ? tickOf(line, step)
      : tickOf(line, step, line.stages - 1)
    : tickOf(line, to, stage);
}

export function faster(speed: number, by: 1 | -1): number {
  const at = SPEEDS.indexOf(speed as (typeof SPEEDS)[number]);
  return SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, (at < 0 ? 2 : at) + by))]!;
}

export const pause = (speed: number): number => PACE / speed;
