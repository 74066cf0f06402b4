/** Classify: the labels while typing, and the weight of every word as shading. */
import type { ComponentChildren } from "preact";
import { bar } from "../figures/list";
import { dataTable } from "../figures/table";
import { formatNumber, formatPercent, readable } from "../format";
import { t } from "../i18n";
import type { Ui } from "../ui";
import { toggleButton } from "../views/selects";
import { wordGroups } from "./edits";
import { pairSite } from "./pair";
import type { Studio } from "./store";

export function classify(studio: Studio, ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  const record = pairSite(trace, state.site);
  const words = wordGroups(trace.source);
  const row = record === null ? null : ui.arrays.row(record.weights, 0, 0);
  const values = words.map(({ positions }) => positions.reduce((sum, at) => sum + (row?.[at] ?? 0), 0));
  const largest = Math.max(...values, 1e-9);
  return (
    <>
      <p class="output" id="output" aria-live="polite" data-for={studio.answered.value}>
        {readable(trace.target.text)} <small>{formatPercent(Math.exp(trace.steps[0]!.logp))}</small>
      </p>
      <p class="shaded" dir="auto">
        {words.map(({ text }, i) => (
          <span
            key={i}
            data-v={String(values[i])}
            title={`${t("weight")} ${formatNumber(values[i]!)}`}
            style={{ "--shade": `${Math.round((70 * values[i]!) / largest)}%` }}
          >
            {text}
          </span>
        ))}
      </p>
      <p class="legend">
        {t(
          "The darker a word, the larger its weight. The weights show where the model looked, not why it decided.",
        )}
      </p>
      <div class="selects">
        <button type="button" class="primary" id="to-what-if" onClick={() => studio.show("what-if")}>
          {t("What if it had looked elsewhere?")}
        </button>
        {toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on }))}
      </div>
      <section class="card" aria-labelledby="labels-title">
        <h3 id="labels-title">{t("Most likely {outputs}", { outputs: t("labels") })}</h3>
        <ul class="candidates">
          {trace.steps[0]!.top.map(({ text, logp }) => (
            <li key={text} class="candidate">
              <span class="text">{readable(text)}</span>
              {bar(Math.exp(logp), 1)}
              <span class="n" data-v={String(Math.exp(logp))}>
                {formatNumber(Math.exp(logp))}
              </span>
            </li>
          ))}
        </ul>
      </section>
      {state.table &&
        dataTable({
          caption: t("Weights by words"),
          corner: t("input word"),
          columns: [t("weight")],
          rows: words.map(({ text }, i) => ({ label: text, values: [values[i]!] })),
        })}
    </>
  );
}
