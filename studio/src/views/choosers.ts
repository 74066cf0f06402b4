/** Small controls that several views share. */
import { h, type Children, type Element } from "../dom";
import { piece } from "../format";
import { tickOf } from "../tick";
import type { Looks } from "../trace";
import { headOf, type Ui } from "../ui";

export function chooser(
  id: string,
  label: string,
  value: string,
  options: readonly (readonly [string, string])[],
  chosen: (value: string) => void,
): Element {
  return h(
    "label",
    { class: "chooser", for: id },
    h("span", {}, label),
    h(
      "select",
      { id, value, onchange: (event: Event) => chosen((event.target as HTMLSelectElement).value) },
      options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)),
    ),
  );
}

export function toggle(
  id: string,
  label: string,
  on: boolean,
  key: string | null,
  change: (on: boolean) => void,
): Element {
  return h(
    "button",
    {
      id,
      type: "button",
      class: "toggle",
      "aria-pressed": String(on),
      "aria-keyshortcuts": key,
      onclick: () => change(!on),
    },
    label,
    key !== null && h("kbd", { "aria-hidden": "true" }, key),
  );
}

/** What was written, one button each. */
export function steps(ui: Ui, step: number, title: string): Element {
  return h(
    "div",
    { class: "step-buttons", role: "group", "aria-label": title },
    ui.trace.target.tokens.map((_, i) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(i === step),
          "data-step": i,
          dir: "auto",
          onclick: () => ui.go({ tick: tickOf(ui.line, i, 1) }),
        },
        piece(ui.trace.target, i),
      ),
    ),
  );
}

/** A site by its name, in words. */
export function siteSaid(looks: Looks): string {
  const layer = looks.site.split(".")[1];
  const kinds: Record<string, string> = {
    "target source": "output reads input",
    "target target": "output reads output so far",
    "source source": "input reads input",
  };
  const what =
    looks.site === "copy" ? "words to copy" : (kinds[`${looks.asks} ${looks.reads}`] ?? looks.kind);
  return layer === undefined || !/^\d+$/.test(layer)
    ? `${what} (${looks.site})`
    : `${what}, layer ${Number(layer) + 1} (${looks.site})`;
}

export function siteChooser(ui: Ui, sites: readonly Looks[], looks: Looks): Children {
  if (sites.length < 2) return null;
  return chooser(
    "site",
    "Where in the model",
    looks.site,
    sites.map((one) => [one.site, siteSaid(one)] as const),
    (site) => ui.go({ site, position: null }),
  );
}

/** One head or, where that has a meaning, the mean of all. */
export function headChooser(ui: Ui, looks: Looks, mean: boolean): Children {
  if (looks.heads < 2) return null;
  const heads = Array.from(
    { length: looks.heads },
    (_, i) => [String(i), `head ${i} of 0–${looks.heads - 1}`] as const,
  );
  const options = mean ? [["mean", "mean of all heads"] as const, ...heads] : heads;
  const head = headOf(looks, ui.state.head);
  return chooser("head", "Head", head === null ? (mean ? "mean" : "0") : String(head), options, (value) =>
    ui.go({ head: value === "mean" ? null : Number(value), position: null }),
  );
}
