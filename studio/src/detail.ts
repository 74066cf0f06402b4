/** Everything about one output token at one site and head. */
import { allowedKeys, extrasAt, isEdited, keyVectors, recompute, type Recomputed } from "./check";
import { insideWindow, windowCenter, type AttentionSettings, type Extras } from "./equations";
import { attentionSettings } from "./settings";
import type { Arrays } from "./tensor";
import { scoreTerms, type ScoreTerm } from "./terms";
import type { Side, SiteRecord, Step, Trace } from "./trace";

export interface StepDetail {
  readonly step: number;
  readonly stage: number;
  readonly stepRecord: Step;
  readonly record: SiteRecord;
  readonly head: number;
  readonly settings: AttentionSettings;
  readonly keySide: Side;
  readonly allowed: readonly boolean[];
  readonly inside: readonly boolean[]; // allowed, and inside the window of local attention
  readonly center: number | null;
  readonly extras: Extras;
  readonly weights: ArrayLike<number>;
  readonly scores: ArrayLike<number> | null;
  readonly query: ArrayLike<number> | null;
  readonly keys: readonly ArrayLike<number>[] | null;
  readonly values: readonly ArrayLike<number>[] | null;
  readonly context: ArrayLike<number> | null;
  readonly recomputed: Recomputed;
  readonly edited: boolean;
  readonly position: number; // the key that is explained
  readonly terms: readonly ScoreTerm[] | null; // of its score; null: the trace does not have them
}

export interface Selection {
  readonly step: number;
  readonly stage: number;
  readonly record: SiteRecord;
  readonly head: number;
  readonly position: number | null; // null: the key with the largest weight
}

export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}

export function stepDetail(
  trace: Trace,
  arrays: Arrays,
  { step, stage, record, head, position }: Selection,
): StepDetail {
  const weights = arrays.row(record.weights, step, head);
  const settings = attentionSettings(trace, record);
  const allowed = allowedKeys(trace, arrays, record, step);
  const extras = extrasAt(arrays, record, step, head);
  const rows = (name: string | null | undefined): ArrayLike<number>[] | null =>
    name == null ? null : Array.from({ length: weights.length }, (_, i) => arrays.row(name, i, head));
  const explained = position !== null && position < weights.length ? position : argmax(weights);
  return {
    step,
    stage,
    stepRecord: trace.steps[step]!,
    record,
    head,
    settings,
    keySide: record.key_side === "source" ? trace.source : trace.target,
    allowed,
    inside: settings.placement === "uniform" ? allowed : insideWindow(settings, allowed, step, extras),
    center: windowCenter(settings, allowed, step, extras),
    extras,
    weights,
    scores: record.scores == null ? null : arrays.row(record.scores, step, head),
    query: record.query == null ? null : arrays.row(record.query, step),
    keys: keyVectors(trace, arrays, record),
    values: rows(record.values),
    context: record.context == null ? null : arrays.row(record.context, step, head),
    recomputed: recompute(trace, arrays, record, step, head),
    edited: isEdited(trace, record, step),
    position: explained,
    terms: scoreTerms(trace, arrays, record, [step, head, explained]),
  };
}
