/** The formulas of every read-out: from the context to the output probabilities. */
import type { Children, Element } from "./dom";
import { exp, index } from "./formulas";
import {
  DOT,
  EQUALS,
  PLUS,
  call,
  factor,
  formula,
  frac,
  concatenated,
  mi,
  mn,
  mo,
  mrow,
  mt,
  root,
  steps,
  vec,
} from "./mathml";

const y = (): Element => vec("y");
const s = (): Element => vec("s");
const c = (): Element => vec("c");
const x = (): Element => vec("x");
const r = (): Element => vec("r");

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
  readonly rules: Element[];
  readonly meaning: string; // explains the symbols
}

const is = (...parts: Children[]): Element => formula(x(), EQUALS(), parts);
const u = (): Element => vec("u");
const z = (): Element => vec("z");

/** From the context to the features, which the output matrix is applied to. */
export function featureRules(readOut: ReadOut): Rules {
  if (readOut.kind === "recommend") return recommender();
  if (readOut.kind === "classify") return classifier(readOut);
  if (readOut.kind === "transformer") return transformer(readOut);
  if (readOut.kind === "conv") return convolutional();
  return readOut.kind === "abs" ? abs(readOut) : recurrent(readOut);
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
    rules: [is(hasTanh ? call("tanh", c()) : c())],
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
      is(last),
    ],
    meaning:
      "The context c is added to the residual r. feed is the feed-forward network, norm is layer normalization." +
      (tied && resized ? " P projects to the width of the embeddings." : ""),
  };
}

function convolutional(): Rules {
  const half = root(mt("½"));
  const sum = [vec("g"), PLUS(), mi("A"), c(), PLUS(), mi("a")];
  return {
    rules: [
      formula(u(), EQUALS(), mo("("), sum, mo(")"), half),
      is(mi("W"), mo("("), u(), PLUS(), r(), mo(")"), half, PLUS(), mi("b")),
    ],
    meaning:
      "The context c is added to the output g of the gated linear unit and to the residual r; each root keeps the" +
      " variance of a sum. A, a, W and b are learned.",
  };
}

function abs({ tied }: ReadOut): Rules {
  const both = concatenated(call("tanh", mi("H"), y(), PLUS(), mi("b")), mo(";"), c());
  const meaning = "y: the embeddings of the last words. H and b are learned; [ ; ] concatenates.";
  if (!tied) return { rules: [is(both)], meaning };
  return {
    rules: [formula(u(), EQUALS(), both), is(mi("P"), u(), PLUS(), mi("p"))],
    meaning: `${meaning} P and p project to the width of the embeddings.`,
  };
}

function recurrent({ readOut, hasContext }: ReadOut): Rules {
  const parts = hasContext ? [s(), mo(";"), c()] : [s()];
  const both = hasContext ? concatenated(parts) : s();
  const three = concatenated(parts, mo(";"), y());
  const join = hasContext ? "; [ ; ] concatenates" : "";
  const rules: Record<string, [Element, string]> = {
    linear: [is(both), hasContext ? "State and context, concatenated." : "The decoder's state."],
    tanh: [is(call("tanh", mi("W"), both)), `W is learned${join}.`],
    affine: [is(mi("W"), both, PLUS(), mi("b")), `W and b are learned${join}.`],
    deep: [
      is(call("tanh", mi("L"), three, PLUS(), mi("b"))),
      "y: the embedding of the previous word. L and b are learned.",
    ],
    added: [
      is(call("tanh", y(), PLUS(), mi("L"), both, PLUS(), mi("b"))),
      "y: the embedding of the previous word. L and b are learned; c is after the gate, if there is one.",
    ],
    maxout: [
      is(call("max", mi("L"), three, PLUS(), mi("b"))),
      "y: the embedding of the previous word. L and b are learned; max is over pairs of numbers (maxout).",
    ],
  };
  const [rule, meaning] = rules[readOut] ?? rules.linear!;
  return { rules: [rule], meaning };
}

export const wordRule = (): Element =>
  formula(mi("p"), EQUALS(), call("softmax", mi("O"), x(), PLUS(), mi("b")));

export const itemRule = (): Element =>
  formula(mi("p"), EQUALS(), frac(mt("1"), mrow(mt("1"), PLUS(), exp([mo("−"), mi("y")]))));

/** The probability of an item from its score. */
export function itemProbability(item: string, score: number): Element {
  const below = mrow(mt("1"), PLUS(), exp(mn(-score)));
  return steps(
    [mi("p"), mo("("), index(item), mo(")")],
    [
      [EQUALS(), frac(mt("1"), below)],
      [EQUALS(), mn(1 / (1 + Math.exp(-score)), { "data-from": "features" })],
    ],
  );
}

/** The score of an item from its log-probability. */
export const scoreOf = (logp: number): number => logp - Math.log1p(-Math.exp(logp));

/** The score of an item from its parts. */
export function itemNumbers(product: number, score: number): Element {
  return steps(mi("y"), [
    [EQUALS(), mn(product, { "data-from": "in-query in-context" }), PLUS(), factor(score - product)],
    [EQUALS(), mn(score, { "data-id": "features" })],
  ]);
}

export function wordNumbers(word: string, logp: number): Element {
  const p = [mi("p"), mo("("), index(word), mo(")")];
  return steps(p, [
    [EQUALS(), exp(mn(logp))],
    [EQUALS(), mn(Math.exp(logp), { "data-from": "features" })],
  ]);
}
