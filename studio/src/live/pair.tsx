/** Input words above, output words below, and a ribbon per weight between them: linked by hovering. */
import type { ComponentChildren } from "preact";
import { weightTable, type WeightTable } from "../fold";
import { formatNumber, formatPercent } from "../format";
import { t } from "../i18n";
import { Arrays } from "../tensor";
import type { SiteRecord, Trace } from "../trace";
import { findSite, type Ui } from "../ui";

const MIN_WEIGHT = 0.04; // smaller weights have no ribbon; their cells in the table have them

export interface Pair {
  readonly id: string;
  readonly trace: Trace;
  readonly record: SiteRecord | null;
  readonly head: number | null;
  readonly current?: number | null; // row of the output word that is looked at
  readonly changed?: ReadonlySet<number>; // rows of output words that are new
  readonly kept?: number; // output rows that were forced
  readonly hidden?: boolean; // without ribbons, for lessons
  readonly onWord?: (row: number) => void; // an output word is chosen
  readonly onInput?: (column: number) => void;
}

/** The weights by words, of a site with one query per output token. */
export function pairTable(trace: Trace, record: SiteRecord | null, head: number | null): WeightTable | null {
  if (record === null || record.key_side !== "source" || record.query_side !== "target") return null;
  return weightTable(trace, new Arrays(trace), record, head, true, false);
}

export const pairSite = (trace: Trace, site: string | null): SiteRecord | null => {
  const fits = (record: SiteRecord): boolean =>
    record.key_side === "source" && record.query_side === "target";
  const named = findSite(trace, site);
  return named !== null && fits(named) ? named : (trace.sites.find(fits) ?? null);
};

export function pair(ui: Ui, options: Pair): ComponentChildren {
  const { id, trace, record, head, current, changed, kept = 0, hidden, onWord, onInput } = options;
  const table = pairTable(trace, record, head);
  const inputs = table?.columns.map(({ label }) => label) ?? trace.source.words;
  const outputs = table?.rows.map(({ label }) => label) ?? trace.target.words;
  if (table !== null && !hidden)
    ui.onPaint(`${id}-ribbons`, (svg) => paint(svg as unknown as SVGSVGElement, table));
  const best = (row: number): string => {
    const values = table?.values[row] ?? [];
    const top = values
      .map((value, i) => ({ value, label: inputs[i]! }))
      .sort((a, b) => b.value - a.value)
      .slice(0, 3)
      .filter(({ value }) => value >= 0.01);
    return hidden || top.length === 0
      ? outputs[row]!
      : t("{query} attends to {keys}", {
          query: outputs[row]!,
          keys: top.map(({ label, value }) => `${label} ${formatNumber(value, 2)}`).join(", "),
        });
  };
  return (
    <div class="pair-figure linked" id={id}>
      <p class="side-name" id={`${id}-in`}>
        {t("Input")}
      </p>
      <div class="words" role="group" aria-labelledby={`${id}-in`} dir="auto">
        {inputs.map((word, i) => (
          <button
            type="button"
            key={i}
            class="chip in"
            data-col={i}
            tabIndex={onInput === undefined ? -1 : 0}
            aria-disabled={onInput === undefined}
            onClick={() => onInput?.(i)}
          >
            {word}
          </button>
        ))}
      </div>
      <svg class="ribbons" data-canvas={`${id}-ribbons`} aria-hidden="true" />
      <div class="words out" role="group" aria-labelledby={`${id}-out`} dir="auto" lang="">
        {outputs.map((word, i) => (
          <button
            type="button"
            key={i}
            class={`chip out${changed?.has(i) ? " changed" : ""}${i < kept ? " kept" : ""}`}
            data-row={i}
            aria-pressed={onWord === undefined ? undefined : i === current}
            aria-label={best(i)}
            onClick={() => onWord?.(i)}
          >
            {word}
          </button>
        ))}
      </div>
      <p class="side-name" id={`${id}-out`}>
        {t("Output")}
      </p>
    </div>
  );
}

const SVG = "http://www.w3.org/2000/svg";

/** Draw the ribbons between the words where they are now: one row above the other, or side by side on narrow screens. */
function paint(svg: SVGSVGElement, { values }: WeightTable): void {
  const figure = svg.parentElement!;
  const box = svg.getBoundingClientRect();
  const places = (selector: string): DOMRect[] =>
    Array.from(figure.querySelectorAll(selector), (word) => word.getBoundingClientRect());
  const [inputs, outputs] = [places(".chip.in"), places(".chip.out")];
  const beside = getComputedStyle(figure.querySelector(".words")!).flexDirection === "column";
  svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  const paths: SVGPathElement[] = [];
  values.forEach((row, i) =>
    row.forEach((value, j) => {
      const [from, to] = [inputs[j], outputs[i]];
      if (value < MIN_WEIGHT || from === undefined || to === undefined) return;
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", beside ? across(from, to, box) : down(from, to, box));
      path.setAttribute("class", "link");
      path.setAttribute("stroke-width", (1 + 6 * Math.min(1, value)).toFixed(2));
      path.setAttribute("stroke-opacity", (0.1 + 0.75 * Math.min(1, value)).toFixed(3));
      path.dataset.row = String(i);
      path.dataset.col = String(j);
      path.dataset.v = String(value);
      paths.push(path);
    }),
  );
  svg.replaceChildren(...paths);
}

function down(from: DOMRect, to: DOMRect, box: DOMRect): string {
  const [x0, x1] = [from.left + from.width / 2 - box.left, to.left + to.width / 2 - box.left];
  const [y0, y1] = [Math.max(0, from.bottom - box.top), Math.min(box.height, to.top - box.top)];
  const bend = (y1 - y0) * 0.5;
  return curve([x0, y0], [x0, y0 + bend], [x1, y1 - bend], [x1, y1]);
}

function across(from: DOMRect, to: DOMRect, box: DOMRect): string {
  const [y0, y1] = [from.top + from.height / 2 - box.top, to.top + to.height / 2 - box.top];
  const [x0, x1] = [from.right - box.left, to.left - box.left];
  const middle = (x0 + x1) / 2;
  return curve([x0, y0], [middle, y0], [middle, y1], [x1, y1]);
}

const curve = (...points: (readonly [number, number])[]): string => {
  const [start, ...rest] = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return `M${start}C${rest.join(" ")}`;
};

/** What an output word attends to, as a sentence. */
export function attendsTo(table: WeightTable | null, row: number): string {
  const values = table?.values[row];
  if (table === null || values === undefined) return "";
  const best = values.indexOf(Math.max(...values));
  return t("“{word}” looked mostly at “{key}”: {share} of its attention.", {
    word: table.rows[row]!.label,
    key: table.columns[best]!.label,
    share: formatPercent(values[best]!),
  });
}
