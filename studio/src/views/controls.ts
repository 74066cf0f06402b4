/** The timeline: play, steps, speed, and a bar with a mark for every word. */
import { h, type Element } from "../dom";
import { piece } from "../format";
import { SPEEDS, STAGES, byWord, clamp, last, place, tickOf } from "../tick";
import type { Ui } from "../ui";
import { chooser } from "./choosers";

const ICONS = {
  "word-back": "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M11 3v10L4 8z",
  play: "M4 2v12l9-6z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M5 3v10l7-5z",
  "word-next": "M11 3h2v10h-2zM3 3v10l7-5z",
} as const;
type Icon = keyof typeof ICONS;

const icon = (name: Icon): Element =>
  h("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, h("path", { d: ICONS[name] }));

export function controls(ui: Ui): Element {
  const { tick, speed } = ui.state;
  const end = last(ui.line);
  const to = (next: number) => () => ui.go({ tick: clamp(ui.line, next) });
  const button = (
    id: string,
    label: string,
    sign: Icon,
    keys: string,
    act: () => void,
    off = false,
  ): Element =>
    h(
      "button",
      { id, type: "button", "aria-label": label, title: `${label} (${keys})`, disabled: off, onclick: act },
      icon(sign),
    );
  return h(
    "div",
    { class: "controls", role: "group", "aria-label": "Playback" },
    h(
      "div",
      { class: "buttons" },
      button(
        "word-back",
        "Previous word",
        "word-back",
        "Shift + ←",
        to(byWord(ui.line, tick, -1)),
        tick === 0,
      ),
      button("back", "One step back", "back", "←", to(tick - 1), tick === 0),
      button("play", ui.playing ? "Pause" : "Play", ui.playing ? "pause" : "play", "Space", () =>
        ui.play(!ui.playing),
      ),
      button("next", "One step forward", "next", "→", to(tick + 1), tick === end),
      button("word-next", "Next word", "word-next", "Shift + →", to(byWord(ui.line, tick, 1)), tick === end),
      chooser(
        "speed",
        "Speed",
        String(speed),
        SPEEDS.map((one) => [String(one), `${one}×`] as const),
        (value) => ui.go({ speed: Number(value) }),
      ),
    ),
    timeline(ui),
  );
}

function timeline(ui: Ui): Element {
  const { steps, stages } = ui.line;
  const { step, stage } = place(ui.line, ui.state.tick);
  const words = Array.from({ length: steps }, (_, t) => piece(ui.trace.target, t));
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
        max: last(ui.line),
        step: 1,
        value: ui.state.tick,
        "aria-label": "Step",
        "aria-valuetext": `word ${step + 1} of ${steps}, ${words[step]}${stages > 1 ? `, ${STAGES[stage]}` : ""}`,
        oninput: (event: Event) =>
          ui.go({ tick: clamp(ui.line, Number((event.target as HTMLInputElement).value)) }),
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
                onclick: () => ui.go({ tick: tickOf(ui.line, t, stage) }),
              },
              word,
            ),
          ),
        ),
      ),
    ),
  );
}
