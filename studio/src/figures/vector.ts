/** A long vector: every number as a small bar, the first ones written out. */
import { h, type Element } from "../dom";
import { count, number } from "../format";

const WRITTEN = 2;

export function size(values: ArrayLike<number>): number {
  let most = 0;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i]!));
  return most;
}

function bars(values: ArrayLike<number>, scale: number, times: number, sign: 1 | -1): string {
  let path = "";
  for (let i = 0; i < values.length; i++) {
    const value = (values[i]! * times) / scale;
    if (value * sign > 0.004) path += `M${i + 0.5} 1v${(-value).toFixed(2)}`;
  }
  return path;
}

/** All numbers between -scale and scale; `times` shrinks them, as a weight does. */
export function strip(values: ArrayLike<number>, scale: number, times = 1): Element {
  const wide = values.length;
  const most = size(values) * Math.abs(times);
  return h(
    "svg",
    {
      class: "strip",
      viewBox: `0 0 ${wide} 2`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${count(wide)} numbers, the largest ${number(most)} in size`,
    },
    h("path", { class: "axis", d: `M0 1h${wide}` }),
    h("path", { class: "plus", d: bars(values, scale || 1, times, 1) }),
    h("path", { class: "minus", d: bars(values, scale || 1, times, -1) }),
  );
}

export interface Named {
  readonly id: string;
  readonly letter: string;
  readonly what: string;
  readonly values: ArrayLike<number>;
  readonly from?: string;
}

/** A vector with its letter, its meaning, its bars and its first numbers. */
export function vector({ id, letter, what, values, from }: Named): Element {
  const first = Array.from({ length: Math.min(WRITTEN, values.length) }, (_, i) =>
    h("span", { class: "n", "data-v": String(values[i]) }, number(values[i]!)),
  );
  const more = values.length > WRITTEN ? `… ${count(values.length)} in all` : "";
  return h(
    "div",
    { class: "vector-line", "data-id": id, "data-from": from },
    h("p", { class: "what" }, h("b", { class: "vector" }, letter), ` ${what}`),
    strip(values, size(values)),
    h("p", { class: "numbers" }, first, h("span", { class: "more" }, more)),
  );
}
