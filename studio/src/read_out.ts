/** The formulas of every read-out: from the context to the output probabilities. */
import type { Children, VNode } from "./dom";
import { t } from "./i18n";
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
  leading,
  signed,
  sub,
  vec,
} from "./mathml";
import { largestTerms, type FeatureTerms, type LogitTerms } from "./terms";

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
  if (readOut.kind === "lstmn") return memoryNetwork(readOut);
  if (readOut.kind === "recommend") return recommender();
  if (readOut.kind === "classify") return classifier(readOut);
  if (readOut.kind === "transformer") return transformer(readOut);
  if (readOut.kind === "conv") return convolutional();
  return readOut.kind === "abs" ? absDecoder(readOut) : recurrent(readOut);
}

function recommender(): Rules {
  return {
    rules: [formula(mi("y"), EQUALS(), vec("q"), DOT(), c(), PLUS(), mi("b"))],
    meaning: t("q: the embedding of the recommended item. b is its learned bias."),
  };
}

function classifier({ readOut }: ReadOut): Rules {
  const hasTanh = readOut === "tanh";
  return {
    rules: [featuresEqual(hasTanh ? call("tanh", c()) : c())],
    meaning: hasTanh ? t("The features of the text.") : t("The features of the text are the context."),
  };
}

function memoryNetwork({ tied, resized }: ReadOut): Rules {
  const state = [mi("o"), mo("⊙"), call("tanh", mi("m"))];
  const projected = tied && resized;
  return {
    rules: [
      formula(concatenate(mi("h̃"), mo(";"), mi("m̃")), EQUALS(), c()),
      formula(mi("m"), EQUALS(), mi("f"), mo("⊙"), mi("m̃"), PLUS(), mi("i"), mo("⊙"), mi("g")),
      featuresEqual(projected ? [mi("P"), mo("("), state, mo(")")] : state),
    ],
    meaning:
      t(
        "An LSTM step whose previous state h̃ and memory m̃ are read from the tape. The gates i, f, o and the update g are computed from h̃ and the word just read.",
      ) + (projected ? ` ${t("P projects to the width of the embeddings.")}` : ""),
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
      t(
        "The context c is added to the residual r. feed is the feed-forward network, norm is layer normalization.",
      ) + (tied && resized ? ` ${t("P projects to the width of the embeddings.")}` : ""),
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
    meaning: t(
      "The context c is added to the output g of the gated linear unit and to the residual r; each root keeps the variance of a sum. A, a, W and b are learned.",
    ),
  };
}

function absDecoder({ tied }: ReadOut): Rules {
  const both = concatenate(call("tanh", mi("H"), y(), PLUS(), mi("b")), mo(";"), c());
  const meaning = t("y: the embeddings of the last words. H and b are learned; [ ; ] concatenates.");
  if (!tied) return { rules: [featuresEqual(both)], meaning };
  return {
    rules: [formula(u(), EQUALS(), both), featuresEqual(mi("P"), u(), PLUS(), mi("p"))],
    meaning: `${meaning} ${t("P and p project to the width of the embeddings.")}`,
  };
}

function recurrent({ readOut, hasContext }: ReadOut): Rules {
  const parts = hasContext ? [s(), mo(";"), c()] : [s()];
  const both = hasContext ? concatenate(parts) : s();
  const three = concatenate(parts, mo(";"), y());
  const rules: Record<string, [VNode, string]> = {
    linear: [
      featuresEqual(both),
      hasContext ? t("State and context, concatenated.") : t("The decoder's state."),
    ],
    tanh: [
      featuresEqual(call("tanh", mi("W"), both)),
      hasContext ? t("W is learned; [ ; ] concatenates.") : t("W is learned."),
    ],
    affine: [
      featuresEqual(mi("W"), both, PLUS(), mi("b")),
      hasContext ? t("W and b are learned; [ ; ] concatenates.") : t("W and b are learned."),
    ],
    deep: [
      featuresEqual(call("tanh", mi("L"), three, PLUS(), mi("b"))),
      t("y: the embedding of the previous word. L and b are learned."),
    ],
    added: [
      featuresEqual(call("tanh", y(), PLUS(), mi("L"), both, PLUS(), mi("b"))),
      t("y: the embedding of the previous word. L and b are learned; c is after the gate, if there is one."),
    ],
    maxout: [
      featuresEqual(call("max", mi("L"), three, PLUS(), mi("b"))),
      t("y: the embedding of the previous word. L and b are learned; max is over pairs of numbers (maxout)."),
    ],
  };
  const [rule, meaning] = rules[readOut] ?? rules.linear!;
  return { rules: [rule], meaning };
}

export const wordRule = (): VNode[] => [
  formula(mi("z"), EQUALS(), mi("O"), x(), PLUS(), mi("b")),
  formula(mi("p"), EQUALS(), call("softmax", mi("z"))),
];

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

const N_PRODUCTS = 3;

