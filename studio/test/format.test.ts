import { expect, test } from "vitest";
import { formatDifference, formatNumber, formatPercent, formatWeight, tokenText } from "../src/format";

test("small numbers are not rounded to 0", () => {
  expect([0, 1, -0.5, 0.0004, -3e-7, 13.3324].map((value) => formatNumber(value))).toEqual([
    "0",
    "1.000",
    "−0.500",
    "4e−4",
    "−3e−7",
    "13.332",
  ]);
  expect(formatNumber(NaN)).toBe("not a number");
});

test("a weight in a cell has two digits", () => {
  expect([0.004, 0.006, 0.914, 0.999, 1.5].map(formatWeight)).toEqual(["·", ".01", ".91", "1", "1.50"]);
});

test("differences and percents", () => {
  expect(formatDifference(1.46e-7)).toBe("1.5e−7");
  expect([0, 0.0001, 0.034, 0.96, 0.996, 0.9999, 1].map(formatPercent)).toEqual([
    "0.0 %",
    "less than 0.1 %",
    "3.4 %",
    "96 %",
    "99.6 %",
    "more than 99.9 %",
    "100 %",
  ]);
});

test("a token loses its space marker; a subword that continues a word has a hyphen, punctuation none", () => {
  const tokens = [
    { text: "▁Park", word: 0, role: "normal" as const },
    { text: "ing", word: 0, role: "normal" as const },
    { text: ".", word: 0, role: "normal" as const },
    { text: "▁", word: 1, role: "normal" as const },
  ];
  const side = { text: "", words: ["Parking.", ""], tokens };
  expect([0, 1, 2, 3].map((position) => tokenText(side, position))).toEqual(["Park", "‑ing", ".", "▁"]);
});
