/** A vector: every number as a small bar, the first ones as text. */
import { t } from "../i18n";
import { h, type VNode } from "../dom";
import { formatCount, formatNumber } from "../format";

const N_NUMBERS = 2; // as text

export function maxAbs(values: ArrayLike<number>): number {
  let largest = 0;
  for (let i = 0; i < values.length; i++) largest = Math.max(largest, Math.abs(values[i]!));
  return largest;
}

function bars(values: ArrayLike<number>, scale: number, times: number, sign: 1 | -1): string {
  let path = "";
  for (let i = 0; i < values.length; i++) {
    const value = (values[i]! * times) / scale;
    if (value * sign > 0.004) path += `M${i + 0.5} 1v${(-value).toFixed(2)}`;
  }
  return path;
}

/** All numbers as bars between -scale and scale; `times` multiplies them, as a weight does. */
export function barStrip(values: ArrayLike<number>, scale: number, times = 1): VNode {
  const width = values.length;
  const largest = maxAbs(values) * Math.abs(times);
  return h(
    "svg",
    {
      class: "strip",
      viewBox: `0 0 ${width} 2`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": t("{n} numbers, largest absolute value {largest}", {
        n: formatCount(width),
        largest: formatNumber(largest),
      }),
    },
    h("path", { class: "axis", d: `M0 1h${width}` }),
    h("path", { class: "plus", d: bars(values, scale || 1, times, 1) }),
    h("path", { class: "minus", d: bars(values, scale || 1, times, -1) }),
  );
}

export interface NamedVector {
  readonly id: string;
  readonly symbol: string;
  readonly meaning: string;
  readonly values: ArrayLike<number>;
  readonly from?: string;
}

/** A vector with its symbol, meaning, bars and first numbers. */
export function vector({ id, symbol, meaning, values, from }: NamedVector): VNode {
  const first = Array.from({ length: Math.min(N_NUMBERS, values.length) }, (_, i) =>
    h("span", { class: "n", "data-v": String(values[i]) }, formatNumber(values[i]!)),
  );
  const more = values.length > N_NUMBERS ? `… ${t("{n} numbers", { n: formatCount(values.length) })}` : "";
  return h(
    "div",
    { class: "vector-line", "data-id": id, "data-from": from },
    h("p", { class: "vector-meaning" }, h("b", { class: "vector" }, symbol), ` ${meaning}`),
    barStrip(values, maxAbs(values)),
    h("p", { class: "numbers" }, first, h("span", { class: "more" }, more)),
  );
}
