/** The formulas of every mechanism, with the numbers of one moment put in. */
import type { Children, Element } from "./dom";
import { bell, entmax15, placed, sparsemax } from "./maths";
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
  sub,
  sup,
  vec,
} from "./math";
import type { Moment } from "./moment";

const LONGEST = 9; // letters of a word under a symbol
const RAW = 8; // exp() of a larger score would not fit into the line

export function index(word: string): Element {
  const letters = Array.from(word);
  return mt(letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : word);
}

const q = (): Element => vec("q");
const k = (): Element => sub(vec("k"), mi("i"));

/** What is compared with what; `what` explains the letters. */
export function scoreRule({ how, looks }: Moment): { rule: Element; what: string } | null {
  const heads = how.heads > 0;
  const asked = heads ? [mi("Q"), q()] : [q()];
  const key = heads ? [mi("K"), k()] : [k()];
  const projected = heads ? " Q and K, learned, make this head's own versions of q and k." : "";
  const rules: Record<string, [Children, string]> = {
    additive: [
      [
        mi("v"),
        DOT(),
        mi("tanh"),
        mo("("),
        mi("W"),
        asked,
        PLUS(),
        mi("U"),
        key,
        !how.bias && !how.coverage && mo(")"),
      ],
      `W, U${how.bias ? ", b" : ""} and v are learned.${how.coverage ? " C: the weight that this input word has had so far." : ""}`,
    ],
    concat: [
      [mi("v"), DOT(), call("tanh", mi("W"), joined(asked, mo(";"), key))],
      "W and v are learned; [ ; ] joins two vectors.",
    ],
    dot: [[asked, DOT(), key], "The sum of the products, number by number."],
    "scaled-dot": [
      frac(mrow(asked, DOT(), key), root(mi("d"))),
      "d is how many numbers are multiplied: the root keeps scores of long vectors from growing.",
    ],
    general: [[asked, DOT(), mi("W"), key], "W is learned."],
    location: [
      [mo("("), mi("W"), asked, sub(mo(")"), mi("i"))],
      "W is learned; the input word itself is not looked at, only its place.",
    ],
    "prod-relu": [
      [mi("h"), DOT(), call("relu", mi("W"), mo("("), asked, mo("⊙"), key, mo(")"), PLUS(), mi("b"))],
      "W, b and h are learned; ⊙ multiplies number by number.",
    ],
    "concat-relu": [
      [mi("h"), DOT(), call("relu", mi("W"), joined(asked, mo(";"), key), PLUS(), mi("b"))],
      "W, b and h are learned; [ ; ] joins two vectors.",
    ],
  };
  const found = rules[how.score];
  if (found === undefined || looks.score == null) return null;
  const more = [how.bias && [PLUS(), mi("b")], how.coverage && [PLUS(), mi("w"), sub(mi("C"), mi("i"))]];
  const rest = how.bias || how.coverage ? [[more, mo(")")]] : [];
  return { rule: steps(sub(mi("e"), mi("i")), [[EQUALS(), found[0]], ...rest]), what: found[1] + projected };
}

export function scoreNumbers(moment: Moment, word: string): Element | null {
  const { scores, how, query, keys, chosen } = moment;
  if (scores === null) return null;
  const e = sub(mi("e"), index(word));
  const result = mn(scores[chosen]!, { "data-from": `q k${chosen}` });
  const dots = (how.score === "dot" || how.score === "scaled-dot") && how.heads === 0;
  if (!dots || query === null || keys === null) return formula(e, EQUALS(), result);
  const key = keys[chosen]!;
  const terms: Children = [factor(query[0]!, 2), DOT(), factor(key[0]!, 2), PLUS(), mo("…")];
  const sum = how.score === "dot" ? terms : frac(mrow(terms), root(mt(String(query.length))));
  return steps(e, [
    [EQUALS(), sum],
    [EQUALS(), result],
  ]);
}

const a = (): Element => sub(mi("α"), mi("i"));
export const exp = (of: Children): Element => mrow(call("exp", of));
const sumExp = (): Children => [sub(mo("∑"), mi("j")), exp(sub(mi("e"), mi("j")))];

export function weightRule({ how }: Moment): { rule: Element; what: string } {
  const e = (): Element => sub(mi("e"), mi("i"));
  const rules: Record<string, [Children, string]> = {
    softmax: [frac(exp(e()), mrow(sumExp())), "Every score becomes positive; then all are made to sum to 1."],
    "smoothed-softmax": [
      frac(exp(e()), sup(mrow(mo("("), sumExp(), mo(")")), mi("β"))),
      `β = ${how.beta}: less than 1 makes the weights flatter; they need not sum to 1.`,
    ],
    sparsemax: [
      [mi("max"), mo("("), mt("0"), mo(","), e(), mo("−"), mi("τ"), mo(")")],
      "τ is chosen so that the weights sum to 1; what is below it gets nothing.",
    ],
    entmax15: [
      sup(mrow(mi("max"), mo("("), mt("0"), mo(","), frac(e(), mt("2")), mo("−"), mi("τ"), mo(")")), mt("2")),
      "τ is chosen so that the weights sum to 1; what is below it gets nothing.",
    ],
  };
  const [rule, what] = rules[how.normaliser] ?? rules.softmax!;
  const spread: Children = [
    frac(
      mrow(mo("("), mi("i"), mo("−"), mi("p"), sup(mo(")"), mt("2"))),
      mrow(mt("2"), sup(mi("σ"), mt("2"))),
    ),
  ];
  switch (how.placement) {
    case "uniform":
      return {
        rule: formula(a(), EQUALS(), frac(mt("1"), mi("n"))),
        what: "A control: all n readable words get the same weight, whatever the scores.",
      };
    case "local-m":
      return {
        rule: formula(a(), EQUALS(), rule),
        what: `${what} Only words at most ${how.window} places from the output's own place are weighed.`,
      };
    case "local-p":
      return {
        rule: steps(a(), [
          [EQUALS(), rule],
          [DOT(), exp([mo("−"), spread])],
        ]),
        what: `${what} Only ${how.window} places to each side of p, a place the model predicts, are weighed; the nearer, the more; ${how.renormalise ? "then they are made to sum to 1 again" : "so they may sum to less than 1"}.`,
      };
    case "hard":
      return how.generate === "expectation"
        ? { rule: formula(a(), EQUALS(), rule), what }
        : {
            rule: formula(a(), EQUALS(), rule),
            what: `${what} Then ${how.generate === "sample" ? "one word is drawn by these chances" : "the best word is taken"}, and gets all the weight.`,
          };
    default:
      return { rule: formula(a(), EQUALS(), rule), what };
  }
}

