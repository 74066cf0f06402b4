/** Small words for MathML. */
import { h, type Attributes, type Children, type Element } from "./dom";
import { number } from "./format";

export const mi = (text: string): Element => h("mi", {}, text);
/** Brackets keep the size of the line. */
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

/** A number of the trace: its whole value goes with it. */
export const mn = (value: number, attributes: Attributes = {}, digits = 3): Element =>
  h("mn", { "data-v": String(value), ...attributes }, number(value, digits));

/** The same inside a product: what is negative is in brackets. */
export const factor = (value: number, digits = 3): Children => {
  const shown = mn(value, {}, digits);
  return value < 0 ? mrow(mo("("), shown, mo(")")) : shown;
};

export const formula = (...parts: Children[]): Element =>
  h("math", { class: "formula", displaystyle: "true" }, mrow(...parts));

/** Lines of one sum, their signs below one another. */
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
export const joined = (...parts: Children[]): Children => [mo("["), parts, mo("]")];
export const DOT = (): Element => mo("·");
export const EQUALS = (): Element => mo("=");
export const PLUS = (): Element => mo("+");
