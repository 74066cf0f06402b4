/** The formulas of every score, normalizer and placement, and the same with the numbers of one step. */
import type { Children, VNode } from "./dom";
import { t } from "./i18n";
import { entmax15, gaussian, sparsemax, weightsFromScores } from "./equations";
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
  sup,
  vec,
} from "./mathml";
import type { StepDetail } from "./detail";
import { largestTerms, type ScoreTerm } from "./terms";

const MAX_INDEX_LETTERS = 6; // of a word under a symbol
const MAX_PLAIN_SCORE = 8; // exp() of a larger score would not fit into the line

export function index(word: string): VNode {
  const letters = Array.from(word);
  return mt(
    letters.length > MAX_INDEX_LETTERS ? `${letters.slice(0, MAX_INDEX_LETTERS - 1).join("")}…` : word,
  );
}

const q = (): VNode => vec("q");
const k = (): VNode => sub(vec("k"), mi("i"));

/** The score function; `meaning` explains the symbols. */
export function scoreRule({ settings, record }: StepDetail): { rule: VNode; meaning: string } | null {
  const heads = settings.heads > 0;
  const query = heads ? [mi("Q"), q()] : [q()];
  const key = heads ? [mi("K"), k()] : [k()];
  const projected = heads ? ` ${t("Q and K are this head's learned projections.")}` : "";
  const rules: Record<string, [Children, string]> = {
    additive: [
      [
        mi("v"),
        DOT(),
        mi("tanh"),
        mo("("),
        mi("W"),
        query,
        PLUS(),
        mi("U"),
        key,
        !settings.bias && !settings.coverage && mo(")"),
      ],
      t("{letters} and v are learned.", { letters: settings.bias ? "W, U, b" : "W, U" }) +
        (settings.coverage ? ` ${t("C is the coverage: the sum of this word's weights so far.")}` : ""),
    ],
    concat: [
      [mi("v"), DOT(), call("tanh", mi("W"), concatenate(query, mo(";"), key))],
      t("W and v are learned; [ ; ] concatenates."),
    ],
    dot: [[query, DOT(), key], t("The dot product of query and key.")],
    "scaled-dot": [
      frac(mrow(query, DOT(), key), sqrt(mi("d"))),
      t("d is the width of q: the root keeps scores of wide vectors from growing."),
    ],
    general: [[query, DOT(), mi("W"), key], t("W is learned.")],
    location: [
      [mo("("), mi("W"), query, sub(mo(")"), mi("i"))],
      t("W is learned; the score depends on the position, not on the input word."),
    ],
    "prod-relu": [
      [mi("h"), DOT(), call("relu", mi("W"), mo("("), query, mo("⊙"), key, mo(")"), PLUS(), mi("b"))],
      t("W, b and h are learned; ⊙ is the elementwise product."),
    ],
    "concat-relu": [
      [mi("h"), DOT(), call("relu", mi("W"), concatenate(query, mo(";"), key), PLUS(), mi("b"))],
      t("W, b and h are learned; [ ; ] concatenates."),
    ],
  };
  const entry = rules[settings.score];
  if (entry === undefined || record.scores == null) return null;
  const more = [
    settings.bias && [PLUS(), mi("b")],
    settings.coverage && [PLUS(), mi("w"), sub(mi("C"), mi("i"))],
  ];
  const rest = settings.bias || settings.coverage ? [[more, mo(")")]] : [];
  return {
    rule: equationLines(sub(mi("e"), mi("i")), [[EQUALS(), entry[0]], ...rest]),
    meaning: entry[1] + projected,
  };
}

const N_SCORE_TERMS = 3;

/** The score of the explained key: the largest terms of its sum, and the rest as one. */
export function scoreNumbers(detail: StepDetail, word: string): VNode | null {
  const { scores, settings, position, terms } = detail;
  if (scores === null) return null;
  const e = sub(mi("e"), index(word));
  const result = mn(scores[position]!, { "data-from": `q k${position}` });
  if (terms === null) return formula(e, EQUALS(), result);
  const { largest, rest, others } = largestTerms(terms, N_SCORE_TERMS);
  const divisor = settings.score === "scaled-dot" ? terms.length : 1; // under a root
  const lines: Children[] = largest.map((term, i) => [
    i === 0 && [EQUALS(), divisor > 1 && mo("("), leading(term.factors[0], secondFactor(term))],
    i > 0 && signed(term.factors[0], secondFactor(term)),
  ]);
  if (others > 0)
    lines.push(signed(rest * Math.sqrt(divisor), mt(`\u00a0${t("from {n} more", { n: others })}`)));
  if (divisor > 1) lines.push([mo(")"), mo("/"), sqrt(mt(String(divisor)))]);
  return equationLines(e, [...lines, [EQUALS(), result]]);
}

