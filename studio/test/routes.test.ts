/** Odd addresses and odd traces: every view is drawn, and what does not exist falls back to the default. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { VIEW_FUNCTIONS } from "../src/app";
import { siteErrors } from "../src/check";
import { DEFAULT_STATE, VIEWS, availableViews, formatLink, parseLink, validState } from "../src/link";
import { Arrays } from "../src/tensor";
import { lastTick, type Timeline } from "../src/timeline";
import type { Trace } from "../src/trace";
import { walkableSites, type Ui } from "../src/ui";
import { header } from "../src/views/header";

const world = (): Trace =>
  JSON.parse(readFileSync(new URL("../../tests/viz/world.json", import.meta.url), "utf8"));

function withSite(change: Partial<Trace["sites"][number]>): Trace {
  const trace = world();
  return { ...trace, sites: trace.sites.map((record) => ({ ...record, ...change })) };
}

const image = {
  data_uri: "data:image/png;base64,AAAA",
  width: 8,
  height: 8,
  grid: [1, 11] as [number, number],
};
const TRACES: Record<string, Trace> = {
  translation: world(),
  image: { ...world(), source: { ...world().source, image } },
  history: withSite({ kind: "history" }),
  "no sites": { ...world(), sites: [], alignment_site: null },
  "self-attention of the source": withSite({ kind: "self", query_side: "source" }),
  "self-attention of the target": withSite({ kind: "self", key_side: "target" }),
  "sentences without ends": withSite({ kind: "pool", query_side: "source" }),
  "odd settings": {
    ...world(),
    model: {
      ...world().model,
      settings: { attention: { normalizer: "constructor", placement: 7, window: null, beta: "x" } },
    },
  },
  "a normalizer of a plugin": {
    ...world(),
    model: { ...world().model, settings: { attention: { normalizer: "mine", placement: "theirs" } } },
  },
};

const timelineOf = (trace: Trace): Timeline => ({
  steps: trace.steps.length,
  stages: walkableSites(trace).length > 0 ? 5 : 1,
});

function drawView(trace: Trace, link: string): void {
  const timeline = timelineOf(trace);
  const state = validState(parseLink(link), trace, timeline);
  const ui: Ui = {
    trace,
    arrays: new Arrays(trace),
    state,
    timeline,
    playing: false,
    errors: null,
    focused: () => [0, 0],
    setState: () => undefined,
    play: () => undefined,
    onPick: () => undefined,
    onPaint: () => undefined,
  };
  expect(availableViews(trace)).toContain(state.view);
  header(ui);
  expect(VIEW_FUNCTIONS[state.view]!(ui), link).toBeTruthy();
}

/** Numbers from 0 to 1, the same in every run (mulberry32). */
function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const NAMES = ["tick", "site", "head", "merge", "specials", "figure", "scale", "numbers", "table", "speed"];
const MORE_NAMES = ["position", "op", "cell", "__proto__", "constructor", "", "%", "toString"];
const VALUES = [
  "0",
  "1",
  "3",
  "10",
  "11",
  "99999",
  "9".repeat(400),
  "-1",
  "1e3",
  "NaN",
  "",
  "%",
  "%zz",
  "null",
];
const MORE_VALUES = [
  "__proto__",
  "cross",
  "constructor",
  "lines",
  "row",
  "zero",
  "1.2",
  "99.99",
  "2.",
  "\ud800",
  "<b>",
];

function oddLink(next: () => number): string {
  const pick = (from: readonly string[]): string => from[Math.floor(next() * from.length)]!;
  const view =
    next() < 0.7 ? pick(VIEWS) : pick(["", "__proto__", "constructor", "walk/../photo", "%", "WALK", "?"]);
  const query = Array.from({ length: Math.floor(next() * 6) }, () => {
    const name = pick([...NAMES, ...MORE_NAMES]);
    return `${name}=${pick([...VALUES, ...MORE_VALUES])}`;
  });
  const link = `#/${view}?${query.join(next() < 0.9 ? "&" : ";")}`;
  return next() < 0.1 ? link.slice(Math.floor(next() * link.length)) : link;
}

test("odd addresses are parsed to a state that can be written and parsed again", () => {
  const next = random(1);
  for (let i = 0; i < 5000; i++) {
    const state = parseLink(oddLink(next));
    expect(Object.keys(state).sort()).toEqual(Object.keys(DEFAULT_STATE).sort());
    expect(parseLink(formatLink(state))).toEqual(state);
  }
});

describe.each(Object.entries(TRACES))("%s", (_, trace) => {
  test("odd addresses show a view", () => {
    const next = random(2);
    for (let i = 0; i < 150; i++) drawView(trace, oddLink(next));
  });
  test("positions, heads and steps beyond the trace", () => {
    for (const view of VIEWS) {
      for (const position of [0, 10, 11, 12, 99999]) {
        drawView(
          trace,
          `#/${view}?tick=${position}&position=${position}&head=${position}&cell=${position}.${position}`,
        );
      }
    }
  });
  test("is recomputed", () => {
    for (const record of trace.sites) siteErrors(trace, new Arrays(trace), record);
  });
});

test("what a trace does not have falls back to the default", () => {
  const [trace, timeline] = [world(), timelineOf(world())];
  const state = validState(parseLink("#/photo?tick=9999&site=no&head=7&position=11"), trace, timeline);
  expect(state).toEqual({ ...DEFAULT_STATE, tick: lastTick(timeline) });
  expect(validState(parseLink("#/walk?head=0&position=10&site=cross"), trace, timeline)).toMatchObject({
    head: 0,
    position: 10,
    site: "cross",
  });
});
