/** Lesson: guess where the model looks, then see it. A link holds the exercise. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { formatPercent } from "../format";
import { t } from "../i18n";
import { positionAt, tickAt } from "../timeline";
import type { Trace } from "../trace";
import type { Ui } from "../ui";
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
  const words = wordGroups(trace.target).filter(({ special }) => !special);
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
            class="primary"
            id="lesson-next"
            onClick={() => ui.setState({ tick: tickAt(ui.timeline, next, 4) })}
          >
            {t("Next word")}
          </button>
        )}
        <span class="letters" id="lesson-score">
          {score.value.trace === trace &&
            score.value.all > 0 &&
            t("{right} of {all} right", { right: score.value.right, all: score.value.all })}
        </span>
      </div>
      <p class="letters">{t("To give this exercise to others, copy the address of the page.")}</p>
    </>
  );
}
