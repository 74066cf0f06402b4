/** What-if: drag a weight, and the model generates again; old and new output side by side. */
import type { ComponentChildren } from "preact";
import { readable } from "../format";
import { t } from "../i18n";
import { positionAt, tickAt } from "../timeline";
import type { Ui } from "../ui";
import { headSelect, siteSelect, toggleButton } from "../views/selects";
import { changes } from "./changes";
import { makeEditor } from "./editor";
import { wordGroups, type WordGroup } from "./edits";
import { node } from "./node";
import type { Studio } from "./store";
import { bars } from "./weight_bars";
import { matrix } from "./weight_paint";
import { changedWords } from "./word_diff";

export function whatIf(studio: Studio, ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  const editor = makeEditor(studio, ui);
  if (editor === null)
    return <p class="note">{t("This model has no attention, so there are no weights to change.")}</p>;
  const words = wordGroups(trace.target);
  const { step } = positionAt(ui.timeline, state.tick);
  const current = words.findIndex(({ positions }) => positions.includes(step));
  return (
    <>
      <Sides studio={studio} ui={ui} words={words} current={Math.max(0, current)} />
      <div class="selects">
        <History studio={studio} />
        {node(siteSelect(ui, trace.sites, editor.record))}
        {node(headSelect(ui, editor.record, true))}
        {toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on }))}
      </div>
      <div class="columns-2 editor">
        {bars(editor)}
        {matrix(editor)}
      </div>
      {changes(studio, trace)}
    </>
  );
}

function History({ studio }: { readonly studio: Studio }) {
  return (
    <span class="group" role="group" aria-label={t("History of changes")}>
      <button type="button" id="undo" disabled={studio.done.value.length === 0} onClick={() => studio.undo()}>
        ↶ {t("Undo")}
      </button>
      <button
        type="button"
        id="redo"
        disabled={studio.undone.value.length === 0}
        onClick={() => studio.redo()}
      >
        ↷ {t("Redo")}
      </button>
      <button
        type="button"
        id="reset"
        disabled={studio.edits.value.length === 0}
        onClick={() => studio.apply({ edits: [] })}
      >
        {t("Start over")}
      </button>
    </span>
  );
}

interface SideProps {
  readonly studio: Studio;
  readonly ui: Ui;
  readonly words: readonly WordGroup[];
  readonly current: number;
}

/** The output before and after, with the words that changed. */
function Sides({ studio, ui, words, current }: SideProps): ComponentChildren {
  const { trace } = ui;
  const before = studio.before.value ?? trace;
  const edited = studio.edits.value.length > 0;
  const old = wordGroups(before.target).map(({ text }) => text);
  const now = words.map(({ text }) => text);
  const changed = changedWords(old, now);
  const same = before.target.text === trace.target.text;
  const show = trace.model.task === "classify" ? readable : (text: string): string => text;
  return (
    <section class="sides-output" aria-label={t("Output before and after the change")}>
      <p class="side-label">{t("original")}</p>
      <p class="line" id="before" dir="auto">
        {show(before.target.text)}
      </p>
      <p class="side-label">{t("now")}</p>
      <p class={same ? "line" : "line new"} id="after" dir="auto">
        {words.map((word, i) => (
          <button
            type="button"
            key={i}
            class={`chip${changed.has(i) ? " changed" : ""}${word.special ? " special" : ""}`}
            aria-pressed={i === current}
            onClick={() => ui.setState({ tick: tickAt(ui.timeline, word.positions[0]!, 1) })}
          >
            {show(word.text)}
          </button>
        ))}
      </p>
      <p class="verdict" id="verdict" role="status" data-changed={String(edited && !same)}>
        {verdict(studio, edited, same, changed.size)}
      </p>
    </section>
  );
}

function verdict(studio: Studio, edited: boolean, same: boolean, n: number): ComponentChildren {
  if (!edited)
    return t(
      "Choose a word of the output, then drag one of its bars: the model writes again with your weight.",
    );
  if (studio.busy.value) return t("Working …");
  if (same) return t("The output stays the same with your weights.");
  if (studio.task.value === "classify") return t("Your weights changed the label.");
  return n === 1 ? t("Your weights changed 1 word.") : t("Your weights changed {n} words.", { n });
}
