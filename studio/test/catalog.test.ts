/** The catalog has every text in every language, and nothing else. (That none is missing is checked by its types.) */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CATALOG } from "../src/catalog";
import { language, t, type Language, type Text } from "../src/i18n";

const SOURCE = new URL("../src/", import.meta.url);
const sources = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && name !== "catalog.ts")
  .map((name) => readFileSync(new URL(name, SOURCE), "utf8"))
  .join("\n");
const placeholders = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).sort();
const entries = Object.entries(CATALOG) as [Text, readonly [string, string]][];

test.each(entries.map(([text]) => text))("%s is used", (text) => {
  expect(sources).toContain(JSON.stringify(text));
});

describe.each([0, 1])("translation %i", (index) => {
  test.each(entries)("%s", (text, translations) => {
    expect(translations[index]!.trim()).not.toBe("");
    expect(placeholders(translations[index]!)).toEqual(placeholders(text));
  });
});

test.each([
  ["en", "word 2 of 9"],
  ["vi", "từ 2 trên 9"],
  ["zh", "第 2 个词，共 9 个"],
] as [Language, string][])("%s", (chosen, expected) => {
  language.value = chosen;
  expect(t("word {n} of {all}", { n: 2, all: 9 })).toBe(expected);
  language.value = "en";
});

test("no text of a view is written without the catalog", () => {
  const views = readdirSync(new URL("views/", SOURCE), { encoding: "utf8" })
    .map((name) => readFileSync(new URL(`views/${name}`, SOURCE), "utf8"))
    .join("\n");
  const literals = [...views.matchAll(/"([A-Z][a-z]+(?: [a-z]+)+[^"]*)"/g)].map(([, text]) => text!);
  expect(literals.filter((text) => !(text in CATALOG))).toEqual([]);
});
