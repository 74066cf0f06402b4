/** Edits as text (the syntax of `heedful trace --set`), and the edits that give a word a weight. */
import { t } from "../i18n";
import { regionLabel } from "../regions";
import type { Edit, Side, Token } from "../trace";

const KEYS = ["step", "head", "position", "value", "text"] as const;

export function formatEdit(edit: Edit): string {
  const site = edit.site == null ? "" : `@${edit.site}`;
  const values = KEYS.filter((key) => edit[key] != null).map((key) => `${key}=${edit[key]}`);
  return `${edit.op}${site}${values.length > 0 ? `:${values.join(",")}` : ""}`;
}

const OPS = ["set", "onehot", "zero", "uniform", "permute", "gold", "mask-head", "source", "prefix"];

/** The edit of a text, or null if it is none. */
export function parseEdit(text: string): Edit | null {
  const [, op = "", site, rest = ""] = /^([\w-]+)(?:@([^:]*))?(?::(.*))?$/s.exec(text) ?? [];
  if (!OPS.includes(op)) return null;
  const edit: Record<string, unknown> = { op, ...(site ? { site } : {}) };
  const [numbers = "", value] = rest.split(/text=(.*)/s);
  if (value !== undefined) edit.text = value;
  for (const part of numbers.split(",").filter((one) => one.trim() !== "")) {
    const [key = "", amount = ""] = part.split("=");
    if (
      !["step", "head", "position", "value"].includes(key.trim()) ||
      Number.isNaN(Number(amount)) ||
      amount === ""
    )
      return null;
    edit[key.trim()] = Number(amount);
  }
  return edit as unknown as Edit;
}

const sameTarget = (a: Edit, b: Edit): boolean =>
  a.site === b.site && a.step === b.step && a.head === b.head && a.position === b.position;

/** The edits with one more, which replaces earlier ones of the same weight. */
export function addEdit(edits: readonly Edit[], edit: Edit): Edit[] {
  return [...edits.filter((other) => !sameTarget(other, edit)), edit];
}

export interface WordWeight {
  readonly site: string | null;
  readonly head: number | null;
  readonly steps: readonly number[]; // of an output word
  readonly positions: readonly number[]; // of an input word
  readonly weights: readonly (readonly number[])[]; // now, by step and position
}

const round = (value: number): number => Math.round(value * 10_000) / 10_000;

/**
 * The edits that give an input word this weight in all steps of an output word. A word of several tokens shares it in the
 * proportion that its tokens have now; `set` rescales the others, so earlier tokens get more first.
 */
export function setWordWeight(
  edits: readonly Edit[],
  { site, head, steps, positions, weights }: WordWeight,
  value: number,
): Edit[] {
  let result = [...edits];
  const where = { ...(site === null ? {} : { site }), ...(head === null ? {} : { head }) };
  steps.forEach((step, s) => {
    const now = positions.map((_, i) => weights[s]?.[i] ?? 0);
    const total = now.reduce((a, b) => a + b, 0);
    const shares = now.map((weight) => (total > 1e-9 ? weight / total : 1 / positions.length));
    let later = 0;
    const amounts = [...shares].reverse().map((share) => {
      const wanted = value * share;
      const amount = later >= 1 ? 0 : Math.min(1, wanted / (1 - later));
      later += wanted;
      return amount;
    });
    amounts.reverse().forEach((amount, i) => {
      result = addEdit(result, {
        op: "set",
        ...where,
        step,
        position: positions[i]!,
        value: round(amount),
      } as Edit);
    });
  });
  return result;
}

/** Edits that take all weight from an input word, in every step. */
export function zeroWord(edits: readonly Edit[], site: string | null, positions: readonly number[]): Edit[] {
  return positions.reduce<Edit[]>(
    (all, position) => addEdit(all, { op: "zero", ...(site === null ? {} : { site }), position } as Edit),
    [...edits],
  );
}

/** A start or end token in words. */
export function specialText({ text, role }: Token): string {
  return role === "start" ? t("(start)") : role === "end" ? t("(end)") : text;
}

/** The tokens of each word, and each start or end token by itself. */
export interface WordGroup {
  readonly text: string;
  readonly positions: readonly number[];
  readonly special: boolean;
}

export function wordGroups(side: Side): WordGroup[] {
  const { image } = side;
  if (image != null)
    return side.tokens.map((_, i) => ({ text: regionLabel(image, i), positions: [i], special: false }));
  const groups: { text: string; positions: number[]; special: boolean }[] = [];
  const byWord = new Map<number, { positions: number[] }>();
  side.tokens.forEach((token, position) => {
    const known = byWord.get(token.word);
    if (token.word >= 0 && known !== undefined) {
      known.positions.push(position);
      return;
    }
    const special = token.word < 0;
    const group = {
      text: special ? specialText(token) : (side.words[token.word] ?? token.text),
      positions: [position],
      special,
    };
    groups.push(group);
    if (!special) byWord.set(token.word, group);
  });
  return groups;
}
