/** Weight tables by word or by token, with or without start and end tokens. */
import { tokenText } from "./format";
import type { Arrays } from "./tensor";
import type { Side, SiteRecord, Trace } from "./trace";

const NO_WORD = -1;

export interface Group {
  readonly label: string;
  readonly positions: readonly number[];
}

export interface WeightTable {
  readonly rows: readonly Group[];
  readonly columns: readonly Group[];
  readonly values: readonly (readonly number[])[];
  readonly gold: ReadonlySet<string>; // of `cellKey`s
}

export const cellKey = (row: number, column: number): string => `${row},${column}`;

/** The positions that form each row or column, and the row or column of each word. */
export function groupTokens(
  side: Side,
  words: boolean,
  specials: boolean,
): { groups: Group[]; indexOfWord: Map<number, number> } {
  const groups: { label: string; positions: number[] }[] = [];
  const indexOfWord = new Map<number, number>();
  side.tokens.forEach((token, position) => {
    const known = indexOfWord.get(token.word);
    if (token.word === NO_WORD) {
      if (specials || token.role === "normal")
        groups.push({ label: tokenText(side, position), positions: [position] });
    } else if (words && known !== undefined) {
      groups[known]!.positions.push(position);
    } else {
      if (known === undefined) indexOfWord.set(token.word, groups.length);
      const label = words ? side.words[token.word]! : tokenText(side, position);
      groups.push({ label, positions: [position] });
    }
  });
  return { groups, indexOfWord };
}

/** The weights of a site, (query, key), of one head or the mean of all. */
export function siteMatrix(arrays: Arrays, record: SiteRecord, head: number | null): Float64Array[] {
  const { shape, data } = arrays.get(record.weights);
  const [queries, heads, keys] = [shape[0]!, shape[1]!, shape[2]!];
  const chosen = head === null ? Array.from({ length: heads }, (_, i) => i) : [head];
  return Array.from({ length: queries }, (_, query) => {
    const row = new Float64Array(keys);
    for (const index of chosen) {
      const start = (query * heads + index) * keys;
      for (let key = 0; key < keys; key++) row[key]! += data[start + key]! / chosen.length;
    }
    return row;
  });
}

/** The weights by token: where keys are sentences, a word's weight is its sentence's weight times its own. */
export function tokenMatrix(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  head: number | null,
): Float64Array[] {
  const rows = siteMatrix(arrays, record, head);
  const inner = trace.sites.find((other) => other.site === record.keys_from);
  if (inner === undefined) return rows;
  const words = siteMatrix(arrays, inner, null);
  return rows.map((row) => {
    const byWord = new Float64Array(row.length);
    words.forEach((weights, end) => weights.forEach((weight, key) => (byWord[key]! += row[end]! * weight)));
    return byWord;
  });
}

/** A word's weight is the sum over its tokens as keys and the mean over its tokens as queries. */
export function weightTable(
  trace: Trace,
  arrays: Arrays,
  record: SiteRecord,
  head: number | null,
  words: boolean,
  specials: boolean,
): WeightTable {
  const sides = { source: trace.source, target: trace.target };
  const rows = groupTokens(sides[record.query_side], words, specials);
  const columns = groupTokens(sides[record.key_side], words, specials);
  const matrix = tokenMatrix(trace, arrays, record, head);
  const values = rows.groups.map((row) =>
    columns.groups.map((column) => {
      let sum = 0;
      for (const query of row.positions) for (const key of column.positions) sum += matrix[query]![key]!;
      return sum / row.positions.length;
    }),
  );
  const aligned = record.query_side === "target" && record.key_side === "source";
  const gold = new Set<string>();
  for (const [source, target] of (words && aligned && trace.gold?.sure) || []) {
    const [row, column] = [rows.indexOfWord.get(target), columns.indexOfWord.get(source)];
    if (row !== undefined && column !== undefined) gold.add(cellKey(row, column));
  }
  return { rows: rows.groups, columns: columns.groups, values, gold };
}
