/** What a picture shows: pieces folded into words or not, with or without start and end tokens. */
import { piece } from "./format";
import type { Arrays } from "./tensor";
import type { Looks, Side, Trace } from "./trace";

const NO_WORD = -1;

export interface Group {
  readonly label: string;
  readonly positions: readonly number[];
}

export interface Matrix {
  readonly rows: readonly Group[];
  readonly columns: readonly Group[];
  readonly values: readonly (readonly number[])[];
  readonly gold: ReadonlySet<string>; // "row,column"
}

export const at = (row: number, column: number): string => `${row},${column}`;

/** Positions that make a row or column, and the row or column of each word. */
export function groups(
  side: Side,
  words: boolean,
  specials: boolean,
): { found: Group[]; ofWord: Map<number, number> } {
  const found: { label: string; positions: number[] }[] = [];
  const ofWord = new Map<number, number>();
  side.tokens.forEach((token, position) => {
    const known = ofWord.get(token.word);
    if (token.word === NO_WORD) {
      if (specials || token.role === "normal")
        found.push({ label: piece(side, position), positions: [position] });
    } else if (words && known !== undefined) {
      found[known]!.positions.push(position);
    } else {
      if (known === undefined) ofWord.set(token.word, found.length);
      const label = words ? side.words[token.word]! : piece(side, position);
      found.push({ label, positions: [position] });
    }
  });
  return { found, ofWord };
}

/** The weights of one head, or the mean of all, by token. */
export function byToken(arrays: Arrays, looks: Looks, head: number | null): Float64Array[] {
  const { shape, data } = arrays.get(looks.weight);
  const [queries, heads, keys] = [shape[0]!, shape[1]!, shape[2]!];
  const wanted = head === null ? Array.from({ length: heads }, (_, i) => i) : [head];
  return Array.from({ length: queries }, (_, query) => {
    const row = new Float64Array(keys);
    for (const one of wanted) {
      const start = (query * heads + one) * keys;
      for (let key = 0; key < keys; key++) row[key]! += data[start + key]! / wanted.length;
    }
    return row;
  });
}

/** The same; where sentences are read, each word has its share of what its sentence got. */
export function byWord(trace: Trace, arrays: Arrays, looks: Looks, head: number | null): Float64Array[] {
  const rows = byToken(arrays, looks, head);
  const inner = trace.sites.find((other) => other.site === looks.through);
  if (inner === undefined) return rows;
  const words = byToken(arrays, inner, null);
  return rows.map((row) => {
    const shared = new Float64Array(row.length);
    words.forEach((inside, last) => inside.forEach((weight, key) => (shared[key]! += row[last]! * weight)));
    return shared;
  });
}

/** Folding sums over the pieces of a word that is read, and takes the mean over those of one that asks. */
export function table(
  trace: Trace,
  arrays: Arrays,
  looks: Looks,
  head: number | null,
  words: boolean,
  specials: boolean,
): Matrix {
  const sides = { source: trace.source, target: trace.target };
  const rows = groups(sides[looks.asks], words, specials);
  const columns = groups(sides[looks.reads], words, specials);
  const full = byWord(trace, arrays, looks, head);
  const values = rows.found.map((row) =>
    columns.found.map((column) => {
      let sum = 0;
      for (const query of row.positions) for (const key of column.positions) sum += full[query]![key]!;
      return sum / row.positions.length;
    }),
  );
  const between = looks.asks === "target" && looks.reads === "source";
  const gold = new Set<string>();
  for (const [source, target] of (words && between && trace.gold?.sure) || []) {
    const [row, column] = [rows.ofWord.get(target), columns.ofWord.get(source)];
    if (row !== undefined && column !== undefined) gold.add(at(row, column));
  }
  return { rows: rows.found, columns: columns.found, values, gold };
}
