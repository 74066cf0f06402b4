/** Compare: two to four models or mechanisms on one input, with one linked cursor. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { dataTable } from "../figures/table";
import { formatNumber, formatPercent } from "../format";
import { t, type Text } from "../i18n";
import type { Edit, Trace } from "../trace";
import type { Ui } from "../ui";
import { toggleButton } from "../views/selects";
import { requestTrace, requestWhatIf, type Subject } from "./api";
import { MECHANISMS, type Lane, type Mechanism } from "./lanes";
import { pair, pairSite, pairTable } from "./pair";
import type { Studio } from "./store";
import { changedWords } from "./word_diff";

interface Result {
  readonly key: string;
  readonly trace: Trace | null;
  readonly problem: string | null;
}

const NAMES: Record<Mechanism, Text> = {
  "as-is": "as it was trained",
  uniform: "uniform attention",
  none: "no attention",
};
const MAX_LANES = 4;
const results = signal<ReadonlyMap<number, Result>>(new Map());
const requests = new Map<number, AbortController>();

export function compare(studio: Studio, ui: Ui): ComponentChildren {
  const model = studio.modelName.value;
  const all: readonly Lane[] = studio.lanes.value ?? [
    { model, mechanism: "as-is" },
    { model, mechanism: "uniform" },
  ];
  const subject = studio.subject.value;
  if (subject !== null) all.forEach((lane, i) => keep(i, lane, subject, ui.trace));
  const same = (studio.models.value ?? []).filter(({ task }) => task === studio.task.value);
  const change = (i: number, lane: Lane): void => {
    studio.lanes.value = all.map((one, j) => (i === j ? lane : one));
  };
  const first = results.value.get(0)?.trace ?? null;
  return (
    <>
      <h2>{t("One input, several models")}</h2>
      <p class="legend">
        {t(
          "Point at a word: it is marked in every model. “Uniform” and “no attention” change the weights of a trained model; it is not trained again.",
        )}
      </p>
      <div class="lanes-compare" data-n={all.length}>
        {all.map((lane, i) => {
          const result = results.value.get(i);
          return (
            <section
              class="card lane-compare"
              key={i}
              aria-label={`${lane.model}, ${t(NAMES[lane.mechanism])}`}
            >
              <div class="selects">
                <select
                  aria-label={t("Model {n}", { n: i + 1 })}
                  value={lane.model}
                  onChange={(event) => change(i, { ...lane, model: event.currentTarget.value })}
                >
                  {same.map(({ name }) => (
                    <option value={name} key={name}>
                      {name}
                    </option>
                  ))}
                </select>
                <select
                  aria-label={t("Attention of model {n}", { n: i + 1 })}
                  value={lane.mechanism}
                  data-mechanism={i}
                  onChange={(event) =>
                    change(i, { ...lane, mechanism: event.currentTarget.value as Mechanism })
                  }
                >
                  {MECHANISMS.map((name) => (
                    <option value={name} key={name}>
                      {t(NAMES[name])}
                    </option>
                  ))}
                </select>
                {all.length > 2 && (
                  <button
                    type="button"
                    aria-label={t("Remove model {n}", { n: i + 1 })}
                    onClick={() => {
                      studio.lanes.value = all.filter((_, j) => j !== i);
                      results.value = new Map();
                    }}
                  >
                    ×
                  </button>
                )}
              </div>
              {result?.problem != null && <p class="status bad">{result.problem}</p>}
              {result?.trace == null && result?.problem == null && (
                <p class="activity busy">{t("Working …")}</p>
              )}
              {result?.trace != null && lanePair(ui, result.trace, i, i === 0 ? null : first)}
            </section>
          );
        })}
      </div>
      <div class="selects">
        {all.length < MAX_LANES && (
          <button
            type="button"
            id="add-lane"
            onClick={() => {
              studio.lanes.value = [...all, { model, mechanism: "none" }];
            }}
          >
            + {t("Add a model")}
          </button>
        )}
        {toggleButton("table", t("table"), ui.state.table, "T", (on) => ui.setState({ table: on }))}
      </div>
      {ui.state.table && outputTable(all)}
      {ui.state.table && all.map((lane, i) => weightsOf(lane, results.value.get(i)?.trace ?? null))}
    </>
  );
}

function lanePair(ui: Ui, trace: Trace, i: number, first: Trace | null): ComponentChildren {
  const changed = first === null ? new Set<number>() : changedWords(first.target.words, trace.target.words);
  const mean = trace.steps.reduce((sum, { logp }) => sum + logp, 0) / Math.max(1, trace.steps.length);
  return (
    <>
      <p class="line" data-output={i} dir="auto">
        {trace.target.text || "–"}
      </p>
      {pair(ui, { id: `lane-${i}`, trace, record: pairSite(trace, null), head: null, changed })}
      <p class="letters">
        {t("Mean probability per token: {p}", { p: formatPercent(Math.exp(mean)) })}
        {first !== null &&
          changed.size > 0 &&
          ` · ${t("{n} words differ from the first", { n: changed.size })}`}
      </p>
    </>
  );
}

function outputTable(all: readonly Lane[]): ComponentChildren {
  const rows = all.flatMap((lane, i) => {
    const trace = results.value.get(i)?.trace;
    if (trace == null) return [];
    const mean = trace.steps.reduce((sum, { logp }) => sum + logp, 0) / Math.max(1, trace.steps.length);
    return [
      {
        label: `${lane.model}, ${t(NAMES[lane.mechanism])}`,
        values: [trace.target.text, formatNumber(mean)],
      },
    ];
  });
  return dataTable({
    caption: t("Outputs"),
    corner: t("model"),
    columns: [t("Output"), t("mean log-probability per token")],
    rows,
  });
}

/** The weights that the ribbons of a lane show. */
function weightsOf(lane: Lane, trace: Trace | null): ComponentChildren {
  const table = trace === null ? null : pairTable(trace, pairSite(trace, null), null);
  if (table === null) return null;
  return dataTable({
    caption: `${lane.model}, ${t(NAMES[lane.mechanism])}: ${t("weight")}`,
    corner: t("output word"),
    columns: table.columns.map(({ label }) => label),
    rows: table.rows.map(({ label }, i) => ({ label, values: table.values[i]! })),
  });
}

