/** Deep links: everything shown follows from the part of the address after `#`. */
import { clampTick, firstTick, type Timeline } from "./timeline";
import type { Trace } from "./trace";
import { findSite, findWalkableSite } from "./ui";

export const VIEWS = [
  "write",
  "what-if",
  "compare",
  "walk",
  "alignment",
  "heads",
  "beam",
  "photo",
  "history",
  "classify",
  "read",
  "train",
  "lesson",
] as const;
export type View = (typeof VIEWS)[number];
export const FIGURES = ["both", "matrix", "lines"] as const;
export type Figure = (typeof FIGURES)[number];
export type Op = "onehot" | "zero";

export interface State {
  readonly view: View;
  readonly tick: number;
  readonly site: string | null; // null: the alignment site
  readonly head: number | null; // null: the mean of all heads
  readonly merge: boolean; // fold subwords into words
  readonly specials: boolean; // show start and end tokens
  readonly figure: Figure;
  readonly sinks: boolean; // Heads: show those that look at start and end tokens
  readonly byRow: boolean; // shades relative to the row's largest weight, not to 1
  readonly numbers: boolean;
  readonly table: boolean;
  readonly speed: number;
  readonly position: number | null; // the key that Walk explains; null: the largest weight
  readonly op: Op;
  readonly cell: readonly [step: number, position: number] | null; // of What-if
  readonly node: number | null; // of Beam
}

export const DEFAULT_STATE: State = {
  view: "walk",
  tick: 0,
  site: null,
  head: null,
  merge: true,
  specials: true,
  figure: "both",
  sinks: false,
  byRow: false,
  numbers: true,
  table: false,
  speed: 1,
  position: null,
  op: "onehot",
  cell: null,
  node: null,
};

const formatFlag = (value: boolean): string => (value ? "1" : "0");

export function formatLink(state: State): string {
  const query = new URLSearchParams();
  query.set("tick", String(state.tick));
  if (state.site !== null) query.set("site", state.site);
  if (state.head !== null) query.set("head", String(state.head));
  query.set("merge", formatFlag(state.merge));
  query.set("specials", formatFlag(state.specials));
  if (state.figure !== DEFAULT_STATE.figure) query.set("figure", state.figure);
  if (state.sinks) query.set("sinks", "1");
  if (state.byRow) query.set("scale", "row");
  if (!state.numbers) query.set("numbers", "0");
  if (state.table) query.set("table", "1");
  if (state.speed !== DEFAULT_STATE.speed) query.set("speed", String(state.speed));
  if (state.position !== null) query.set("position", String(state.position));
  if (state.op !== DEFAULT_STATE.op) query.set("op", state.op);
  if (state.cell !== null) query.set("cell", state.cell.join("."));
  if (state.node !== null) query.set("node", String(state.node));
  return `#/${state.view}?${query.toString()}`;
}

function parseInteger(text: string | null): number | null {
  const value = text !== null && /^\d+$/.test(text) ? Number(text) : NaN;
  return Number.isSafeInteger(value) ? value : null;
}

function oneOf<T extends string>(text: string | null, known: readonly T[], fallback: T): T {
  return known.find((name) => name === text) ?? fallback;
}

/** The views of a trace: Photo needs an image, History a recommender, Heads several heads, Beam a tree. */
export function availableViews(trace: Trace): View[] {
  const heads = trace.sites.reduce((sum, record) => sum + record.heads, 0);
  return [
    "walk",
    "alignment",
    ...(heads > 1 ? (["heads"] as const) : []),
    ...(trace.beam != null && trace.beam.nodes.length > 1 ? (["beam"] as const) : []),
    "what-if",
    ...(trace.source.image != null ? (["photo"] as const) : []),
    ...(trace.sites.some((record) => record.kind === "history") ? (["history"] as const) : []),
  ];
}

/** The state, with a view, step, site, head or position that this trace does not have reset to the default. */
export function validState(
  state: State,
  trace: Trace,
  timeline: Timeline,
  views: readonly View[] = availableViews(trace),
): State {
  const view = views.includes(state.view) ? state.view : views[0]!;
  const site = trace.sites.some((record) => record.site === state.site) ? state.site : null;
  const shown =
    view === "walk" ? findWalkableSite(trace, site) : findSite(trace, view === "history" ? null : site);
  const positions = (shown?.key_side === "target" ? trace.target : trace.source).tokens.length;
  return {
    ...state,
    view,
    site,
    tick: clampTick(timeline, state.tick),
    head: state.head !== null && trace.sites.some((record) => state.head! < record.heads) ? state.head : null,
    position: state.position !== null && state.position < positions ? state.position : null,
  };
}

/** Parse the address; invalid values become the defaults. */
export function parseLink(hash: string): State {
  const [, path = "", rest = ""] = /^#\/([^?]*)\??(.*)$/.exec(hash) ?? [];
  const query = new URLSearchParams(rest);
  const parseFlag = (name: string, fallback: boolean): boolean =>
    query.has(name) ? query.get(name) !== "0" : fallback;
  const [step, position] = (query.get("cell") ?? "").split(".").map(parseInteger);
  const speed = Number(query.get("speed") ?? DEFAULT_STATE.speed);
  return {
    view: oneOf(path, VIEWS, DEFAULT_STATE.view),
    tick: parseInteger(query.get("tick")) ?? DEFAULT_STATE.tick,
    site: query.get("site"),
    head: parseInteger(query.get("head")),
    merge: parseFlag("merge", DEFAULT_STATE.merge),
    specials: parseFlag("specials", DEFAULT_STATE.specials),
    figure: oneOf(query.get("figure"), FIGURES, DEFAULT_STATE.figure),
    sinks: query.get("sinks") === "1",
    byRow: query.get("scale") === "row",
    numbers: parseFlag("numbers", DEFAULT_STATE.numbers),
    table: parseFlag("table", DEFAULT_STATE.table),
    speed: [0.25, 0.5, 1, 2, 4].includes(speed) ? speed : DEFAULT_STATE.speed,
    position: parseInteger(query.get("position")),
    op: oneOf(query.get("op"), ["onehot", "zero"], DEFAULT_STATE.op),
    cell: step != null && position != null ? [step, position] : null,
    node: parseInteger(query.get("node")),
  };
}

/** The state of an address; without a tick it is the end of the first step. */
export function initialState(
  hash: string,
  trace: Trace,
  timeline: Timeline,
  views: readonly View[] = availableViews(trace),
): State {
  const state = parseLink(hash);
  const tick = /[?&]tick=/.test(hash) ? state.tick : firstTick(timeline);
  return validState({ ...state, tick }, trace, timeline, views);
}