/** The weight of the explained position from its score, where that is one line. */
export function weightNumbers(moment: Moment, word: string): Element[] {
  const { how, scores, inside, weights, chosen, centre, open, step, extra } = moment;
  const mine = sub(mi("α"), index(word));
  const result = mn(weights[chosen]!, { "data-from": `e${chosen}` });
  if (moment.byHand) return [formula(mine, EQUALS(), result)];
  if (how.placement === "uniform") {
    return [
      formula(mine, EQUALS(), frac(mt("1"), mt(String(open.filter(Boolean).length))), EQUALS(), result),
    ];
  }
  const drawn = how.placement === "hard" && how.generate !== "expectation";
  if (scores === null || !inside[chosen] || drawn) return [formula(mine, EQUALS(), result)];
  const bare = normalised(moment, scores, inside, chosen);
  if (how.placement !== "local-p" || centre === null)
    return [
      steps(mine, [
        [EQUALS(), bare],
        [EQUALS(), result],
      ]),
    ];
  const shape = mn(bell(chosen, centre, how.window));
  const unscaled = placed(scores, open, { ...how, renormalise: false }, step, extra);
  const sum = mn(unscaled.reduce((total, weight) => total + weight, 0));
  return [
    formula(mi("p"), EQUALS(), mn(centre), mo(","), mi("σ"), EQUALS(), mn(how.window / 2)),
    steps(mine, [
      [EQUALS(), bare],
      how.renormalise ? [DOT(), shape, mo("/"), sum] : [DOT(), shape],
      [EQUALS(), result],
    ]),
  ];
}

function normalised(
  { how }: Moment,
  scores: ArrayLike<number>,
  inside: readonly boolean[],
  chosen: number,
): Children {
  const mine = scores[chosen]!;
  const all = Array.from(scores).filter((_, i) => inside[i]);
  if (how.normaliser === "sparsemax") return [mn(mine), mo("−"), factor(sparsemax(all).tau)];
  if (how.normaliser === "entmax15") {
    return sup(mrow(mo("("), mn(mine / 2, {}, 2), mo("−"), factor(entmax15(all).tau, 2), mo(")")), mt("2"));
  }
  const shift = shiftOf(all);
  const sum = all.reduce((total, score) => total + Math.exp(score - shift), 0);
  const below = how.normaliser === "softmax" ? mn(sum) : sup(mn(sum), mt(String(how.beta)));
  return frac(exp(mn(mine - shift)), below);
}

/** Large scores are counted from the highest, which changes no weight; said where it is done. */
function shiftOf(all: readonly number[]): number {
  const top = Math.max(...all);
  return Math.abs(top) > RAW ? top : 0;
}

export function shiftSaid({ how, scores, inside }: Moment): number | null {
  if (scores === null || how.placement === "uniform" || !how.normaliser.endsWith("softmax")) return null;
  return shiftOf(Array.from(scores).filter((_, i) => inside[i])) || null;
}

export const contextRule = (): Element =>
  formula(vec("c"), EQUALS(), sub(mo("∑"), mi("i")), sub(mi("α"), mi("i")), sub(vec("v"), mi("i")));

const TERMS = 2;

/** The first number of the context: its heaviest terms, and the rest as one. */
export function contextNumbers({ weights, values, context }: Moment): Element | null {
  if (values === null || context === null || context.length === 0) return null;
  const order = Array.from(weights, (_, i) => i).sort((x, y) => weights[y]! - weights[x]!);
  const shown = order.slice(0, TERMS).filter((i) => weights[i]! > 0);
  const rest = order.slice(shown.length).reduce((sum, i) => sum + weights[i]! * values[i]![0]!, 0);
  const terms = shown.map((i, n) => [
    n === 0 ? EQUALS() : PLUS(),
    mn(weights[i]!),
    DOT(),
    factor(values[i]![0]!),
  ]);
  const others = order.length - shown.length;
  const sum = others > 0 ? [[PLUS(), factor(rest), mt(`\u00a0from ${others} more`)]] : [];
  const result = [EQUALS(), mn(context[0]!, { "data-from": "context" })];
  return steps(sub(vec("c"), mt("1")), [...terms, ...sum, result]);
}
