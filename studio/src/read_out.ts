/** The formulas of every read-out: from the context to the output probabilities. */
import type { Children, VNode } from "./dom";
import { exp, index } from "./formulas";
import {
  DOT,
  EQUALS,
  PLUS,
  call,
  factor,
  formula,
  frac,
  concatenate,
  mi,
  mn,
  mo,
  mrow,
  mt,
  sqrt,
  equationLines,
  vec,
} from "./mathml";

const y = (): VNode => vec("y");
const s = (): VNode => vec("s");
const c = (): VNode => vec("c");
const x = (): VNode => vec("x");
const r = (): VNode => vec("r");

/** What a recipe says about the computation from the context to the output. */
export interface ReadOut {
  readonly kind: string; // of the decoder; the task of a model without one
  readonly readOut: string;
  readonly norm: string;
  readonly hasContext: boolean;
  readonly tied: boolean; // the embeddings are the output matrix
  readonly resized: boolean; // and their width is not the decoder's
}

export interface Rules {
  readonly rules: VNode[];
  readonly meaning: string; // explains the symbols
}

/** The formula of the features x. */
const featuresEqual = (...parts: Children[]): VNode => formula(x(), EQUALS(), parts);
const u = (): VNode => vec("u");
const z = (): VNode => vec("z");

/** The formulas from the context to the features, the input of the output matrix. */
export function featureRules(readOut: ReadOut): Rules {
  if (readOut.kind === "recommend") return recommender();
  if (readOut.kind === "classify") return classifier(readOut);
  if (readOut.kind === "transformer") return transformer(readOut);
  if (readOut.kind === "conv") return convolutional();
  return readOut.kind === "abs" ? absDecoder(readOut) : recurrent(readOut);
}

function recommender(): Rules {
  return {
    rules: [formula(mi("y"), EQUALS(), vec("q"), DOT(), c(), PLUS(), mi("b"))],
    meaning: "q: the embedding of the recommended item. b is its learned bias.",
  };
}

function classifier({ readOut }: ReadOut): Rules {
  const hasTanh = readOut === "tanh";
  return {
    rules: [featuresEqual(hasTanh ? call("tanh", c()) : c())],
    meaning: hasTanh ? "The features of the text." : "The features of the text are the context.",
  };
}

function transformer({ norm, tied, resized }: ReadOut): Rules {
  const pre = norm === "pre";
  const added = pre ? [r(), PLUS(), c()] : call("norm", r(), PLUS(), c());
  const last = tied && resized ? [mi("P"), call("norm", z())] : call("norm", z());
  return {
    rules: [
      formula(u(), EQUALS(), added),
      formula(z(), EQUALS(), u(), PLUS(), call("feed", pre ? call("norm", u()) : u())),
      featuresEqual(last),
    ],
    meaning:
      "The context c is added to the residual r. feed is the feed-forward network, norm is layer normalization." +
      (tied && resized ? " P projects to the width of the embeddings." : ""),
  };
}

function convolutional(): Rules {
  const half = sqrt(mt("½"));
  const sum = [vec("g"), PLUS(), mi("A"), c(), PLUS(), mi("a")];
  return {
    rules: [
      formula(u(), EQUALS(), mo("("), sum, mo(")"), half),
      featuresEqual(mi("W"), mo("("), u(), PLUS(), r(), mo(")"), half, PLUS(), mi("b")),
    ],
    meaning:
      "The context c is added to the output g of the gated linear unit and to the residual r; each root keeps the" +
      " variance of a sum. A, a, W and b are learned.",
  };
}

function absDecoder({ tied }: ReadOut): Rules {
  const both = concatenate(call("tanh", mi("H"), y(), PLUS(), mi("b")), mo(";"), c());
  const meaning = "y: the embeddings of the last words. H and b are learned; [ ; ] concatenates.";
  if (!tied) return { rules: [featuresEqual(both)], meaning };
  return {
    rules: [formula(u(), EQUALS(), both), featuresEqual(mi("P"), u(), PLUS(), mi("p"))],
    meaning: `${meaning} P and p project to the width of the embeddings.`,
  };
}

function recurrent({ readOut, hasContext }: ReadOut): Rules {
  const parts = hasContext ? [s(), mo(";"), c()] : [s()];
  const both = hasContext ? concatenate(parts) : s();
  const three = concatenate(parts, mo(";"), y());
  const join = hasContext ? "; [ ; ] concatenates" : "";
  const rules: Record<string, [VNode, string]> = {
    linear: [featuresEqual(both), hasContext ? "State and context, concatenated." : "The decoder's state."],
    tanh: [featuresEqual(call("tanh", mi("W"), both)), `W is learned${join}.`],
    affine: [featuresEqual(mi("W"), both, PLUS(), mi("b")), `W and b are learned${join}.`],
    deep: [
      featuresEqual(call("tanh", mi("L"), three, PLUS(), mi("b"))),
      "y: the embedding of the previous word. L and b are learned.",
    ],
    added: [
      featuresEqual(call("tanh", y(), PLUS(), mi("L"), both, PLUS(), mi("b"))),
      "y: the embedding of the previous word. L and b are learned; c is after the gate, if there is one.",
    ],
    maxout: [
      featuresEqual(call("max", mi("L"), three, PLUS(), mi("b"))),
      "y: the embedding of the previous word. L and b are learned; max is over pairs of numbers (maxout).",
    ],
  };
  const [rule, meaning] = rules[readOut] ?? rules.linear!;
  return { rules: [rule], meaning };
}

export const wordRule = (): VNode =>
  formula(mi("p"), EQUALS(), call("softmax", mi("O"), x(), PLUS(), mi("b")));

export const itemRule = (): VNode =>
  formula(mi("p"), EQUALS(), frac(mt("1"), mrow(mt("1"), PLUS(), exp([mo("−"), mi("y")]))));

/** The probability of an item from its score. */
export function itemProbability(score: number): VNode {
  const below = mrow(mt("1"), PLUS(), exp(mn(-score)));
  return equationLines(mi("p"), [
    [EQUALS(), frac(mt("1"), below)],
    [EQUALS(), mn(1 / (1 + Math.exp(-score)), { "data-from": "features" })],
  ]);
}

/** The score of an item from its log-probability. */
export const scoreOf = (logp: number): number => logp - Math.log1p(-Math.exp(logp));

/** The score of an item from its parts. */
export function itemNumbers(product: number, score: number): VNode {
  return equationLines(mi("y"), [
    [EQUALS(), mn(product, { "data-from": "in-query in-context" }), PLUS(), factor(score - product)],
    [EQUALS(), mn(score, { "data-id": "features" })],
  ]);
}

export function wordNumbers(word: string, logp: number): VNode {
  const p = [mi("p"), mo("("), index(word), mo(")")];
  return equationLines(p, [
    [EQUALS(), exp(mn(logp))],
    [EQUALS(), mn(Math.exp(logp), { "data-from": "features" })],
  ]);
}
