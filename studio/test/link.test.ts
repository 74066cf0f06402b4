import { expect, test } from "vitest";
import { START, format, parse, type State } from "../src/link";

test("a link says everything that is shown", () => {
  const state: State = {
    view: "alignment",
    tick: 37,
    site: "dec.0.cross",
    head: 2,
    merge: false,
    specials: false,
    figure: "lines",
    byRow: true,
    numbers: false,
    table: true,
    speed: 0.25,
    position: 4,
    op: "zero",
    cell: [3, 5],
  };
  expect(parse(format(state))).toEqual(state);
  expect(parse(format(START))).toEqual(START);
});

test("the form is that of the documentation", () => {
  const link = format({ ...START, tick: 37, site: "dec.0.cross", head: 2, specials: false });
  expect(link).toBe("#/walk?tick=37&site=dec.0.cross&head=2&merge=1&specials=0");
});

test.each(["", "#", "#/", "#/nowhere?tick=x", "#/walk?head=-1&speed=7&cell=1", "#%%%"])(
  "%s is the start",
  (hash) => {
    expect(parse(hash)).toEqual(START);
  },
);
