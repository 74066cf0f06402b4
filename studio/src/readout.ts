/** The formulas of every read-out: from the look to the probabilities of words. */
import type { Children, Element } from "./dom";
import { exp, index } from "./formulas";
import { EQUALS, PLUS, call, formula, joined, mi, mn, mo, mt, root, steps, vec } from "./math";

const y = (): Element => vec("y");
const s = (): Element => vec("s");
const c = (): Element => vec("c");
const x = (): Element => vec("x");
const r = (): Element => vec("r");

/** From the look to the vector that words are compared with. */
export function combineRules(
  kind: string,
  readOut: string,
  norm: string,
  looks: boolean,
): { rules: Element[]; what: string } {
  const is = (...parts: Children[]): Element => formula(x(), EQUALS(), parts);
  const both = looks ? joined(s(), mo(";"), c()) : s();
  if (kind === "transformer") {
    const [u, z] = [(): Element => vec("u"), (): Element => vec("z")];
    const feed = (of: Children): Element => formula(z(), EQUALS(), u(), PLUS(), call("feed", of));
    const added = norm === "pre" ? [r(), PLUS(), c()] : call("norm", r(), PLUS(), c());
    return {
      rules: [
        formula(u(), EQUALS(), added),
        feed(norm === "pre" ? call("norm", u()) : u()),
        is(call("norm", z())),
      ],
      what: "What was read (c) is added to what the decoder had (r). Feed is two learned layers, norm evens out the sizes.",
    };
  }
  if (kind === "conv") {
    const half = (): Element => root(mt("½"));
    return {
      rules: [
        formula(
          vec("u"),
          EQUALS(),
          mo("("),
          vec("g"),
          PLUS(),
          mi("A"),
          c(),
          PLUS(),
          mi("a"),
          mo(")"),
          half(),
        ),
        is(mi("W"), mo("("), vec("u"), PLUS(), r(), mo(")"), half(), PLUS(), mi("b")),
      ],
      what: "What was read (c) is added to the layer's output (g) and input (r); each root keeps the sum at the size of its parts. A, a, W and b are learned.",
    };
  }
  if (kind === "abs") {
    return {
      rules: [is(joined(call("tanh", mi("H"), y(), PLUS(), mi("b")), mo(";"), c()))],
      what: "y: the vectors of the last words written. H and b are learned; [ ; ] joins two vectors.",
    };
  }
  const rules: Record<string, [Element, string]> = {
    linear: [
      is(both),
      looks
        ? "The decoder's state and the context are put side by side, unchanged."
        : "The decoder's state as it is.",
    ],
    tanh: [is(call("tanh", mi("W"), both)), "W is learned; tanh keeps every number between −1 and 1."],
    affine: [is(mi("W"), both, PLUS(), mi("b")), "W and b are learned; [ ; ] joins two vectors."],
    deep: [
      is(call("tanh", mi("L"), looks ? joined(s(), mo(";"), c(), mo(";"), y()) : joined(s(), mo(";"), y()))),
      "y: the word written before. L is learned.",
    ],
    maxout: [
      formula(
        x(),
        EQUALS(),
        mi("max"),
        mo("("),
        mi("L"),
        looks ? joined(s(), mo(";"), c(), mo(";"), y()) : joined(s(), mo(";"), y()),
        mo(")"),
      ),
      "y: the word written before. L is learned; of every two numbers the larger is kept.",
    ],
  };
  const [rule, what] = rules[readOut] ?? rules.linear!;
  return { rules: [rule], what };
}

export const wordRule = (): Element =>
  formula(mi("p"), EQUALS(), call("softmax", mi("O"), x(), PLUS(), mi("b")));

export function wordNumbers(word: string, logp: number): Element {
  const p = [mi("p"), mo("("), index(word), mo(")")];
  return steps(p, [
    [EQUALS(), exp(mn(logp))],
    [EQUALS(), mn(Math.exp(logp), { "data-from": "said" })],
  ]);
}
