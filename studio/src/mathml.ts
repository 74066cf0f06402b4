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

/** A term of a sum with its sign: "+ 0.5 …" or "− 0.5 …"; `rest` multiplies it. */
export const signed = (value: number, rest: Children = [], digits = 2): Children => [
  infix(value < 0 ? "−" : "+"),
  mn(Math.abs(value), {}, digits),
  rest,
];

/** The first term of a sum, after a bracket or an equals sign. */
export const leading = (value: number, rest: Children = [], digits = 2): Children => [
  value < 0 && h("mo", { form: "prefix", lspace: "0", rspace: "0" }, "−"),
  mn(Math.abs(value), {}, digits),
  rest,
];

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
export const DOT = (): VNode => h("mo", { lspace: "0.1em", rspace: "0.1em" }, "·");
/** An operator between two parts, also at the start of a line. */
export const infix = (text: string): VNode =>
  h("mo", { form: "infix", lspace: "0.18em", rspace: "0.18em" }, text);
export const EQUALS = (): VNode => infix("=");
export const PLUS = (): VNode => infix("+");
