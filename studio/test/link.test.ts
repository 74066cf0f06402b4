import { expect, test } from "vitest";
import { DEFAULT_STATE, formatLink, parseLink, type State } from "../src/link";

test("a link contains the whole state", () => {
  const state: State = {
    view: "alignment",
    tick: 37,
    site: "dec.0.cross",
    head: 2,
    merge: false,
    specials: false,
    figure: "lines",
    sinks: true,
    byRow: true,
    numbers: false,
    table: true,
    speed: 0.25,
    position: 4,
    op: "zero",
    cell: [3, 5],
    node: 7,
  };
  expect(parseLink(formatLink(state))).toEqual(state);
  expect(parseLink(formatLink(DEFAULT_STATE))).toEqual(DEFAULT_STATE);
});

test("links have the documented form", () => {
  const link = formatLink({ ...DEFAULT_STATE, tick: 37, site: "dec.0.cross", head: 2, specials: false });
  expect(link).toBe("#/walk?tick=37&site=dec.0.cross&head=2&merge=1&specials=0");
});

test.each(["", "#", "#/", "#/nowhere?tick=x", "#/walk?head=-1&speed=7&cell=1", "#%%%"])(
  "%s is the default state",
  (hash) => {
    expect(parseLink(hash)).toEqual(DEFAULT_STATE);
  },
);
