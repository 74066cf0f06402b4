/** Write: the output while typing, where each word looked, other outputs, and what else each step could have been. */
import type { ComponentChildren } from "preact";
import { bar } from "../figures/list";
import { dataTable } from "../figures/table";
import { formatNumber, formatPercent, withoutMarker } from "../format";
import { t } from "../i18n";
import { positionAt, tickAt } from "../timeline";
import type { BeamTree, Candidate, Trace } from "../trace";
import type { Ui } from "../ui";
import { hypothesisText, path } from "../views/beam";
import { headSelect, siteSelect, toggleButton } from "../views/selects";
import { wordGroups } from "./edits";
import { node } from "./node";
import { attendsTo, pair, pairSite, pairTable } from "./pair";
import type { Studio } from "./store";

const N_OUTPUTS = 5;
const N_ALTERNATIVES = 8;

export function write(studio: Studio, ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  const record = pairSite(trace, state.site);
  const table = pairTable(trace, record, state.head);
  const { step } = positionAt(ui.timeline, state.tick);
  const words = wordGroups(trace.target).filter(({ special }) => !special);
  const current = Math.max(
    0,
    words.findIndex(({ positions }) => positions.includes(step)),
  );
  // a word counts if only a part of it is forced, too
  const kept = words.filter(({ positions }) =>
    positions.some((at) => at < studio.prefix.value.length),
  ).length;
  const choose = (row: number): void => {
    const first = words[row]?.positions[0];
    if (first !== undefined) ui.setState({ tick: tickAt(ui.timeline, first, 4) });
  };
  return (
    <>
      <p class="output" id="output" dir="auto" aria-live="polite" data-for={studio.answered.value}>
        {trace.target.text}
      </p>
      {kept > 0 && (
        <p class="kept-note">
          {t("The beginning “{prefix}” is kept; the model wrote the rest.", {
            prefix: words
              .slice(0, kept)
              .map(({ text }) => text)
              .join(" "),
          })}{" "}
          <button type="button" id="release" onClick={() => studio.apply({ prefix: [] })}>
            {t("Let the model choose again")}
          </button>
        </p>
      )}
      {pair(ui, { id: "alignment-pair", trace, record, head: state.head, current, kept, onWord: choose })}
      <p class="hint">
        {attendsTo(table, current)}{" "}
        <button type="button" class="primary" id="to-what-if" onClick={() => studio.show("what-if")}>
          {t("What if it had looked elsewhere?")}
        </button>
      </p>
      <div class="selects">
        {node(
          siteSelect(
            ui,
            trace.sites.filter(
              ({ key_side, query_side }) => key_side === "source" && query_side === "target",
            ),
            record ?? trace.sites[0]!,
          ),
        )}
        {record !== null && node(headSelect(ui, record, true))}
        {toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on }))}
      </div>
      <div class="columns-2">
        {alternatives(studio, ui, words, current, step)}
        {outputs(studio, trace)}
      </div>
      {state.table &&
        table !== null &&
        dataTable({
          caption: t("Weights by words"),
          corner: t("output word"),
          columns: table.columns.map(({ label }) => label),
          rows: table.rows.map(({ label }, i) => ({ label, values: table.values[i]! })),
        })}
    </>
  );
}

