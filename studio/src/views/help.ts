/** The keys, in a dialog. */
import { h, type Element } from "../dom";

const KEYS: readonly (readonly [string, string])[] = [
  ["Space", "play or pause (Walk)"],
  ["← →", "one step back or forward; inside a figure, the next cell"],
  ["Shift + ← →", "the word before or after"],
  ["Home, End", "first or last step"],
  ["1 – 5", "score, softmax, context, combine, word"],
  ["+ −", "faster, slower"],
  ["M", "matrix, lines or both (Alignment)"],
  ["N", "numbers in the cells on or off"],
  ["T", "the same as a table, on or off"],
  ["W, A, I, P, H", "go to Walk, Alignment, What-if, Photo (of a picture), History (of a recommendation)"],
  ["Tab, Enter", "go to a figure, choose a cell of it"],
  ["?", "this help"],
];

export function help(): Element {
  return h(
    "dialog",
    { id: "help", "aria-labelledby": "help-title" },
    h("h2", { id: "help-title" }, "Keys"),
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        KEYS.map(([key, what]) =>
          h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, what)),
        ),
      ),
    ),
    h(
      "p",
      {},
      "Point at a number, or go to it with Tab and arrows, and what it was made from lights up. The address of the page keeps all that is shown: copy it to show somebody the same.",
    ),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
}
