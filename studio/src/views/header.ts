/** Header of the page: input, output and model. */
import { isWithinTolerance, largestError } from "../check";
import { h, type Children, type VNode } from "../dom";
import { formatCount } from "../format";
import { t } from "../i18n";
import { taskWords } from "../nouns";
import type { Trace } from "../trace";
import type { Ui } from "../ui";

const MAX_LETTERS = 300; // of a text that is shown as a whole; a longer one can be unfolded

export function header(ui: Ui): VNode {
  const { trace } = ui;
  const largest = ui.errors === null ? null : largestError(ui.errors);
  return h(
    "header",
    { class: "top" },
    h("h1", {}, t("Attention trace")),
    h(
      "dl",
      { class: "texts" },
      trace.model.task === "read"
        ? text(t("Text"), trace.source.text)
        : [text(t("Input"), trace.source.text), text(t("Output"), trace.target.text)],
      trace.target.reference != null && text(t("Reference"), trace.target.reference),
    ),
    h("p", { class: "facts" }, facts(trace).join(" · ")),
    trace.edits.length > 0 &&
      h(
        "p",
        { class: "edits" },
        `✎ ${t("Edited: {edits}.", { edits: trace.edits.map(editText).join("; ") })}`,
      ),
    h(
      "p",
      { class: "caveat" },
      t("Weights show where the model attended. They do not explain why {caveat}.", {
        caveat: taskWords(trace).caveat,
      }),
    ),
    largest !== null &&
      !isWithinTolerance(largest) &&
      h(
        "p",
        { class: "badge bad", id: "warning" },
        `✗ ${t("Numbers of this file do not agree with each other; see the end of the page.")}`,
      ),
  );
}

function text(name: string, value: string): Children {
  return [
    h("dt", {}, name),
    h("dd", { dir: "auto" }, value.length > MAX_LETTERS ? foldedText(value) : value),
  ];
}

/** The beginning of a long text, and the rest on demand. */
function foldedText(value: string): VNode {
  const start = Array.from(value)
    .slice(0, MAX_LETTERS)
    .join("")
    .replace(/\s+\S*$/u, "");
  return h(
    "details",
    { class: "folded" },
    h(
      "summary",
      {},
      h("span", { class: "start" }, `${start} … `),
      h(
        "span",
        { class: "toggle-text" },
        h("span", { class: "when-closed" }, t("more")),
        h("span", { class: "when-open" }, t("less")),
      ),
    ),
    h("div", { class: "rest" }, value),
  );
}

function facts(trace: Trace): string[] {
  const { method, beam } = trace.decoding as { method?: string; beam?: number };
  const methods: Record<string, string> = {
    greedy: trace.model.task === "classify" ? t("the most likely label") : t("greedy decoding"),
    beam: beam === undefined ? t("beam search") : t("beam search, beam size {n}", { n: beam }),
    sample: t("sampling"),
    forced:
      trace.model.task === "read"
        ? t("reads the text word by word")
        : t("forced decoding: the output was given"),
    ranking: t("items ranked by score"),
  };
  const { parameters } = trace.model;
  return [
    t("model {name}", { name: trace.model.name }),
    ...(method === undefined ? [] : [methods[method] ?? method]),
    ...(parameters == null ? [] : [t("{n} parameters", { n: formatCount(parameters) })]),
  ];
}

function editText(edit: Trace["edits"][number]): string {
  const parts = [
    edit.step == null ? null : t("step {n}", { n: edit.step }),
    edit.head == null ? null : t("head {head}", { head: edit.head }),
    edit.position == null ? null : t("position {n}", { n: edit.position }),
    edit.value == null ? null : t("weight {value}", { value: edit.value }),
    edit.text == null ? null : `“${edit.text}”`,
    edit.site == null ? null : t("at {site}", { site: edit.site }),
  ].filter((part) => part !== null);
  return [edit.op, ...parts].join(" ");
}
