/** Train: watch the curves of a training, and the attention of fixed sentences at every validation. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { dataTable } from "../figures/table";
import { formatNumber } from "../format";
import { t, type Text } from "../i18n";
import { Film } from "./film";
import type { Studio } from "./store";
import { act, attach, begin, frame, problem, progress, reset, result, state, validations } from "./training";
import type { Validation } from "./training";

const DIRECTIONS = ["en-fr", "fr-en", "en-vi", "vi-en", "fr-vi", "vi-fr"] as const;
const languages = signal<string>("en-fr");

const CURVES: readonly (readonly [Text, (one: Validation) => number | null])[] = [
  ["training loss", (one) => one.train_loss],
  ["validation loss", (one) => one.metrics.loss ?? null],
  ["quality (BLEU)", (one) => one.metrics.bleu ?? one.metrics.chrf ?? null],
  ["alignment error", (one) => one.aer],
  ["entropy of attention, bits", (one) => one.entropy],
];

export function train(studio: Studio): ComponentChildren {
  void attach();
  return (
    <>
      <h2>{t("Watch attention being learned")}</h2>
      {state.value === "none" ? <Start studio={studio} /> : <Controls studio={studio} />}
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

function Start({ studio }: { readonly studio: Studio }) {
  const data = studio.texts.value.train ?? "";
  const pairs = data.split("\n").filter((line) => line.includes("\t")).length;
  return (
    <div class="columns-2">
      <section class="card">
        <h3>{t("A world of sentences")}</h3>
        <p>
          {t(
            "A small translator learns an invented world whose true word alignment is known. Its attention becomes visible within two minutes.",
          )}
        </p>
        <div class="actions">
          <label class="select" for="world-languages">
            <span>{t("Languages")}</span>
            <select
              id="world-languages"
              value={languages.value}
              onChange={(event) => (languages.value = event.currentTarget.value)}
            >
              {DIRECTIONS.map((one) => (
                <option value={one} key={one}>
                  {one.replace("-", " → ")}
                </option>
              ))}
            </select>
          </label>
          <button
            type="button"
            class="primary"
            id="train-world"
            onClick={() => void begin({ world: "phrases", languages: languages.value })}
          >
            {t("Start training")}
          </button>
        </div>
      </section>
      <section class="card">
        <h3>{t("Your own sentences")}</h3>
        <label for="train-data">
          {t("Two columns separated by a tab: source and target, one pair per line")}
        </label>
        <textarea
          id="train-data"
          class="small"
          rows={5}
          value={data}
          placeholder={"the cat sleeps\tle chat dort\nthe dog eats\tle chien mange"}
          spellcheck={false}
          onInput={(event) => studio.keepText("train", event.currentTarget.value)}
        />
        <div class="actions">
          <input
            type="file"
            id="train-file"
            aria-label={t("File with two columns")}
            accept=".tsv,.txt,text/plain,text/tab-separated-values"
            onChange={(event) =>
              void event.currentTarget.files?.[0]?.text().then((text) => studio.keepText("train", text))
            }
          />
          <button
            type="button"
            class="primary"
            id="train-own"
            disabled={pairs === 0}
            onClick={() => void begin({ data })}
          >
            {t("Train on them")}
          </button>
          <span class="letters">{pairs > 0 && t("{n} pairs", { n: pairs })}</span>
        </div>
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
