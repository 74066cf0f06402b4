/** Builders of MathML elements. */
import { h, type Attributes, type Children, type VNode } from "./dom";
import { formatNumber } from "./format";

export const mi = (text: string): VNode => h("mi", {}, text);
/** An operator; brackets do not stretch. */
export const mo = (text: string): VNode => h("mo", "()[]".includes(text) ? { stretchy: "false" } : {}, text);
export const mt = (text: string): VNode => h("mtext", {}, text);
export const mrow = (...parts: Children[]): VNode => h("mrow", {}, parts);
export const sub = (base: Children, index: Children): VNode => h("msub", {}, base, index);
export const sup = (base: Children, power: Children): VNode => h("msup", {}, base, power);
export const frac = (above: Children, below: Children): VNode => h("mfrac", {}, above, below);
export const sqrt = (...parts: Children[]): VNode => h("msqrt", {}, parts);

/** A vector is upright and bold. */
export const vec = (text: string): VNode => h("mi", { mathvariant: "normal", class: "vector" }, text);

/** A number of the trace, with its unrounded value. */
export const mn = (value: number, attributes: Attributes = {}, digits = 3): VNode =>
  h("mn", { "data-v": String(value), ...attributes }, formatNumber(value, digits));

/** A factor of a product; negative ones in brackets. */
export const factor = (value: number, digits = 3): Children => {
  const text = mn(value, {}, digits);
  return value < 0 ? mrow(mo("("), text, mo(")")) : text;
};

export const formula = (...parts: Children[]): VNode =>
  h("math", { class: "formula", displaystyle: "true" }, mrow(...parts));

/** The lines of one equation, their signs aligned. */
export const equationLines = (left: Children, lines: readonly Children[]): VNode =>
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
export const concatenate = (...parts: Children[]): Children => [mo("["), parts, mo("]")];
export const DOT = (): VNode => mo("·");
export const EQUALS = (): VNode => mo("=");
export const PLUS = (): VNode => mo("+");
