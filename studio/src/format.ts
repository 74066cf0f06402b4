/** Numbers and tokens as text. */
import { t } from "./i18n";
import type { Side, Token } from "./trace";

const MINUS = "\u2212";

/** Three decimals; smaller numbers as a power of ten. */
export function formatNumber(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? t("not a number") : value > 0 ? "∞" : `${MINUS}∞`;
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 0.5 * 10 ** -digits ? size.toExponential(0) : size.toFixed(digits);
  return (value < 0 ? MINUS : "") + text.replace("e-", `e${MINUS}`).replace("e+", "e");
}

/** A weight inside a cell: ".91", "1", or "·" for less than half a hundredth. */
export function formatWeight(value: number): string {
  if (value < 0.005) return "·";
  return value >= 0.995 ? value.toFixed(value > 1.005 ? 2 : 0) : value.toFixed(2).replace(/^0/, "");
}

export function formatDifference(value: number): string {
  return value === 0 ? "0" : value.toExponential(1).replace("e-", `e${MINUS}`).replace("e+", "e");
}

/** Whole percents; near 0 and 1 with a decimal, so that neither is claimed too early. */
export function formatPercent(value: number): string {
  const text = (100 * value).toFixed(value < 0.0995 || (value > 0.99 && value < 1) ? 1 : 0);
  if (value > 0 && text === "0.0") return t("less than {share}", { share: "0.1 %" });
  return value < 1 && text === "100.0" ? t("more than {share}", { share: "99.9 %" }) : `${text} %`;
}

export const formatCount = (value: number): string => value.toLocaleString("en-US");

/** The text of a token; a subword that continues a word starts with a hyphen, unless it is punctuation. */
export function tokenText(side: Side, position: number): string {
  const token = side.tokens[position]!;
  const continues = token.word >= 0 && side.tokens[position - 1]?.word === token.word;
  return (continues && /^[\p{L}\p{N}]/u.test(token.text) ? "‑" : "") + withoutMarker(token);
}

/** The text of a token without the marker of a preceding space. */
export function withoutMarker(token: Pick<Token, "text">): string {
  return token.text.replace(/^▁(?=.)/u, "");
}

export const quote = (text: string): string => `“${text}”`;
export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
/** A label of a classifier as words. */
export const readable = (label: string): string => label.replaceAll("_", " ");
