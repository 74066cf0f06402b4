/** The attention of fixed sentences at every validation of a training: with a slider, played, or saved. */
import { signal } from "@preact/signals-core";
import { formatPercent } from "../format";
import { t } from "../i18n";
import { send } from "./api";
import { pairSite, pairTable } from "./pair";
import { download } from "./save";
import { frame, job, problem, sentence, shownFrame, validations } from "./training";

const FRAME = 400; // milliseconds
const playing = signal(false);
const saving = signal(false);
let timer: number | undefined;

function play(on: boolean): void {
  clearInterval(timer);
  playing.value = on;
  if (!on) return;
  if (shownFrame.value === validations.value.length - 1) frame.value = 0;
  timer = window.setInterval(() => {
    const next = shownFrame.value + 1;
    if (next < validations.value.length - 1) frame.value = next;
    else {
      frame.value = null;
      play(false);
    }
  }, FRAME);
}

async function save(): Promise<void> {
  saving.value = true;
  try {
    const response = await send(`/v1/train/${job.value}/animation?sentence=${sentence.value}`);
    download(await response.blob(), "heedful-training.gif");
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
  saving.value = false;
}

/** The attention of a fixed sentence at one validation. */
export function Film() {
  const all = validations.value;
  const at = shownFrame.value;
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
              play(false);
              frame.value = to === all.length - 1 ? null : to;
            }}
          />
        </label>
        <button type="button" id="film-play" disabled={all.length < 2} onClick={() => play(!playing.value)}>
          {playing.value ? t("Pause") : t("Play")}
        </button>
        <button type="button" id="film-save" disabled={saving.value} onClick={() => void save()}>
          {saving.value ? t("Working …") : t("Save as animation (GIF)")}
        </button>
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