function secondFactor({ factors, activation, addends }: ScoreTerm): Children {
  if (activation === null) return [DOT(), factor(factors[1], 2)];
  const [first = 0, second = 0, third] = addends;
  const parts = third === undefined ? addends : [first + second, third]; // three would not fit into the line
  const sum = parts.map((addend, i) => (i === 0 ? leading(addend) : signed(addend)));
  return [DOT(), call(activation, sum)];
}

const a = (): VNode => sub(mi("α"), mi("i"));
export const exp = (of: Children): VNode => mrow(call("exp", of));
const sumExp = (): Children => [sub(mo("∑"), mi("j")), exp(sub(mi("e"), mi("j")))];

export function weightRule({ settings }: StepDetail): { rule: VNode; meaning: string } {
  const e = (): VNode => sub(mi("e"), mi("i"));
  const rules: Record<string, [Children, string]> = {
    softmax: [frac(exp(e()), mrow(sumExp())), t("Exponentials, normalized to sum to 1.")],
    "smoothed-softmax": [
      frac(exp(e()), sup(mrow(mo("("), sumExp(), mo(")")), mi("β"))),
      t("β = {beta}: below 1 the weights are flatter and need not sum to 1.", { beta: settings.beta }),
    ],
    sparsemax: [
      [mi("max"), mo("("), mt("0"), mo(","), e(), mo("−"), mi("τ"), mo(")")],
      t("τ is such that the weights sum to 1; scores below it get weight 0."),
    ],
    entmax15: [
      sup(mrow(mi("max"), mo("("), mt("0"), mo(","), frac(e(), mt("2")), mo("−"), mi("τ"), mo(")")), mt("2")),
      t("τ is such that the weights sum to 1; scores below it get weight 0."),
    ],
  };
  const [rule, meaning] = rules[settings.normalizer] ?? rules.softmax!;
  const spread: Children = [
    frac(
      mrow(mo("("), mi("i"), mo("−"), mi("p"), sup(mo(")"), mt("2"))),
      mrow(mt("2"), sup(mi("σ"), mt("2"))),
    ),
  ];
  switch (settings.placement) {
    case "uniform":
      return {
        rule: formula(a(), EQUALS(), frac(mt("1"), mi("n"))),
        meaning: t("A baseline: all n keys get the same weight, whatever the scores."),
      };
    case "local-m":
      return {
        rule: formula(a(), EQUALS(), rule),
        meaning: `${meaning} ${t("Only positions within {window} of the output position get a weight.", { window: settings.window })}`,
      };
    case "local-p":
      return {
        rule: equationLines(a(), [
          [EQUALS(), rule],
          [DOT(), exp([mo("−"), spread])],
        ]),
        meaning: `${meaning} ${t(
          settings.renormalize
            ? "Only positions within {window} of p, a position that the model predicts, get a weight, scaled by a Gaussian; then they are renormalized."
            : "Only positions within {window} of p, a position that the model predicts, get a weight, scaled by a Gaussian; so they may sum to less than 1.",
          { window: settings.window },
        )}`,
      };
    case "hard":
      return settings.hard_inference === "expectation"
        ? { rule: formula(a(), EQUALS(), rule), meaning }
        : {
            rule: formula(a(), EQUALS(), rule),
            meaning: `${meaning} ${
              settings.hard_inference === "sample"
                ? t("Then one position is sampled from these weights, and gets all of the weight.")
                : t("Then the position with the largest weight is taken, and gets all of the weight.")
            }`,
          };
    default:
      return { rule: formula(a(), EQUALS(), rule), meaning };
  }
}