/** The score of an item from the largest products of its vector and the context, and its bias. */
export function itemNumbers(query: ArrayLike<number>, context: ArrayLike<number>, score: number): VNode {
  const products = Array.from(query, (a, i) => ({
    value: a * context[i]!,
    factors: [a, context[i]!] as const,
  }));
  const { largest, rest, others } = largestTerms(products, N_PRODUCTS);
  const bias = score - products.reduce((sum, { value }) => sum + value, 0);
  return equationLines(mi("y"), [
    ...largest.map(({ factors }, i) => [
      i === 0 && EQUALS(),
      (i === 0 ? leading : signed)(factors[0], [DOT(), factor(factors[1], 2)]),
    ]),
    ...(others > 0 ? [signed(rest, mt(`\u00a0${t("from {n} more", { n: others })}`))] : []),
    signed(bias, mt(`\u00a0${t("bias")}`)),
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

/** A vector's element; elements are counted from 1. */
const element = (symbol: string, position: number): VNode => sub(vec(symbol), mt(String(position + 1)));

/** The logit of the output from its largest terms, then its probability from the logit. */
export function logitNumbers(word: string, logp: number, logit: LogitTerms): VNode[] {
  const { terms, bias, width } = logit;
  const shown = terms.reduce((sum, { weight, feature }) => sum + weight * feature, 0);
  const rest = logit.logit - bias - shown;
  const others = width - terms.length;
  const z = sub(mi("z"), index(word));
  return [
    equationLines(z, [
      ...terms.map(({ weight, feature }, i) => [
        i === 0 && EQUALS(),
        (i === 0 ? leading : signed)(weight, [DOT(), factor(feature, 2)]),
      ]),
      ...(others > 0 ? [signed(rest, mt(`\u00a0${t("from {n} more", { n: others })}`))] : []),
      signed(bias, mt(`\u00a0${t("bias")}`)),
      [EQUALS(), mn(logit.logit, { "data-from": "features", "data-id": "logit" })],
    ]),
    equationLines(sub(mi("p"), index(word)), [
      [EQUALS(), exp([leading(logit.logit), signed(-logit.logSum)])],
      [EQUALS(), mn(Math.exp(logp), { "data-from": "logit" })],
    ]),
  ];
}

/** The inputs of a read-out by their positions in the concatenated vector. */
interface InputSizes {
  readonly state: number;
  readonly context: number;
}

const inputElement = (position: number, { state, context }: InputSizes): VNode => {
  if (position < state) return element("s", position);
  return position < state + context
    ? element("c", position - state)
    : element("y", position - state - context);
};

/** What one feature is computed from: the terms of its sum, or the vectors that it comes from. */
export interface FeatureParts {
  readonly unit: number; // which feature
  readonly value: number;
  readonly readOut: ReadOut;
  readonly sizes: InputSizes;
  readonly terms: FeatureTerms | null;
  readonly residual: ArrayLike<number> | null;
  readonly context: ArrayLike<number> | null;
}

/** The feature that counts most for the output, with the numbers that it is computed from. */
export function featureNumbers(parts: FeatureParts): VNode {
  const { unit, value, readOut, sizes, terms, residual, context } = parts;
  const left = element("x", unit);
  const result = [EQUALS(), mn(value, { "data-from": "features" })];
  if (terms !== null) return summedFeature(left, terms, readOut, result);
  if (readOut.kind === "transformer" && residual !== null && context !== null && unit < context.length) {
    const sum = [
      EQUALS(),
      leading(residual[unit]!, signed(context[unit]!)),
      EQUALS(),
      mn(residual[unit]! + context[unit]!),
    ];
    const added =
      readOut.norm === "pre"
        ? sum
        : [EQUALS(), call("norm", leading(residual[unit]!, signed(context[unit]!)))];
    return equationLines(element("u", unit), [added, [mo("→"), left, result]]);
  }
  const recurrent =
    readOut.readOut === "linear" &&
    !["transformer", "conv", "abs", "lstmn", "classify"].includes(readOut.kind);
  if (recurrent && unit < sizes.state + sizes.context) {
    return equationLines(left, [[EQUALS(), inputElement(unit, sizes), result]]);
  }
  if (readOut.kind === "classify" && context !== null && unit < context.length) {
    const from = readOut.readOut === "tanh" ? call("tanh", mn(context[unit]!)) : element("c", unit);
    return equationLines(left, [[EQUALS(), from, result]]);
  }
  return equationLines(left, [result]);
}

function summedFeature(
  left: VNode,
  { terms, sum }: FeatureTerms,
  { readOut }: ReadOut,
  result: Children,
): VNode {
  const activated = readOut !== "affine" && readOut !== "maxout";
  const rest = sum - terms.reduce((total, { weight, input }) => total + weight * input, 0);
  const total = activated ? [[EQUALS(), call("tanh", mn(sum))]] : [];
  return equationLines(left, [
    ...terms.map(({ weight, input }, i) => [
      i === 0 && [EQUALS(), activated && [mi("tanh"), mo("(")]],
      (i === 0 ? leading : signed)(weight, [DOT(), factor(input, 2)]),
    ]),
    [signed(rest, mt(`\u00a0${t("from more")}`)), activated && mo(")")],
    ...total,
    result,
  ]);
}
