/** The equations once more, in the page: from scores to weights, from weights to the context. */

export type Vector = ArrayLike<number>;

export function dot(a: Vector, b: Vector): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

const largest = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);
const total = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** `exp(e_i) / (sum_j exp(e_j))^beta`: softmax at beta = 1, flatter and summing to more below. */
function smoothed(scores: readonly number[], beta: number): number[] {
  const top = largest(scores);
  const log = top + Math.log(total(scores.map((score) => Math.exp(score - top))));
  return scores.map((score) => Math.exp(score - beta * log));
}

/** The tau at which the weights of what is above it sum to 1, by halving. */
function threshold(scores: readonly number[], weigh: (gap: number) => number): number {
  let [low, high] = [-1, 0]; // at 0 nothing is left, at -1 the best alone has 1
  for (let i = 0; i < 100; i++) {
    const tau = (low + high) / 2;
    if (total(scores.map((score) => weigh(Math.max(0, score - tau)))) > 1) low = tau;
    else high = tau;
  }
  return low;
}

/** Sparsemax (Martins 2016): the nearest point at which weights sum to 1. With its tau. */
export function sparsemax(scores: readonly number[]): { weights: number[]; tau: number } {
  const top = largest(scores);
  const tau =
    threshold(
      scores.map((score) => score - top),
      (gap) => gap,
    ) + top;
  return { weights: scores.map((score) => Math.max(0, score - tau)), tau };
}

/** Entmax 1.5 (Peters 2019): `max(0, e/2 - tau)^2`. With its tau. */
export function entmax15(scores: readonly number[]): { weights: number[]; tau: number } {
  const half = scores.map((score) => score / 2);
  const top = largest(half);
  const tau =
    threshold(
      half.map((score) => score - top),
      (gap) => gap * gap,
    ) + top;
  return { weights: half.map((score) => Math.max(0, score - tau) ** 2), tau };
}

export type Normaliser = "softmax" | "smoothed-softmax" | "sparsemax" | "entmax15";

/** Weights of the allowed scores; the others have 0, and where none is allowed, all. */
export function normalise(
  scores: Vector,
  allowed: readonly boolean[],
  name: Normaliser,
  beta = 0.5,
): number[] {
  const inside = Array.from(scores).filter((_, i) => allowed[i]);
  if (inside.length === 0) return Array.from(scores, () => 0);
  const ways: Record<Normaliser, () => number[]> = {
    softmax: () => smoothed(inside, 1),
    "smoothed-softmax": () => smoothed(inside, beta),
    sparsemax: () => sparsemax(inside).weights,
    entmax15: () => entmax15(inside).weights,
  };
  const weights = ways[name]();
  let next = 0;
  return allowed.map((open) => (open ? weights[next++]! : 0));
}

/** What a recipe says about one attention; defaults are the recipe's. */
export interface Attention {
  score: string;
  normaliser: Normaliser;
  placement: "global" | "local-m" | "local-p" | "hard" | "uniform";
  heads: number;
  bias: boolean;
  coverage: boolean;
  beta: number;
  window: number;
  renormalise: boolean;
  generate: "expectation" | "sample" | "argmax";
}

/** The middle of a local look; null where there is none. */
export function centreOf(
  how: Attention,
  allowed: readonly boolean[],
  step: number,
  extra: Extra,
): number | null {
  if (how.placement === "local-p") return extra.centre ?? null;
  if (how.placement !== "local-m") return null;
  return Math.min(step, allowed.lastIndexOf(true));
}

export interface Extra {
  centre?: number;
  sample?: number;
}

/** Which positions are weighed at all: what may be read, and within the window of a local look. */
export function weighed(how: Attention, allowed: readonly boolean[], step: number, extra: Extra): boolean[] {
  const centre = centreOf(how, allowed, step, extra);
  if (centre === null) return [...allowed];
  return allowed.map((open, i) => open && Math.abs(i - Math.floor(centre)) <= how.window);
}

/** The bell of local-p: `exp(-(i - p)^2 / (2 (D/2)^2))`. */
export function bell(position: number, centre: number, window: number): number {
  return Math.exp(-((position - centre) ** 2) / (2 * (window / 2) ** 2));
}

/** The weights of one query as the recipe says: mask, placement and normaliser. */
export function placed(
  scores: Vector,
  allowed: readonly boolean[],
  how: Attention,
  step: number,
  extra: Extra,
): number[] {
  if (how.placement === "uniform") {
    const readable = allowed.filter(Boolean).length;
    return allowed.map((open) => (open ? 1 / readable : 0));
  }
  const weights = normalise(scores, weighed(how, allowed, step, extra), how.normaliser, how.beta);
  if (how.placement === "local-p") {
    const shaped = weights.map((weight, i) => weight * bell(i, extra.centre ?? 0, how.window));
    const sum = total(shaped);
    return how.renormalise && sum > 0 ? shaped.map((weight) => weight / sum) : shaped;
  }
  if (how.placement === "hard" && how.generate !== "expectation") {
    const drawn = Math.round(extra.sample ?? -1);
    return weights.map((_, i) => (i === drawn ? 1 : 0));
  }
  return weights;
}

/** `c = sum_i a_i v_i`. */
export function mixture(weights: Vector, values: readonly Vector[]): number[] {
  const made = new Array<number>(values[0]?.length ?? 0).fill(0);
  values.forEach((value, i) => {
    const weight = weights[i]!;
    if (weight !== 0) for (let d = 0; d < made.length; d++) made[d]! += weight * value[d]!;
  });
  return made;
}

export function apart(a: Vector, b: Vector): number {
  let worst = 0;
  for (let i = 0; i < a.length; i++) {
    const gap = Math.abs(a[i]! - b[i]!);
    if (Number.isNaN(gap)) return NaN; // what is not a number is as far apart as can be
    worst = Math.max(worst, gap);
  }
  return worst;
}