/** What the chosen word could have been; a click keeps everything before it and lets the model go on. */
function alternatives(
  studio: Studio,
  ui: Ui,
  words: ReturnType<typeof wordGroups>,
  current: number,
  step: number,
): ComponentChildren {
  const { trace } = ui;
  const word = words[current];
  if (word === undefined) return null;
  const at = word.positions.includes(step) ? step : word.positions[0]!;
  const token = trace.target.tokens[at]!;
  // a space alone, which models trained with BPE-dropout find likely, is no word to choose
  const top = trace.steps[at]!.top.filter((one) => withoutMarker(one).trim() !== "").slice(0, N_ALTERNATIVES);
  const force = (candidate: Candidate): void => {
    if (candidate.id == null) return;
    const before = trace.target.tokens.slice(0, at).map(({ id }) => id!);
    studio.apply({ prefix: [...before, candidate.id] });
  };
  return (
    <section class="card" id="alternatives" aria-labelledby="alternatives-title">
      <h3 id="alternatives-title">{t("Instead of “{word}”", { word: word.text })}</h3>
      {word.positions.length > 1 && (
        <p class="pieces" role="group" aria-label={t("Pieces of the word")}>
          {word.positions.map((position) => (
            <button
              type="button"
              key={position}
              aria-pressed={position === at}
              onClick={() => ui.setState({ tick: tickAt(ui.timeline, position, 4) })}
            >
              {withoutMarker(trace.target.tokens[position]!)}
            </button>
          ))}
        </p>
      )}
      <ul class="candidates">
        {top.map((candidate) => {
          const p = Math.exp(candidate.logp);
          const chosen = candidate.id === token.id;
          return (
            <li key={candidate.id ?? candidate.text}>
              <button
                type="button"
                class="candidate"
                aria-pressed={chosen}
                data-id={`token-${candidate.id}`}
                data-token={candidate.id}
                title={t("Force “{token}”, probability {probability}", {
                  token: withoutMarker(candidate),
                  probability: formatPercent(p),
                })}
                onClick={() => force(candidate)}
              >
                <span class="text" dir="auto">
                  {candidateText(candidate, at, trace)}
                </span>
                {bar(p, 1)}
                <span class="n" data-v={String(p)}>
                  {formatNumber(p)}
                </span>
              </button>
            </li>
          );
        })}
      </ul>
      <p class="letters">{t("Choose one: everything before it stays, the model writes the rest again.")}</p>
    </section>
  );
}

/** A candidate that starts a word as it is, one that continues it with a hyphen, the end as a sign. */
function candidateText(candidate: Candidate, at: number, trace: Trace): string {
  if (candidate.text === "</s>") return t("(end)");
  const continues = !candidate.text.startsWith("▁") && at > 0 && /^\p{L}/u.test(candidate.text);
  const marked = trace.target.tokens.some(({ text }) => text.startsWith("▁"));
  return (marked && continues ? "‑" : "") + withoutMarker(candidate);
}

/** The best complete outputs of the beam. */
export function bestOutputs(tree: BeamTree): { text: string; score: number; tokens: number[] }[] {
  const seen = new Set<string>();
  return tree.nodes
    .filter(({ state }) => state === "finished")
    .map((last) => {
      const nodes = path(tree, last.id);
      const tokens = nodes.map(({ token }) => token);
      return { text: hypothesisText(nodes), score: last.score ?? last.total_logp / (last.step + 1), tokens };
    })
    .sort((a, b) => b.score - a.score)
    .filter(({ text }) => !seen.has(text) && seen.add(text))
    .slice(0, N_OUTPUTS);
}

function outputs(studio: Studio, trace: Trace): ComponentChildren {
  if (trace.beam == null) return null;
  const all = bestOutputs(trace.beam);
  if (all.length === 0) return null;
  const chosen = trace.target.tokens.map(({ id }) => id).join(" ");
  return (
    <section class="card" aria-labelledby="outputs-title">
      <h3 id="outputs-title">{t("Best outputs of the beam")}</h3>
      <ol class="outputs">
        {all.map(({ text, score, tokens }) => (
          <li key={text}>
            <button
              type="button"
              class="candidate wide"
              aria-pressed={tokens.join(" ") === chosen}
              onClick={() => studio.apply({ prefix: tokens })}
            >
              <span class="text" dir="auto">
                {text}
              </span>
              <span
                class="n"
                data-v={String(score)}
                title={t("score: mean log-probability per token, as the search ranks it")}
              >
                {formatNumber(score, 2)}
              </span>
            </button>
          </li>
        ))}
      </ol>
      <p class="letters">{t("Choose one to see where its words looked.")}</p>
    </section>
  );
}
