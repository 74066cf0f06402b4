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
/** More keys, and a way back to the first steps: of the studio. */
interface More {
  readonly keys: readonly (readonly [string, Text])[];
  readonly again: { readonly label: string; readonly run: () => void };
}

export function help(more: More | null = null): VNode {
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
        [...(more?.keys ?? []), ...KEYS].map(([key, action]) =>
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
    h(
      "form",
      { method: "dialog", class: "actions" },
      h("button", {}, t("Close")),
      more !== null && h("button", { id: "guide-again", onclick: more.again.run }, more.again.label),
    ),
  );
}
