/** What the page and the studio share: drawing, the address, the language, and the names of views. */
import { effect } from "@preact/signals-core";
import { draw, h, type Children, type VNode } from "./dom";
import { clearHighlight, highlight } from "./highlight";
import { chooseLanguage, language, LANGUAGES, t, type Text } from "./i18n";
import type { View } from "./link";
import { reveal, syncScroll } from "./scroll";
import type { Session } from "./session";

export const VIEW_LABELS: Record<View, Text> = {
  write: "Write",
  "what-if": "What-if",
  compare: "Compare",
  walk: "Walk",
  alignment: "Alignment",
  heads: "Heads",
  beam: "Beam",
  photo: "Photo",
  history: "History",
  classify: "Classify",
  read: "Read",
  train: "Train",
  lesson: "Lesson",
};
/** Write the state to the address; a page inside a notebook may have none. */
export function writeAddress(link: string, push: boolean): void {
  try {
    if (push) window.history.pushState(null, "", link);
    else window.history.replaceState(null, "", link);
  } catch {
    // the state is kept in memory only
  }
}

export function openHelp(): void {
  document.querySelector<HTMLDialogElement>("#help")?.showModal();
}

/** Draw the page now and whenever a signal that it reads changes; then paint, scroll and highlight. */
export function keepDrawn(root: HTMLElement, session: () => Session | null, frame: () => Children): void {
  const paint = (): void => {
    for (const canvas of root.querySelectorAll<HTMLCanvasElement>("[data-canvas]")) {
      session()?.painters.get(canvas.dataset.canvas!)?.(canvas);
    }
  };
  effect(() => {
    document.documentElement.lang = language.value;
    clearHighlight();
    draw(root, frame());
    paint();
    reveal(root);
    highlight(root, Array.from(root.querySelectorAll(":hover")).at(-1) ?? null);
    if (root.querySelector("[data-highlighted]") === null) highlight(root, document.activeElement);
  });
  for (const type of ["mouseover", "focusin"] as const) {
    root.addEventListener(type, (event) => highlight(root, event.target));
  }
  root.addEventListener("mouseleave", clearHighlight);
  syncScroll(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  addEventListener("resize", paint);
}

export function skipLink(): VNode {
  const skip = (event: Event): void => {
    event.preventDefault();
    document.getElementById("main")?.focus();
  };
  return h("a", { class: "skip", href: "#main", onclick: skip }, t("Skip to the figure"));
}

export function languageSelect(): VNode {
  return h(
    "select",
    {
      id: "language",
      "aria-label": t("Language"),
      value: language.value,
      onchange: (event: Event) => chooseLanguage((event.target as HTMLSelectElement).value),
    },
    Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, lang: code }, name)),
  );
}

export function helpButton(): VNode {
  return h(
    "button",
    { type: "button", id: "help-button", class: "help", onclick: openHelp },
    h("span", {}, t("Help")),
    h("kbd", { "aria-hidden": "true" }, "?"),
  );
}
