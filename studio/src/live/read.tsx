/** Read: how surprising every word is while typing, and the earlier words that its prediction looked at. */
import type { ComponentChildren } from "preact";
import { bar } from "../figures/list";
import { dataTable } from "../figures/table";
import { formatNumber, formatPercent, withoutMarker } from "../format";
import { t } from "../i18n";
import { positionAt, tickAt } from "../timeline";
import { findWalkableSite, validHead, type Ui } from "../ui";
import { headSelect, siteSelect, toggleButton } from "../views/selects";
import { wordGroups } from "./edits";
import { node } from "./node";
import type { Studio } from "./store";

const MAX_BITS = 18; // a full bar
const MIN_WEIGHT = 0.05; // smaller weights have no arc
const ARC_HEIGHT = 56; // pixels

export function read(studio: Studio, ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  const words = wordGroups(trace.target).filter(({ special }) => !special);
  const bits = words.map(({ positions }) =>
    positions.reduce((sum, at) => sum - (trace.steps[at]?.logp ?? 0) / Math.LN2, 0),
  );
  const { step } = positionAt(ui.timeline, state.tick);
  const current = Math.max(
    0,
    words.findIndex(({ positions }) => positions.includes(step)),
  );
  const weights = wordWeights(ui, words, current);
  const total = bits.reduce((a, b) => a + b, 0);
  const first = words[current]?.positions[0] ?? 0;
  ui.onPaint("arcs", (svg) => paintArcs(svg as unknown as SVGSVGElement, current, weights));
  const record = findWalkableSite(trace, state.site);
  return (
    <>
      <p class="legend" id="output" data-for={studio.answered.value}>
        {t(
          "{bits} bits in all; perplexity per token {perplexity}. Taller bars: more surprising words. Choose a word to see which earlier words its prediction looked at.",
          {
            bits: formatNumber(total, 1),
            perplexity: formatNumber(2 ** (total / Math.max(1, trace.steps.length)), 1),
          },
        )}
      </p>
      <div class="surprisal">
        <svg class="arcs" data-canvas="arcs" aria-hidden="true" />
        <div class="reading" dir="auto">
          {words.map(({ text, positions }, i) => (
            <button
              type="button"
              key={i}
              class={i === current ? "read-word current" : "read-word"}
              aria-pressed={i === current}
              data-word={i}
              data-v={String(bits[i])}
              aria-label={t("{word}: {bits} bits", { word: text, bits: formatNumber(bits[i]!, 1) })}
              style={{ "--shade": `${Math.round(80 * Math.min(1, i < current ? (weights[i] ?? 0) : 0))}%` }}
              onClick={() => ui.setState({ tick: tickAt(ui.timeline, positions[0]!, 4) })}
            >
              <span
                class="bits"
                style={{ height: `${Math.round((72 * Math.min(MAX_BITS, bits[i]!)) / MAX_BITS) + 1}px` }}
              />
              <span class="text">{text}</span>
            </button>
          ))}
        </div>
      </div>
      <div class="selects">
        {record !== null && node([siteSelect(ui, trace.sites, record), headSelect(ui, record, true)])}
        {toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on }))}
      </div>
      <section class="card" aria-labelledby="next-title">
        <h3 id="next-title">{t("Expected instead of “{word}”", { word: words[current]?.text ?? "" })}</h3>
        <ul class="candidates">
          {trace.steps[first]!.top.map(({ text, logp }) => (
            <li key={text} class="candidate">
              <span class="text">{withoutMarker({ text })}</span>
              {bar(Math.exp(logp), 1)}
              <span class="n" data-v={String(Math.exp(logp))}>
                {formatPercent(Math.exp(logp))}
              </span>
            </li>
          ))}
        </ul>
      </section>
      {state.table &&
        dataTable({
          caption: t("Surprisal of every word"),
          corner: t("word"),
          columns: [t("bits"), t("weight for the chosen word")],
          rows: words.map(({ text }, i) => ({ label: text, values: [bits[i]!, weights[i] ?? null] })),
        })}
    </>
  );
}

/** The weights of the words before the chosen one, when it was predicted. */
function wordWeights(ui: Ui, words: ReturnType<typeof wordGroups>, current: number): (number | null)[] {
  const { trace, arrays, state } = ui;
  const record = findWalkableSite(trace, state.site);
  const step = words[current]?.positions[0];
  if (record === null || step === undefined) return words.map(() => null);
  const head = validHead(record, state.head);
  const heads = head === null ? Array.from({ length: record.heads }, (_, i) => i) : [head];
  const offset = record.key_side === "source" && trace.source.tokens[0]?.role === "start" ? 1 : 0;
  return words.map(({ positions }, i) =>
    i >= current
      ? null
      : positions.reduce(
          (sum, at) =>
            sum +
            heads.reduce((all, one) => all + (arrays.row(record.weights, step, one)[at + offset] ?? 0), 0) /
              heads.length,
          0,
        ),
  );
}

const SVG = "http://www.w3.org/2000/svg";

/** Arcs above the line of the chosen word; earlier lines have their weights as shading. */
function paintArcs(svg: SVGSVGElement, current: number, weights: readonly (number | null)[]): void {
  const box = svg.getBoundingClientRect();
  const words = Array.from(svg.parentElement!.querySelectorAll<HTMLElement>(".read-word"), (word) =>
    word.getBoundingClientRect(),
  );
  const target = words[current];
  svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  const paths = weights.flatMap((weight, i) => {
    const from = words[i];
    if (weight === null || weight < MIN_WEIGHT || from === undefined || target === undefined) return [];
    if (Math.abs(from.bottom - target.bottom) > 4) return []; // another line
    const [x0, x1] = [from.left + from.width / 2 - box.left, target.left + target.width / 2 - box.left];
    const [y0, y1] = [from.top - box.top, target.top - box.top];
    const peak = Math.min(y0, y1) - Math.min(ARC_HEIGHT, 12 + Math.abs(x1 - x0) * 0.2);
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", `M${x1} ${y1}C${x1} ${peak} ${x0} ${peak} ${x0} ${y0}`);
    path.setAttribute("class", "link");
    path.setAttribute("stroke-width", (1 + 5 * weight).toFixed(2));
    path.setAttribute("stroke-opacity", (0.25 + 0.75 * weight).toFixed(3));
    path.dataset.word = String(i);
    path.dataset.v = String(weight);
    return [path];
  });
  svg.replaceChildren(...paths);
}
