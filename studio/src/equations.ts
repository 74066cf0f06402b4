/** The attention equations in plain loops: from scores to weights, from weights to the context. */

export type Vector = ArrayLike<number>;

export function dot(a: Vector, b: Vector): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

const largest = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);
const total = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** `exp(e_i) / (sum_j exp(e_j))^beta`: softmax at beta = 1; below 1 flatter, with a larger sum. */
function smoothedSoftmax(scores: readonly number[], beta: number): number[] {
  const top = largest(scores);
  const logSum = top + Math.log(total(scores.map((score) => Math.exp(score - top))));
  return scores.map((score) => Math.exp(score - beta * logSum));
}

/** Find by bisection the tau at which the weights of the scores above it sum to 1. */
function threshold(scores: readonly number[], weigh: (gap: number) => number): number {
  let [low, high] = [-1, 0]; // at 0 all weights are 0, at -1 the largest score alone has weight 1
  for (let i = 0; i < 100; i++) {
    const tau = (low + high) / 2;
    if (total(scores.map((score) => weigh(Math.max(0, score - tau)))) > 1) low = tau;
    else high = tau;
  }
  return low;
}

/** Sparsemax (Martins 2016), the Euclidean projection onto the simplex, with its tau. */
export function sparsemax(scores: readonly number[]): { weights: number[]; tau: number } {
  const top = largest(scores);
  const shifted = scores.map((score) => score - top);
  const tau = threshold(shifted, (gap) => gap) + top;
  return { weights: scores.map((score) => Math.max(0, score - tau)), tau };
}

/** Entmax 1.5 (Peters 2019): `max(0, e/2 - tau)^2`, with its tau. */
export function entmax15(scores: readonly number[]): { weights: number[]; tau: number } {
  const half = scores.map((score) => score / 2);
  const top = largest(half);
  const shifted = half.map((score) => score - top);
  const tau = threshold(shifted, (gap) => gap * gap) + top;
  return { weights: half.map((score) => Math.max(0, score - tau) ** 2), tau };
}

export type Normalizer = "softmax" | "smoothed-softmax" | "sparsemax" | "entmax15";

/** The weights of the allowed scores; the others get 0, and all of them if none is allowed. */
export function normalize(
  scores: Vector,
  allowed: readonly boolean[],
  name: Normalizer,
  beta = 0.5,
): number[] {
  const inside = Array.from(scores).filter((_, i) => allowed[i]);
  if (inside.length === 0) return Array.from(scores, () => 0);
  const normalizers: Record<Normalizer, () => number[]> = {
    softmax: () => smoothedSoftmax(inside, 1),
    "smoothed-softmax": () => smoothedSoftmax(inside, beta),
    sparsemax: () => sparsemax(inside).weights,
    entmax15: () => entmax15(inside).weights,
  };
  const weights = normalizers[name]();
  let next = 0;
  return allowed.map((keep) => (keep ? weights[next++]! : 0));
}

/** The [model.attention] section of a recipe. */
export interface AttentionSettings {
  score: string;
  normalizer: Normalizer;
  placement: "global" | "local-m" | "local-p" | "hard" | "uniform";
  heads: number;
  bias: boolean;
  coverage: boolean;
  beta: number;
  window: number;
  renormalize: boolean;
  hard_inference: "expectation" | "sample" | "argmax";
}

/** What a placement recorded at one query. */
export interface Extras {
  center?: number;
  sample?: number;
}

/** The center of local attention's window; null for other placements. */
export function windowCenter(
  settings: AttentionSettings,
  allowed: readonly boolean[],
  step: number,
  extras: Extras,
): number | null {
  if (settings.placement === "local-p") return extras.center ?? null;
  if (settings.placement !== "local-m") return null;
  return Math.min(step, allowed.lastIndexOf(true));
}

/** Which keys get a weight: the allowed ones, for local attention those inside the window. */
export function insideWindow(
  settings: AttentionSettings,
  allowed: readonly boolean[],
  step: number,
  extras: Extras,
): boolean[] {
  const center = windowCenter(settings, allowed, step, extras);
  if (center === null) return [...allowed];
  return allowed.map((keep, i) => keep && Math.abs(i - Math.floor(center)) <= settings.window);
}

/** The Gaussian of local-p: `exp(-(i - p)^2 / (2 (D/2)^2))`. */
export function gaussian(position: number, center: number, window: number): number {
  return Math.exp(-((position - center) ** 2) / (2 * (window / 2) ** 2));
}

const NORMALIZERS: readonly string[] = ["softmax", "smoothed-softmax", "sparsemax", "entmax15"];
const PLACEMENTS: readonly string[] = ["global", "local-m", "local-p", "hard", "uniform"];

/** Whether this page knows the normalizer and the placement; those of plugins are not recomputed. */
export const isKnownMechanism = ({ normalizer, placement }: AttentionSettings): boolean =>
  NORMALIZERS.includes(normalizer) && PLACEMENTS.includes(placement);

/** The weights of one query: mask, placement and normalizer. */
export function weightsFromScores(
  scores: Vector,
  allowed: readonly boolean[],
  settings: AttentionSettings,
  step: number,
  extras: Extras,
): number[] {
  if (settings.placement === "uniform") {
    const count = allowed.filter(Boolean).length;
    return allowed.map((keep) => (keep ? 1 / count : 0));
  }
  const inside = insideWindow(settings, allowed, step, extras);
  const weights = normalize(scores, inside, settings.normalizer, settings.beta);
  if (settings.placement === "local-p") {
    const local = weights.map((weight, i) => weight * gaussian(i, extras.center ?? 0, settings.window));
    const sum = total(local);
    return settings.renormalize && sum > 0 ? local.map((weight) => weight / sum) : local;
  }
  if (settings.placement === "hard" && settings.hard_inference !== "expectation") {
    const sample = Math.round(extras.sample ?? -1);
    return weights.map((_, i) => (i === sample ? 1 : 0));
  }
  return weights;
}

/** The context `c = sum_i a_i v_i`. */
export function weightedSum(weights: Vector, values: readonly Vector[]): number[] {
  const sum = new Array<number>(values[0]?.length ?? 0).fill(0);
  values.forEach((value, i) => {
    const weight = weights[i]!;
    if (weight !== 0) for (let d = 0; d < sum.length; d++) sum[d]! += weight * value[d]!;
  });
  return sum;
}

/** The largest absolute difference; NaN if there is any. */
export function maxDifference(a: Vector, b: Vector): number {
  let largestGap = 0;
  for (let i = 0; i < a.length; i++) {
    const gap = Math.abs(a[i]! - b[i]!);
    if (Number.isNaN(gap)) return NaN;
    largestGap = Math.max(largestGap, gap);
  }
  return largestGap;
}
