/** The language of the interface. The English text is the key; `catalog.ts` has its translations. */
import { signal } from "@preact/signals-core";
import { CATALOG } from "./catalog";
import type { Children } from "./dom";

export const LANGUAGES = { en: "English", vi: "Tiếng Việt", zh: "中文" } as const;
export type Language = keyof typeof LANGUAGES;
export type Text = keyof typeof CATALOG;
export type Values = Readonly<Record<string, string | number>>;

const STORED = "heedful-language";
const isLanguage = (name: string | null | undefined): name is Language => name != null && name in LANGUAGES;

export const language = signal<Language>("en");

/** The text in the language of the interface, with `{name}` replaced by its value. */
export function t(text: Text, values: Values = {}): string {
  return fill(translation(text), values).join("");
}

/** The same for values that are elements. */
export function rich(text: Text, values: Readonly<Record<string, Children>>): Children {
  return fill(translation(text), values);
}

/** Translations that were loaded; only the studio loads them, the page has them in its script. */
const loaded = signal<Partial<Record<Language, Readonly<Record<string, string>>>>>({});

/** `CATALOG` has translations by the English text; in builds (catalog.mjs) strings by an id. */
function translation(text: Text): string {
  const entry = CATALOG[text] as readonly string[] | string | undefined;
  const [vi, zh, en] = typeof entry === "string" ? parts(entry) : (entry ?? []);
  if (language.value === "en") return en || text;
  return loaded.value[language.value]?.[text] ?? (language.value === "vi" ? vi : zh) ?? (en || text);
}

const parts = (entry: string): readonly (string | undefined)[] =>
  entry.includes("|") ? entry.split("|") : [undefined, undefined, entry];

/** Load the translations into a language; without them, texts are English. */
export async function loadLanguage(wanted: Language): Promise<void> {
  if (wanted === "en" || wanted in loaded.peek()) return;
  try {
    const response = await fetch(`/studio/studio.${wanted}.json`);
    if (response.ok) loaded.value = { ...loaded.peek(), [wanted]: await response.json() };
  } catch {
    // the server is away: English until the page is loaded again
  }
}

function fill<T>(text: string, values: Readonly<Record<string, T>>): (T | string)[] {
  return text.split(/\{(\w+)\}/).map((part, i) => (i % 2 === 0 ? part : (values[part] ?? `{${part}}`)));
}

/** The stored choice, else the first of the browser's languages that the catalog has. */
export function preferredLanguage(): Language {
  try {
    const stored = localStorage.getItem(STORED);
    if (isLanguage(stored)) return stored;
  } catch {
    // a sandboxed frame has no storage
  }
  const preferred = navigator.languages.map((tag) => tag.split("-")[0]!.toLowerCase());
  return preferred.find(isLanguage) ?? "en";
}

export function chooseLanguage(chosen: string): void {
  if (!isLanguage(chosen)) return;
  if (import.meta.env.MODE === "studio") void loadLanguage(chosen);
  language.value = chosen;
  try {
    localStorage.setItem(STORED, chosen);
  } catch {
    // chosen until the page is closed
  }
}
