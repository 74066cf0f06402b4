/** Deep links: everything that is shown follows from the part of the address behind `#`. */

export const VIEWS = ["walk", "alignment", "what-if", "photo", "history"] as const;
export type View = (typeof VIEWS)[number];
export const FIGURES = ["both", "matrix", "lines"] as const;
export type Figure = (typeof FIGURES)[number];
export type Op = "onehot" | "zero";

export interface State {
  readonly view: View;
  readonly tick: number;
  readonly site: string | null; // null: the alignment's
  readonly head: number | null; // null: the mean of all
  readonly merge: boolean; // pieces as words
  readonly specials: boolean; // start and end tokens too
  readonly figure: Figure;
  readonly byRow: boolean; // shades are shares of the row's largest weight, not of 1
  readonly numbers: boolean;
  readonly table: boolean;
  readonly speed: number;
  readonly position: number | null; // the source position that Walk explains; null: the heaviest
  readonly op: Op;
  readonly cell: readonly [step: number, position: number] | null; // of What-if
}

export const START: State = {
  view: "walk",
  tick: 0,
  site: null,
  head: null,
  merge: true,
  specials: true,
  figure: "both",
  byRow: false,
  numbers: true,
  table: false,
  speed: 1,
  position: null,
  op: "onehot",
  cell: null,
};

const flag = (value: boolean): string => (value ? "1" : "0");

export function format(state: State): string {
  const query = new URLSearchParams();
  query.set("tick", String(state.tick));
  if (state.site !== null) query.set("site", state.site);
  if (state.head !== null) query.set("head", String(state.head));
  query.set("merge", flag(state.merge));
  query.set("specials", flag(state.specials));
  if (state.figure !== START.figure) query.set("figure", state.figure);
  if (state.byRow) query.set("scale", "row");
  if (!state.numbers) query.set("numbers", "0");
  if (state.table) query.set("table", "1");
  if (state.speed !== START.speed) query.set("speed", String(state.speed));
  if (state.position !== null) query.set("position", String(state.position));
  if (state.op !== START.op) query.set("op", state.op);
  if (state.cell !== null) query.set("cell", state.cell.join("."));
  return `#/${state.view}?${query.toString()}`;
}

function whole(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

function oneOf<T extends string>(text: string | null, known: readonly T[], otherwise: T): T {
  return known.find((name) => name === text) ?? otherwise;
}

/** What cannot be read is as if it were not there. */
export function parse(hash: string): State {
  const [, path = "", rest = ""] = /^#\/([^?]*)\??(.*)$/.exec(hash) ?? [];
  const query = new URLSearchParams(rest);
  const flagged = (name: string, otherwise: boolean): boolean =>
    query.has(name) ? query.get(name) !== "0" : otherwise;
  const [step, position] = (query.get("cell") ?? "").split(".").map(whole);
  const speed = Number(query.get("speed") ?? START.speed);
  return {
    view: oneOf(path, VIEWS, START.view),
    tick: whole(query.get("tick")) ?? START.tick,
    site: query.get("site"),
    head: whole(query.get("head")),
    merge: flagged("merge", START.merge),
    specials: flagged("specials", START.specials),
    figure: oneOf(query.get("figure"), FIGURES, START.figure),
    byRow: query.get("scale") === "row",
    numbers: flagged("numbers", START.numbers),
    table: flagged("table", START.table),
    speed: [0.25, 0.5, 1, 2, 4].includes(speed) ? speed : START.speed,
    position: whole(query.get("position")),
    op: oneOf(query.get("op"), ["onehot", "zero"], START.op),
    cell: step != null && position != null ? [step, position] : null,
  };
}
