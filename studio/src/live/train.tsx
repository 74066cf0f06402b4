/** Train: watch the curves of a training, and the attention of fixed sentences at every validation. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { dataTable } from "../figures/table";
import { formatNumber, formatPercent } from "../format";
import { t, type Text } from "../i18n";
import type { Trace } from "../trace";
import { pairSite, pairTable } from "./pair";
import { postJson } from "./api";
import type { Studio } from "./store";

interface Validation {
  readonly event: "validation";
  readonly step: number;
  readonly seconds: number;
  readonly train_loss: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly entropy: number;
  readonly aer: number | null;
  readonly traces?: readonly Trace[];
}
type Message =
  | Validation
  | { readonly event: "start"; readonly total: number; readonly done: number }
  | { readonly event: "step"; readonly step: number; readonly loss: number }
  | { readonly event: "log"; readonly text: string }
  | { readonly event: "failed"; readonly detail: string }
  | { readonly event: "done"; readonly model: string }
  | { readonly event: "state"; readonly state: string };

const job = signal<string | null>(null);
const state = signal<"none" | "running" | "stopped" | "done" | "failed">("none");
const progress = signal<{ step: number; total: number; loss: number | null }>({
  step: 0,
  total: 0,
  loss: null,
});
const validations = signal<readonly Validation[]>([]);
const frame = signal<number | null>(null); // null: the last one
const sentence = signal(0);
const problem = signal<string | null>(null);
const data = signal("");
const result = signal<string | null>(null);
let source: EventSource | null = null;

const CURVES: readonly (readonly [Text, (one: Validation) => number | null])[] = [
  ["training loss", (one) => one.train_loss],
  ["validation loss", (one) => one.metrics.loss ?? null],
  ["quality (BLEU)", (one) => one.metrics.bleu ?? one.metrics.chrf ?? null],
  ["alignment error", (one) => one.aer],
  ["entropy of attention, bits", (one) => one.entropy],
];

export function train(studio: Studio): ComponentChildren {
  return (
    <>
      <h2>{t("Watch attention being learned")}</h2>
      {state.value === "none" ? <Start /> : <Controls studio={studio} />}
      {problem.value !== null && (
        <p class="status bad" role="alert">
          {problem.value}
        </p>
      )}
      {validations.value.length > 0 && (
        <>
          <Film />
          <div class="curves">
            {CURVES.map(([name, value]) => (
              <Curve key={name} name={t(name)} values={validations.value.map(value)} />
            ))}
          </div>
          <details class="checks">
            <summary>{t("Every validation as a table")}</summary>
            {dataTable({
              caption: t("Validations"),
              corner: t("step"),
              columns: CURVES.map(([name]) => t(name)),
              rows: validations.value.map((one) => ({
                label: String(one.step),
                values: CURVES.map(([, value]) => value(one)),
              })),
            })}
          </details>
        </>
      )}
    </>
  );
}

function Start() {
  return (
    <div class="columns-2">
      <section class="card">
        <h3>{t("A world of sentences")}</h3>
        <p>
          {t(
            "A small translator learns invented English and French whose true word alignment is known. Its attention becomes visible within two minutes.",
          )}
        </p>
        <p class="actions">
          <button
            type="button"
            class="primary"
            id="train-world"
            onClick={() => void begin({ world: "phrases" })}
          >
            {t("Start training")}
          </button>
        </p>
      </section>
      <section class="card">
        <h3>{t("Your own sentences")}</h3>
        <label for="train-data">
          {t("Two columns separated by a tab: source and target, one pair per line")}
        </label>
        <textarea
          id="train-data"
          class="small"
          rows={4}
          value={data.value}
          onInput={(event) => {
            data.value = event.currentTarget.value;
          }}
        />
        <p class="actions">
          <input
            type="file"
            aria-label={t("File with two columns")}
            accept=".tsv,.txt,text/plain,text/tab-separated-values"
            onChange={(event) =>
              void event.currentTarget.files?.[0]?.text().then((text) => (data.value = text))
            }
          />
          <button
            type="button"
            class="primary"
            id="train-own"
            disabled={!data.value.includes("\t")}
            onClick={() => void begin({ data: data.value })}
          >
            {t("Train on them")}
          </button>
        </p>
      </section>
    </div>
  );
}

function Controls({ studio }: { readonly studio: Studio }) {
  const { step, total, loss } = progress.value;
  const states: Record<string, Text> = {
    running: "training",
    stopped: "stopped; it can go on",
    done: "done",
    failed: "failed",
  };
  return (
    <section class="train-bar" aria-label={t("Training")}>
      <progress max={total || 1} value={step} aria-label={t("Training")} />
      <span id="train-state" data-state={state.value} role="status">
        {t(states[state.value] ?? "training")}
        {total > 0 && ` · ${t("step {n} of {all}", { n: step, all: total })}`}
        {loss !== null && ` · ${t("training loss")} ${formatNumber(loss, 2)}`}
      </span>
      {state.value === "running" && (
        <button type="button" id="train-stop" onClick={() => void act("stop")}>
          {t("Stop")}
        </button>
      )}
      {state.value === "stopped" && (
        <button type="button" class="primary" id="train-resume" onClick={() => void act("resume")}>
          {t("Go on")}
        </button>
      )}
      {result.value !== null && (
        <button
          type="button"
          class="primary"
          id="train-open"
          onClick={() => void studio.reload().then(() => open(studio))}
        >
          {t("Open the trained model")}
        </button>
      )}
      {state.value !== "running" && (
        <button type="button" id="train-new" onClick={reset}>
          {t("New training")}
        </button>
      )}
    </section>
  );
}

function open(studio: Studio): void {
  const text = validations.value.at(-1)?.traces?.[0]?.source.text;
  studio.chooseModel(result.value!);
  if (text !== undefined) studio.setText(text);
  studio.show("write");
}

/** The attention of a fixed sentence at one validation. */
function Film() {
  const all = validations.value;
  const at = Math.min(frame.value ?? all.length - 1, all.length - 1);
  const shown = all[at]!;
  const trace = shown.traces?.[sentence.value];
  const table = trace === undefined ? null : pairTable(trace, pairSite(trace, null), null);
  const gold = table?.gold ?? new Set<string>();
  return (
    <section class="card film" aria-label={t("Attention over the training")}>
      <div class="selects">
        <label class="select" for="film-sentence">
          <span>{t("Sentence")}</span>
          <select
            id="film-sentence"
            value={String(sentence.value)}
            onChange={(event) => {
              sentence.value = Number(event.currentTarget.value);
            }}
          >
            {(shown.traces ?? []).map((one, i) => (
              <option value={String(i)} key={i}>
                {one.source.text}
              </option>
            ))}
          </select>
        </label>
        <label class="film-slider" for="film">
          <span>
            {t("Validation {n} of {all}, step {step}", { n: at + 1, all: all.length, step: shown.step })}
          </span>
          <input
            type="range"
            id="film"
            min={0}
            max={all.length - 1}
            value={at}
            onInput={(event) => {
              const to = Number(event.currentTarget.value);
              frame.value = to === all.length - 1 ? null : to;
            }}
          />
        </label>
      </div>
      {table === null ? (
        <p class="note">{t("The weights of this validation are no longer kept.")}</p>
      ) : (
        <div class="scroll" tabIndex={-1}>
          <table class="paint" id="film-matrix" data-step={shown.step}>
            <thead>
              <tr>
                <td />
                {table.columns.map(({ label }, j) => (
                  <th scope="col" key={j}>
                    <span>{label}</span>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {table.rows.map(({ label }, i) => (
                <tr key={i}>
                  <th scope="row">{label}</th>
                  {table.values[i]!.map((value, j) => (
                    <td
                      key={j}
                      class={gold.has(`${i},${j}`) ? "film-cell gold" : "film-cell"}
                      data-v={String(value)}
                      style={{ "--shade": `${Math.round(100 * Math.min(1, value))}%` }}
                      aria-label={formatPercent(value)}
                    />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="letters">
        {t("Move the slider to see the attention at each validation.")}
        {gold.size > 0 && ` ${t("Rings: true word alignment.")}`}
      </p>
    </section>
  );
}

const [WIDTH, HEIGHT] = [260, 96];

function Curve({ name, values }: { readonly name: string; readonly values: readonly (number | null)[] }) {
  const points = values.flatMap((value, i) =>
    value === null || !Number.isFinite(value) ? [] : [[i, value] as const],
  );
  const last = points.at(-1);
  if (last === undefined) return null;
  const amounts = points.map(([, value]) => value);
  const [low, high] = [Math.min(0, ...amounts), Math.max(...amounts)];
  const x = (i: number): number => 4 + ((WIDTH - 8) * i) / Math.max(1, values.length - 1);
  const y = (value: number): number => HEIGHT - 6 - ((HEIGHT - 12) * (value - low)) / (high - low || 1);
  const at = frame.value;
  return (
    <figure class="card curve">
      <figcaption>
        {name} <b data-v={String(last[1])}>{formatNumber(last[1], 2)}</b>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${name}: ${formatNumber(last[1], 2)}`}>
        <path class="axis" d={`M0 ${y(low)}H${WIDTH}`} />
        {at !== null && <path class="axis" d={`M${x(at)} 0V${HEIGHT}`} />}
        <path
          class="curve-line"
          d={points
            .map(([i, value], n) => `${n === 0 ? "M" : "L"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`)
            .join("")}
        />
        <circle cx={x(last[0])} cy={y(last[1])} r="3" />
      </svg>
    </figure>
  );
}

async function begin(body: Readonly<Record<string, unknown>>): Promise<void> {
  problem.value = null;
  try {
    const { id } = await postJson<{ id: string }>("/v1/train", body);
    job.value = id;
    follow();
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
}

async function act(action: "stop" | "resume"): Promise<void> {
  try {
    await postJson(`/v1/train/${job.value}/${action}`, {});
    if (action === "resume") follow();
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
}

/** Read all messages again: those of before a stop, then new ones. */
function follow(): void {
  source?.close();
  state.value = "running";
  const seen: Validation[] = [];
  source = new EventSource(`/v1/train/${job.value}/events`);
  source.onmessage = ({ data: text }: MessageEvent<string>) => {
    const message = JSON.parse(text) as Message;
    if (message.event === "validation") {
      const known = seen.findIndex(({ step }) => step >= message.step);
      if (known >= 0) seen.splice(known);
      seen.push(message);
      validations.value = [...seen];
    } else if (message.event === "start") progress.value = { ...progress.value, total: message.total };
    else if (message.event === "step")
      progress.value = { ...progress.value, step: message.step, loss: message.loss };
    else if (message.event === "failed") problem.value = message.detail;
    else if (message.event === "done") result.value = message.model;
    else if (message.event === "state" && message.state !== "running") state.value = message.state as "done";
  };
  source.onerror = () => {
    if (state.value !== "running") source?.close();
  };
}

function reset(): void {
  source?.close();
  state.value = "none";
  validations.value = [];
  frame.value = result.value = job.value = problem.value = null;
  progress.value = { step: 0, total: 0, loss: null };
}
