/** The formulas of every read-out: from the look to the probabilities of words. */
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
  joined,
  mi,
  mn,
  mo,
  mrow,
  mt,
  root,
  steps,
  vec,
} from "./math";

const y = (): Element => vec("y");
const s = (): Element => vec("s");
const c = (): Element => vec("c");
const x = (): Element => vec("x");
const r = (): Element => vec("r");

/** What a recipe says about the way from a look to a word. */
export interface ReadOut {
  readonly kind: string; // of the decoder, or the task of a model that has none
  readonly readOut: string;
  readonly norm: string;
  readonly looks: boolean; // is there a context at all?
  readonly tied: boolean; // the words' own vectors serve as the output matrix
  readonly resized: boolean; // and are of another width than the decoder
}

export interface Rules {
  readonly rules: Element[];
  readonly what: string; // the letters in words
}

const is = (...parts: Children[]): Element => formula(x(), EQUALS(), parts);
const u = (): Element => vec("u");
const z = (): Element => vec("z");

/** From the look to the vector that words are compared with. */
export function combineRules(how: ReadOut): Rules {
  if (how.kind === "recommend") return compared();
  if (how.kind === "classify") return whole(how);
  if (how.kind === "transformer") return transformer(how);
  if (how.kind === "conv") return convolutional();
  return how.kind === "abs" ? abs(how) : recurrent(how);
}

function compared(): Rules {
  return {
    rules: [formula(mi("y"), EQUALS(), vec("q"), DOT(), c(), PLUS(), mi("b"))],
    what: "q: the item in question. b, learned, is what it has in its favour whoever asks.",
  };
}

function whole({ readOut }: ReadOut): Rules {
  const bent = readOut === "tanh";
  return {
    rules: [is(bent ? call("tanh", c()) : c())],
    what: bent ? "tanh keeps every number between −1 and 1." : "It is taken as it is.",
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
    what:
      "What was read (c) is added to what the decoder had (r). Feed is two learned layers, norm evens out the" +
      ` sizes.${tied && resized ? " P, learned, makes it as wide as a word's vector." : ""}`,
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
    what:
      "What was read (c) is added to the layer's output (g) and input (r); each root keeps the sum at the size" +
      " of its parts. A, a, W and b are learned.",
  };
}

function abs({ tied }: ReadOut): Rules {
  const both = joined(call("tanh", mi("H"), y(), PLUS(), mi("b")), mo(";"), c());
  const what = "y: the vectors of the last words written. H and b are learned; [ ; ] joins two vectors.";
  if (!tied) return { rules: [is(both)], what };
  return {
    rules: [formula(u(), EQUALS(), both), is(mi("P"), u(), PLUS(), mi("p"))],
    what: `${what} P and p, learned, make it as wide as a word's vector.`,
  };
}

function recurrent({ readOut, looks }: ReadOut): Rules {
  const parts = looks ? [s(), mo(";"), c()] : [s()];
  const both = looks ? joined(parts) : s();
  const three = joined(parts, mo(";"), y());
  const join = looks ? "; [ ; ] joins two vectors" : "";
  const rules: Record<string, [Element, string]> = {
    linear: [
      is(both),
      looks
        ? "The decoder's state and the context are put side by side, unchanged."
        : "The decoder's state as it is.",
    ],
    tanh: [is(call("tanh", mi("W"), both)), `W is learned${join}; tanh keeps every number between −1 and 1.`],
    affine: [is(mi("W"), both, PLUS(), mi("b")), `W and b are learned${join}.`],
    deep: [
      is(call("tanh", mi("L"), three, PLUS(), mi("b"))),
      "y: the word written before. L and b are learned.",
    ],
    added: [
      is(call("tanh", y(), PLUS(), mi("L"), both, PLUS(), mi("b"))),
      "y: the word written before. L and b are learned; what was read has passed a gate, if there is one.",
    ],
    maxout: [
      is(call("max", mi("L"), three, PLUS(), mi("b"))),
      "y: the word written before. L and b are learned; of every two numbers the larger is kept.",
    ],
  };
  const [rule, what] = rules[readOut] ?? rules.linear!;
  return { rules: [rule], what };
}

export const wordRule = (): Element =>
  formula(mi("p"), EQUALS(), call("softmax", mi("O"), x(), PLUS(), mi("b")));

export const itemRule = (): Element =>
  formula(mi("p"), EQUALS(), frac(mt("1"), mrow(mt("1"), PLUS(), exp([mo("−"), mi("y")]))));

/** How likely an item is to be taken, from its score. */
export function itemChance(item: string, score: number): Element {
  const below = mrow(mt("1"), PLUS(), exp(mn(-score)));
  return steps(
    [mi("p"), mo("("), index(item), mo(")")],
    [
      [EQUALS(), frac(mt("1"), below)],
      [EQUALS(), mn(1 / (1 + Math.exp(-score)), { "data-from": "said" })],
    ],
  );
}

/** A score from the logarithm of its probability. */
export const scoreOf = (logp: number): number => logp - Math.log1p(-Math.exp(logp));

/** The score of an item from its parts. */
export function itemNumbers(product: number, score: number): Element {
  return steps(mi("y"), [
    [EQUALS(), mn(product, { "data-from": "in-query in-context" }), PLUS(), factor(score - product)],
    [EQUALS(), mn(score, { "data-id": "said" })],
  ]);
}

export function wordNumbers(word: string, logp: number): Element {
  const p = [mi("p"), mo("("), index(word), mo(")")];
  return steps(p, [
    [EQUALS(), exp(mn(logp))],
    [EQUALS(), mn(Math.exp(logp), { "data-from": "said" })],
  ]);
}
