/** Builders of MathML elements. */
import { h, type Attributes, type Children, type Element } from "./dom";
import { number } from "./format";

export const mi = (text: string): Element => h("mi", {}, text);
/** An operator; brackets do not stretch. */
export const mo = (text: string): Element =>
  h("mo", "()[]".includes(text) ? { stretchy: "false" } : {}, text);
export const mt = (text: string): Element => h("mtext", {}, text);
export const mrow = (...parts: Children[]): Element => h("mrow", {}, parts);
export const sub = (base: Children, index: Children): Element => h("msub", {}, base, index);
export const sup = (base: Children, power: Children): Element => h("msup", {}, base, power);
export const frac = (above: Children, below: Children): Element => h("mfrac", {}, above, below);
export const root = (...parts: Children[]): Element => h("msqrt", {}, parts);

/** A vector is upright and bold. */
export const vec = (text: string): Element => h("mi", { mathvariant: "normal", class: "vector" }, text);

/** A number of the trace, with its unrounded value. */
export const mn = (value: number, attributes: Attributes = {}, digits = 3): Element =>
  h("mn", { "data-v": String(value), ...attributes }, number(value, digits));

/** A factor of a product; negative ones in brackets. */
export const factor = (value: number, digits = 3): Children => {
  const text = mn(value, {}, digits);
  return value < 0 ? mrow(mo("("), text, mo(")")) : text;
};

export const formula = (...parts: Children[]): Element =>
  h("math", { class: "formula", displaystyle: "true" }, mrow(...parts));

/** The lines of one equation, their signs aligned. */
export const steps = (left: Children, lines: readonly Children[]): Element =>
  h(
    "math",
    { class: "formula", displaystyle: "true" },
    h(
      "mtable",
      { class: "steps", displaystyle: "true" },
      lines.map((line, i) =>
        h(
          "mtr",
          {},
          h("mtd", { class: "left" }, mrow(i === 0 ? left : [])),
          h("mtd", { class: "right" }, mrow(line)),
        ),
      ),
    ),
  );

export const call = (name: string, ...parts: Children[]): Children => [mi(name), mo("("), parts, mo(")")];
export const concatenated = (...parts: Children[]): Children => [mo("["), parts, mo("]")];
export const DOT = (): Element => mo("·");
export const EQUALS = (): Element => mo("=");
export const PLUS = (): Element => mo("+");
