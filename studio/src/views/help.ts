/** The help dialog: keyboard shortcuts. */
import { t, type Text } from "../i18n";
import { h, type VNode } from "../dom";

const KEYS: readonly (readonly [string, Text])[] = [
  ["Space", "play or pause (Walk)"],
  ["← →", "one stage back or forward; in a figure, the next cell"],
  ["Shift + ← →", "previous or next output word"],
  ["Home, End", "first or last stage"],
  ["1 – 5", "score, softmax, context, combine, word"],
  ["+ −", "faster, slower"],
  ["M", "matrix, lines or both (Alignment)"],
  ["N", "numbers in the cells on or off"],
  ["T", "table on or off"],
  ["W, A, I, P, H", "go to Walk, Alignment, What-if, Photo (images), History (recommendations)"],
  ["Tab, Enter", "go to a figure, choose a cell"],
  ["?", "this help"],
];

export function help(): VNode {
  return h(
    "dialog",
    { id: "help", "aria-labelledby": "help-title" },
    h("h2", { id: "help-title" }, t("Keys")),
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        KEYS.map(([key, action]) =>
          h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, t(action))),
        ),
      ),
    ),
    h(
      "p",
      {},
      t(
        "Hover or focus a number to highlight what it was computed from. The address of the page contains the state of the view: copy it to share what you see.",
      ),
    ),
    h("form", { method: "dialog" }, h("button", {}, t("Close"))),
  );
}