/** Ask a lane's model unless it was asked the same. */
function keep(i: number, lane: Lane, subject: Subject, shape: Trace): void {
  const key = JSON.stringify([lane, subject.input]);
  const known = results.peek().get(i);
  if (known?.key === key) return;
  requests.get(i)?.abort();
  const request = new AbortController();
  requests.set(i, request);
  queueMicrotask(() => {
    results.value = new Map(results.peek()).set(i, { key, trace: known?.trace ?? null, problem: null });
    void ask(lane, { ...subject, model: lane.model }, shape, request.signal)
      .then((trace): Result => ({ key, trace, problem: null }))
      .catch((error: unknown): Result | null =>
        request.signal.aborted ? null : { key, trace: null, problem: String((error as Error).message) },
      )
      .then((result) => {
        if (result !== null && !request.signal.aborted)
          results.value = new Map(results.peek()).set(i, result);
      });
  });
}

async function ask({ mechanism }: Lane, subject: Subject, shape: Trace, signal: AbortSignal): Promise<Trace> {
  const plain = (): Promise<Trace> => requestTrace(subject, { detail: "weights" }, signal);
  if (mechanism === "as-is") return plain();
  const { sites } = subject.model === shape.model.name ? shape : await plain();
  const cross = sites.filter(({ query_side, key_side }) => query_side === "target" && key_side === "source");
  const edits = cross.flatMap(({ site, heads }): Edit[] =>
    mechanism === "uniform"
      ? [{ op: "uniform", site } as Edit]
      : Array.from({ length: heads }, (_, head) => ({ op: "mask-head", site, head }) as Edit),
  );
  return (await requestWhatIf(subject, { edits, prefix: [] }, "weights", signal)).after;
}
