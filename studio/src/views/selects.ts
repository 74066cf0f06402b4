/** Small controls that several views share. */
import { t } from "../i18n";
import { h, type Children, type VNode } from "../dom";
import { tokenText } from "../format";
import type { State } from "../link";
import { tickAt } from "../timeline";
import type { SiteRecord } from "../trace";
import { validHead, type Ui } from "../ui";

export function labeledSelect(
  id: string,
  label: string,
  value: string,
  options: readonly (readonly [string, string])[],
  onChange: (value: string) => void,
): VNode {
  return h(
    "label",
    { class: "select", for: id },
    h("span", {}, label),
    h(
      "select",
      { id, value, onchange: (event: Event) => onChange((event.target as HTMLSelectElement).value) },
      options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)),
    ),
  );
}

export function toggleButton(
  id: string,
  label: string,
  on: boolean,
  key: string | null,
  onChange: (on: boolean) => void,
): VNode {
  return h(
    "button",
    {
      id,
      type: "button",
      class: "toggle",
      "aria-pressed": String(on),
      "aria-keyshortcuts": key,
      onclick: () => onChange(!on),
    },
    label,
    key !== null && h("kbd", { "aria-hidden": "true" }, key),
  );
}

/** One button per output token. */
export function stepButtons(ui: Ui, step: number, title: string, change: Partial<State> = {}): VNode {
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
          onclick: () => ui.setState({ ...change, tick: tickAt(ui.timeline, i, 1) }),
        },
        tokenText(ui.trace.target, i),
      ),
    ),
  );
}

/** A site's name with its kind and layer. */
export function siteLabel(record: SiteRecord): string {
  const layer = record.site.split(".")[1];
  const kinds: Record<string, string> = {
    "target source": t("cross-attention"),
    "target target": t("decoder self-attention"),
    "source source": t("encoder self-attention"),
  };
  const kind =
    record.site === "copy"
      ? t("copy attention")
      : record.kind === "pool"
        ? t("attention of the label")
        : (kinds[`${record.query_side} ${record.key_side}`] ?? record.kind);
  return layer === undefined || !/^\d+$/.test(layer)
    ? `${kind} (${record.site})`
    : `${kind}, ${t("layer {n}", { n: Number(layer) + 1 })} (${record.site})`;
}

export function siteSelect(ui: Ui, sites: readonly SiteRecord[], record: SiteRecord): Children {
  if (sites.length < 2) return null;
  return labeledSelect(
    "site",
    t("Site"),
    record.site,
    sites.map((site) => [site.site, siteLabel(site)] as const),
    (site) => ui.setState({ site, position: null }),
  );
}

/** One head or, where `mean` allows it, the mean of all. */
export function headSelect(ui: Ui, record: SiteRecord, mean: boolean): Children {
  if (record.heads < 2) return null;
  const heads = Array.from(
    { length: record.heads },
    (_, i) => [String(i), t("head {head} of 0–{last}", { head: i, last: record.heads - 1 })] as const,
  );
  const options = mean ? [["mean", t("mean of all heads")] as const, ...heads] : heads;
  const head = validHead(record, ui.state.head);
  const value = head === null ? (mean ? "mean" : "0") : String(head);
  return labeledSelect("head", t("Head"), value, options, (chosen) =>
    ui.setState({ head: chosen === "mean" ? null : Number(chosen), position: null }),
  );
}