/** The weight of the explained key from its score, where that fits on one line. */
export function weightNumbers(detail: StepDetail, word: string): VNode[] {
  const { settings, scores, inside, weights, position, center, allowed, step, extras } = detail;
  const weight = sub(mi("α"), index(word));
  const result = mn(weights[position]!, { "data-from": `e${position}` });
  if (detail.edited) return [formula(weight, EQUALS(), result)];
  if (settings.placement === "uniform") {
    return [
      formula(weight, EQUALS(), frac(mt("1"), mt(String(allowed.filter(Boolean).length))), EQUALS(), result),
    ];
  }
  const drawn = settings.placement === "hard" && settings.hard_inference !== "expectation";
  if (scores === null || !inside[position] || drawn) return [formula(weight, EQUALS(), result)];
  const unscaled = normalizerNumbers(detail, scores, inside, position);
  if (settings.placement !== "local-p" || center === null)
    return [
      equationLines(weight, [
        [EQUALS(), unscaled],
        [EQUALS(), result],
      ]),
    ];
  const factorAt = mn(gaussian(position, center, settings.window));
  const local = weightsFromScores(scores, allowed, { ...settings, renormalize: false }, step, extras);
  const sum = mn(local.reduce((total, one) => total + one, 0));
  return [
    formula(mi("p"), EQUALS(), mn(center), mo(","), mi("σ"), EQUALS(), mn(settings.window / 2)),
    equationLines(weight, [
      [EQUALS(), unscaled],
      settings.renormalize ? [DOT(), factorAt, mo("/"), sum] : [DOT(), factorAt],
      [EQUALS(), result],
    ]),
  ];
}

function normalizerNumbers(
  { settings }: StepDetail,
  scores: ArrayLike<number>,
  inside: readonly boolean[],
  position: number,
): Children {
  const score = scores[position]!;
  const all = Array.from(scores).filter((_, i) => inside[i]);
  if (settings.normalizer === "sparsemax") return [mn(score), mo("−"), factor(sparsemax(all).tau)];
  if (settings.normalizer === "entmax15") {
    return sup(mrow(mo("("), mn(score / 2, {}, 2), mo("−"), factor(entmax15(all).tau, 2), mo(")")), mt("2"));
  }
  const shift = scoreShift(all);
  const sum = all.reduce((total, one) => total + Math.exp(one - shift), 0);
  const below = settings.normalizer === "softmax" ? mn(sum) : sup(mn(sum), mt(String(settings.beta)));
  return frac(exp(mn(score - shift)), below);
}

/** Large scores are shown relative to the largest, which does not change the weights; 0 where that is not needed. */
function scoreShift(all: readonly number[]): number {
  const top = Math.max(...all);
  return Math.abs(top) > MAX_PLAIN_SCORE ? top : 0;
}

export function shownShift({ settings, scores, inside }: StepDetail): number | null {
  if (scores === null || settings.placement === "uniform" || !settings.normalizer.endsWith("softmax"))
    return null;
  return scoreShift(Array.from(scores).filter((_, i) => inside[i])) || null;
}

export const contextRule = (): VNode =>
  formula(vec("c"), EQUALS(), sub(mo("∑"), mi("i")), sub(mi("α"), mi("i")), sub(vec("v"), mi("i")));

const N_TERMS = 2;

/** The first number of the context: its largest terms, and the rest as one. */
export function contextNumbers({ weights, values, context }: StepDetail): VNode | null {
  if (values === null || context === null || context.length === 0) return null;
  const order = Array.from(weights, (_, i) => i).sort((x, y) => weights[y]! - weights[x]!);
  const largest = order.slice(0, N_TERMS).filter((i) => weights[i]! > 0);
  const rest = order.slice(largest.length).reduce((sum, i) => sum + weights[i]! * values[i]![0]!, 0);
  const terms = largest.map((i, n) => [
    n === 0 ? EQUALS() : PLUS(),
    mn(weights[i]!),
    DOT(),
    factor(values[i]![0]!),
  ]);
  const others = order.length - largest.length;
  const sum = others > 0 ? [[PLUS(), factor(rest), mt(`\u00a0${t("from {n} more", { n: others })}`)]] : [];
  const result = [EQUALS(), mn(context[0]!, { "data-from": "context" })];
  return equationLines(sub(vec("c"), mt("1")), [...terms, ...sum, result]);
}
