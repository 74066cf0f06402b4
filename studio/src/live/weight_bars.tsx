/** The weights of one query as bars that can be dragged. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { formatPercent } from "../format";
import { t } from "../i18n";
import { siteNouns } from "../nouns";
import type { Edit, Trace } from "../trace";
import { addEdit, zeroWord, type WordGroup } from "./edits";
import type { Editor } from "./editor";

const KEY_STEP = 0.05;

export function bars(editor: Editor): ComponentChildren {
  const { studio, record, head, keys, row, query } = editor;
  const { trace } = editor.ui;
  const set = (positions: readonly number[], value: number, drag: boolean): void => {
    wished.value = { row, positions, value, trace: null };
    editor.setWeight(row, positions, value, drag);
  };
  const release = (): void => {
    if (wished.value?.trace === null)
      wished.value = { ...wished.value, trace: studio.session.value?.trace.value };
  };
  const values = withWish(editor.values(row), keys, trace, row);
  const start = studio.edits.value.length === 0;
  const least = suggestion(values, keys);
  return (
    <section class="card" aria-labelledby="bars-title">
      <h3 id="bars-title">{t("Where “{word}” looks", { word: query.text })}</h3>
      <div
        class="drag-bars"
        role="group"
        aria-label={t("Weights, one per {noun}", { noun: siteNouns(trace, record).key[0] })}
      >
        {keys.map(({ text, positions }, i) => (
          <Bar
            key={i}
            name={text}
            value={values[i]!}
            hint={start && i === least}
            set={(value, drag) => set(positions, value, drag)}
            release={release}
            zero={() => studio.apply({ edits: zeroWord(studio.edits.value, editor.site, positions) })}
          />
        ))}
      </div>
      <p class="actions">
        {start && keys[least] !== undefined && (
          <button
            type="button"
            class="primary"
            id="surprise"
            onClick={() => {
              set(keys[least]!.positions, 1, false);
              release();
            }}
          >
            {t("Try it: look only at “{word}”", { word: keys[least].text })}
          </button>
        )}
        <button type="button" onClick={() => everywhere(editor)} id="uniform">
          {t("Look everywhere equally")}
        </button>
        {record.heads > 1 && head !== null && (
          <button
            type="button"
            id="mask-head"
            onClick={() =>
              studio.apply({
                edits: addEdit(studio.edits.value, { op: "mask-head", site: record.site, head } as Edit),
              })
            }
          >
            {t("Mask head {head}", { head })}
          </button>
        )}
      </p>
      <p class="letters">
        {t(
          "Drag a bar, or focus it and press the arrow keys. The other weights are rescaled; earlier words stay, later ones are written again.",
        )}{" "}
        {record.heads > 1 && head === null && t("To mask a head, choose it above.")}
      </p>
    </section>
  );
}

function everywhere({ studio, site, head, query }: Editor): void {
  const where = { ...(site === null ? {} : { site }), ...(head === null ? {} : { head }) };
  studio.apply({
    edits: query.positions.reduce<Edit[]>(
      (all, step) => addEdit(all, { op: "uniform", ...where, step } as Edit),
      [...studio.edits.value],
    ),
  });
}

/** What was just dragged is shown at once: while it is held (no trace), then until the model has answered. */
const wished = signal<{
  readonly row: number;
  readonly positions: readonly number[];
  readonly value: number;
  readonly trace: Trace | null | undefined;
} | null>(null);

function withWish(
  values: readonly number[],
  keys: readonly WordGroup[],
  trace: Trace,
  row: number,
): number[] {
  const wish = wished.value;
  if (wish === null || wish.row !== row || (wish.trace !== null && wish.trace !== trace)) return [...values];
  const at = keys.findIndex(({ positions }) => positions[0] === wish.positions[0]);
  const scale = (values[at] ?? 0) < 1 ? (1 - wish.value) / (1 - (values[at] ?? 0)) : 0;
  return values.map((value, i) => (i === at ? wish.value : value * scale));
}

/** The input word whose choice would surprise: with a small weight, not the end, and as long as possible. */
function suggestion(values: readonly number[], keys: readonly WordGroup[]): number {
  const scores = values.map((value, i) =>
    keys[i]!.special || value > 0.3 || !/\p{L}{2}/u.test(keys[i]!.text) ? -1 : keys[i]!.text.length,
  );
  return scores.indexOf(Math.max(...scores));
}

interface BarProps {
  readonly name: string;
  readonly value: number;
  readonly hint: boolean;
  readonly set: (value: number, drag: boolean) => void;
  readonly release: () => void;
  readonly zero: () => void;
}

function Bar({ name, value, hint, set, release, zero }: BarProps) {
  const at = (event: PointerEvent & { currentTarget: HTMLElement }): number => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return Math.round(100 * Math.max(0, Math.min(1, (event.clientX - left) / width))) / 100;
  };
  const key = (event: KeyboardEvent): void => {
    const values: Record<string, number> = {
      ArrowRight: value + KEY_STEP,
      ArrowUp: value + KEY_STEP,
      ArrowLeft: value - KEY_STEP,
      ArrowDown: value - KEY_STEP,
      Home: 0,
      End: 1,
      Delete: 0,
    };
    const next = values[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    set(Math.max(0, Math.min(1, Math.round(next * 100) / 100)), false);
    release();
  };
  return (
    <div class={hint ? "drag-row suggested" : "drag-row"}>
      <span class="label" dir="auto" title={name}>
        {name}
      </span>
      <div
        class="drag-track"
        role="slider"
        tabIndex={0}
        aria-label={t("Weight of “{word}”", { word: name })}
        aria-valuemin={0}
        aria-valuemax={1}
        aria-valuenow={Math.round(value * 1000) / 1000}
        aria-valuetext={formatPercent(value)}
        data-v={String(value)}
        onKeyDown={key}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          set(at(event), false);
        }}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) set(at(event), true);
        }}
        onLostPointerCapture={release}
      >
        <span class="fill" style={{ width: `${100 * Math.min(1, value)}%` }} />
        <span class="grip" style={{ left: `${100 * Math.min(1, value)}%` }} />
      </div>
      <span class="n">{value.toFixed(2)}</span>
      <button
        type="button"
        class="zero"
        onClick={zero}
        title={t("No weight on “{word}” in any step", { word: name })}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="5.5" />
          <path d="M4.2 11.8L11.8 4.2" />
        </svg>
        <span class="visually-hidden">{t("No weight on “{word}” in any step", { word: name })}</span>
      </button>
    </div>
  );
}
