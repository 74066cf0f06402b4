/** Lesson: guess where the model looks, then see it. A link holds the exercise. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { dataTable } from "../figures/table";
import { formatPercent, readable } from "../format";
import { t } from "../i18n";
import { positionAt, tickAt } from "../timeline";
import type { Trace } from "../trace";
import type { Ui } from "../ui";
import { toggleButton } from "../views/selects";
import { CopyLink } from "./copy_link";
import { wordGroups } from "./edits";
import { pair, pairSite, pairTable } from "./pair";
import type { Studio } from "./store";

interface Guess {
  readonly trace: Trace;
  readonly row: number;
  readonly column: number;
}

const guess = signal<Guess | null>(null);
const score = signal<{ readonly trace: Trace | null; readonly right: number; readonly all: number }>({
  trace: null,
  right: 0,
  all: 0,
});

export function lesson(_studio: Studio, ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  const record = pairSite(trace, state.site);
  const table = pairTable(trace, record, state.head);
  if (table === null)
    return (
      <p class="note">{t("This model has no attention over its input, so there is nothing to guess.")}</p>
    );
  const show = trace.model.task === "classify" ? readable : (text: string): string => text;
  const words = wordGroups(trace.target)
    .filter(({ special }) => !special)
    .map((one) => ({ ...one, text: show(one.text) }));
  const { step } = positionAt(ui.timeline, state.tick);
  const current = Math.max(
    0,
    words.findIndex(({ positions }) => positions.includes(step)),
  );
  const values = table.values[current] ?? [];
  const best = values.indexOf(Math.max(...values));
  const made = guess.value?.trace === trace && guess.value.row === current ? guess.value : null;
  const right = made !== null && (values[made.column] ?? 0) >= 0.8 * (values[best] ?? 1);
  const choose = (column: number): void => {
    if (made !== null) return;
    guess.value = { trace, row: current, column };
    const before = score.value.trace === trace ? score.value : { trace, right: 0, all: 0 };
    const hit = (values[column] ?? 0) >= 0.8 * (values[best] ?? 1);
    score.value = { trace, right: before.right + (hit ? 1 : 0), all: before.all + 1 };
  };
  const next = words[current + 1]?.positions[0];
  return (
    <>
      <h2>{t("Where did the model look when it wrote “{word}”?", { word: words[current]?.text ?? "" })}</h2>
      <p class="legend">
        {made === null
          ? t(
              "Choose the input word that you expect to have the largest weight. Choose another output word to change the question.",
            )
          : t("The ribbons show the weights of every word.")}
      </p>
      {pair(ui, {
        id: "lesson-pair",
        trace,
        record,
        head: state.head,
        current,
        hidden: made === null,
        onInput: choose,
        onWord: (row) => {
          const first = words[row]?.positions[0];
          if (first !== undefined) ui.setState({ tick: tickAt(ui.timeline, first, 4) });
        },
      })}
      <p
        class={made === null ? "verdict" : right ? "verdict good" : "verdict wrong"}
        id="lesson-answer"
        role="status"
      >
        {made !== null &&
          t(
            right
              ? "Right: “{word}” got {share}."
              : "You chose “{guess}” with {guessed}; the largest weight is that of “{word}”: {share}.",
            {
              word: table.columns[best]?.label ?? "",
              share: formatPercent(values[best] ?? 0),
              guess: table.columns[made.column]?.label ?? "",
              guessed: formatPercent(values[made.column] ?? 0),
            },
          )}
      </p>
      <div class="selects">
        {next !== undefined && (
          <button
            type="button"
            class={made === null ? "" : "primary"}
            id="lesson-next"
            onClick={() => ui.setState({ tick: tickAt(ui.timeline, next, 4) })}
          >
            {t("Next word")}
          </button>
        )}
        {made !== null &&
          toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on }))}
        <span class="letters" id="lesson-score">
          {score.value.trace === trace &&
            score.value.all > 0 &&
            t("{right} of {all} right", { right: score.value.right, all: score.value.all })}
        </span>
      </div>
      {made !== null &&
        state.table &&
        dataTable({
          caption: t("Weights by words"),
          corner: t("output word"),
          columns: table.columns.map(({ label }) => label),
          rows: table.rows.map(({ label }, i) => ({ label: show(label), values: table.values[i]! })),
        })}
      <p class="letters">
        <CopyLink /> {t("The link holds this exercise, with the answer hidden, for your students.")}
      </p>
    </>
  );
}
