/** A guide in three steps for a first visit, from the sentence to a word that changed because a weight did. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { t, type Text } from "../i18n";
import type { View } from "../link";
import { isOn, turn } from "./storage";
import type { Studio } from "./store";

const NAME = "guided";
const VIEWS: readonly View[] = ["write", "classify", "what-if"];
const STEPS: readonly Text[] = [
  "Type a sentence, or take this one.",
  "Point at an output word: lines lead to what it looked at.",
  "Change where it looked, and see the word change.",
];
const CLASSIFY_STEPS: readonly Text[] = [
  "Type a sentence, or take this one.",
  "The darker a word, the more the model looked at it.",
  "Change where it looked, and see the label change.",
];

const closed = signal(isOn(NAME));
const pointed = signal(false); // at an output word

export const closeGuide = (): void => {
  closed.value = true;
  turn(NAME, true);
};

export function openGuide(): void {
  closed.value = pointed.value = false;
  turn(NAME, false);
}

/** Notice that somebody pointed at an output word. */
export function noticePointing({ target }: Event): void {
  if (!pointed.peek() && target instanceof Element && target.closest(".chip.out") !== null)
    pointed.value = true;
}

export function guide(studio: Studio, view: View): ComponentChildren {
  if (closed.value || studio.session.value === null || !VIEWS.includes(view)) return null;
  const changed = studio.edits.value.length > 0 && outputChanged(studio);
  const current = changed ? 3 : view === "what-if" ? 2 : pointed.value || view === "classify" ? 2 : 1;
  const steps = studio.task.value === "classify" ? CLASSIFY_STEPS : STEPS;
  return (
    <section class="guide" id="guide" aria-label={t("First steps")} data-step={current}>
      <ol>
        {steps.map((step, i) => (
          <li
            key={step}
            class={i < current ? "done" : i === current ? "now" : ""}
            aria-current={i === current ? "step" : undefined}
          >
            <span class="digit" aria-hidden="true">
              {i < current ? "✓" : i + 1}
            </span>
            <span>{t(step)}</span>
          </li>
        ))}
      </ol>
      {changed ? (
        <p class="guide-end" role="status">
          {t(
            "You changed a weight, and the output changed. Next: compare models, follow every number, or train one.",
          )}
        </p>
      ) : (
        current === 2 &&
        view !== "what-if" && (
          <button type="button" class="primary" id="guide-next" onClick={() => studio.show("what-if")}>
            {t("Change where it looked")}
          </button>
        )
      )}
      <button type="button" class="close" id="guide-close" onClick={closeGuide}>
        {changed ? t("Done") : t("Skip")}
      </button>
    </section>
  );
}

function outputChanged(studio: Studio): boolean {
  const [before, now] = [studio.before.value, studio.session.value?.trace.value];
  return before !== null && now !== undefined && before.target.text !== now.target.text;
}
