/** One moment of the Walk: everything about one output token at one site and head. */
import { again, allowed, attentionOf, edited, extraOf, keysOf, type Again } from "./check";
import { centreOf, weighed, type Attention, type Extra } from "./maths";
import type { Arrays } from "./tensor";
import type { Looks, Side, Step, Trace } from "./trace";

export interface Moment {
  readonly step: number;
  readonly stage: number;
  readonly record: Step;
  readonly looks: Looks;
  readonly head: number;
  readonly how: Attention;
  readonly reads: Side;
  readonly open: readonly boolean[]; // what may be read
  readonly inside: readonly boolean[]; // and is within the window
  readonly centre: number | null;
  readonly extra: Extra;
  readonly weights: ArrayLike<number>;
  readonly scores: ArrayLike<number> | null;
  readonly query: ArrayLike<number> | null;
  readonly keys: readonly ArrayLike<number>[] | null;
  readonly values: readonly ArrayLike<number>[] | null;
  readonly context: ArrayLike<number> | null;
  readonly again: Again;
  readonly byHand: boolean;
  readonly chosen: number; // the source position that is explained
}

export interface Chosen {
  readonly step: number;
  readonly stage: number;
  readonly looks: Looks;
  readonly head: number;
  readonly position: number | null;
}

export function heaviest(weights: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < weights.length; i++) if (weights[i]! > weights[best]!) best = i;
  return best;
}

export function momentOf(
  trace: Trace,
  arrays: Arrays,
  { step, stage, looks, head, position }: Chosen,
): Moment {
  const weights = arrays.row(looks.weight, step, head);
  const how = attentionOf(trace, looks);
  const open = allowed(trace, arrays, looks, step);
  const extra = extraOf(arrays, looks, step, head);
  const rows = (name: string | null | undefined): ArrayLike<number>[] | null =>
    name == null ? null : Array.from({ length: weights.length }, (_, i) => arrays.row(name, i, head));
  return {
    step,
    stage,
    record: trace.steps[step]!,
    looks,
    head,
    how,
    reads: looks.reads === "source" ? trace.source : trace.target,
    open,
    inside: how.placement === "uniform" ? open : weighed(how, open, step, extra),
    centre: centreOf(how, open, step, extra),
    extra,
    weights,
    scores: looks.score == null ? null : arrays.row(looks.score, step, head),
    query: looks.query == null ? null : arrays.row(looks.query, step),
    keys: keysOf(trace, arrays, looks),
    values: rows(looks.value),
    context: looks.context == null ? null : arrays.row(looks.context, step, head),
    again: again(trace, arrays, looks, step, head),
    byHand: edited(trace, looks, step),
    chosen: position !== null && position < weights.length ? position : heaviest(weights),
  };
}
