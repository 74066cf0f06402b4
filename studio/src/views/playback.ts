/** Playback: buttons, speed, and a timeline with a mark per output word. */
import { t } from "../i18n";
import { h, type VNode } from "../dom";
import { tokenText } from "../format";
import { SPEEDS, STAGES, clampTick, lastTick, moveSteps, positionAt, tickAt } from "../timeline";
import type { Ui } from "../ui";
import { labeledSelect } from "./selects";

const ICONS = {
  "word-back": "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M11 3v10L4 8z",
  play: "M4 2v12l9-6z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M5 3v10l7-5z",
  "word-next": "M11 3h2v10h-2zM3 3v10l7-5z",
} as const;
type Icon = keyof typeof ICONS;

const icon = (name: Icon): VNode =>
  h("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, h("path", { d: ICONS[name] }));

export function playback(ui: Ui): VNode {
  const { tick, speed } = ui.state;
  const end = lastTick(ui.timeline);
  const to = (next: number) => () => ui.setState({ tick: clampTick(ui.timeline, next) });
  const button = (
    id: string,
    label: string,
    name: Icon,
    keys: string,
    action: () => void,
    disabled = false,
  ): VNode =>
    h(
      "button",
      { id, type: "button", "aria-label": label, title: `${label} (${keys})`, disabled, onclick: action },
      icon(name),
    );
  return h(
    "div",
    { class: "playback", role: "group", "aria-label": t("Playback") },
    h(
      "div",
      { class: "buttons" },
      button(
        "word-back",
        t("Previous word"),
        "word-back",
        "Shift + ←",
        to(moveSteps(ui.timeline, tick, -1)),
        tick === 0,
      ),
      button("back", t("One step back"), "back", "←", to(tick - 1), tick === 0),
      button("play", ui.playing ? t("Pause") : t("Play"), ui.playing ? "pause" : "play", "Space", () =>
        ui.play(!ui.playing),
      ),
      button("next", t("One step forward"), "next", "→", to(tick + 1), tick === end),
      button(
        "word-next",
        t("Next word"),
        "word-next",
        "Shift + →",
        to(moveSteps(ui.timeline, tick, 1)),
        tick === end,
      ),
      labeledSelect(
        "speed",
        t("Speed"),
        String(speed),
        SPEEDS.map((one) => [String(one), `${one}×`] as const),
        (value) => ui.setState({ speed: Number(value) }),
      ),
    ),
    timeline(ui),
  );
}

function timeline(ui: Ui): VNode {
  const { steps, stages } = ui.timeline;
  const { step, stage } = positionAt(ui.timeline, ui.state.tick);
  const words = Array.from({ length: steps }, (_, t) => tokenText(ui.trace.target, t));
  return h(
    "div",
    { class: "timeline", tabindex: -1 },
    h(
      "div",
      { class: "inner", style: { "--words": String(steps), "min-width": `${steps * 3.6}rem` } },
      h("input", {
        type: "range",
        id: "scrub",
        min: 0,
        max: lastTick(ui.timeline),
        step: 1,
        value: ui.state.tick,
        "aria-label": t("Step"),
        "aria-valuetext": `${t("word {n} of {all}", { n: step + 1, all: steps })}, ${words[step]}${stages > 1 ? `, ${t(STAGES[stage]!)}` : ""}`,
        oninput: (event: Event) =>
          ui.setState({ tick: clampTick(ui.timeline, Number((event.target as HTMLInputElement).value)) }),
      }),
      h(
        "ol",
        { class: "marks" },
        words.map((word, t) =>
          h(
            "li",
            { class: t < step ? "done" : t === step ? "current" : "ahead" },
            h(
              "button",
              {
                type: "button",
                tabindex: -1,
                title: word,
                dir: "auto",
                "aria-current": t === step ? "step" : null,
                onclick: () => ui.setState({ tick: tickAt(ui.timeline, t, stage) }),
              },
              word,
            ),
          ),
        ),
      ),
    ),
  );
}
