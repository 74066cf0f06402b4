/** What-if: drag a weight, and the model generates again; old and new output side by side. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { dataTable } from "../figures/table";
import { formatNumber, formatPercent } from "../format";
import { t } from "../i18n";
import { positionAt, tickAt } from "../timeline";
import type { Edit, Trace } from "../trace";
import { validHead, type Ui } from "../ui";
import { headSelect, siteLabel, siteSelect, toggleButton } from "../views/selects";
import { addEdit, formatEdit, setWordWeight, wordGroups, zeroWord, type WordGroup } from "./edits";
import { node } from "./node";
import { pairSite, pairTable } from "./pair";
import type { Studio } from "./store";

const KEY_STEP = 0.05;
const MAX_CELLS = 1600; // of the matrix that can be painted

export function whatIf(studio: Studio, ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  if (trace.sites.length === 0)
    return <p class="note">{t("This model has no attention, so there are no weights to change.")}</p>;
  const sites = trace.sites.filter(
    ({ query_side, key_side }) => query_side === "target" && key_side === "source",
  );
  const record = pairSite(trace, state.site) ?? trace.sites[0]!;
  const words = wordGroups(trace.target);
  const { step } = positionAt(ui.timeline, state.tick);
  const current = Math.max(
    0,
    words.findIndex(({ positions }) => positions.includes(step)),
  );
  return (
    <>
      <div class="selects">
        {node(siteSelect(ui, sites, record))}
        {node(headSelect(ui, record, true))}
        <span class="group" role="group" aria-label={t("History of changes")}>
          <button
            type="button"
            id="undo"
            disabled={studio.done.value.length === 0}
            onClick={() => studio.undo()}
          >
            ↶ {t("Undo")}
          </button>
          <button
            type="button"
            id="redo"
            disabled={studio.undone.value.length === 0}
            onClick={() => studio.redo()}
          >
            ↷ {t("Redo")}
          </button>
          <button
            type="button"
            id="reset"
            disabled={studio.edits.value.length === 0}
            onClick={() => studio.apply({ edits: [] })}
          >
            {t("Start over")}
          </button>
        </span>
        {toggleButton("table", t("table"), state.table, "T", (on) => ui.setState({ table: on }))}
      </div>
      <Sides studio={studio} ui={ui} words={words} current={current} />
      <div class="columns-2 editor">
        {bars(studio, ui, words, current)}
        {matrix(studio, ui, words, current)}
      </div>
      {edits(studio)}
    </>
  );
}

interface SideProps {
  readonly studio: Studio;
  readonly ui: Ui;
  readonly words: readonly WordGroup[];
  readonly current: number;
}

/** The output before and after, with the words that changed. */
function Sides({ studio, ui, words, current }: SideProps): ComponentChildren {
  const { trace } = ui;
  const before = studio.before.value ?? trace;
  const edited = studio.edits.value.length > 0;
  const old = wordGroups(before.target).map(({ text }) => text);
  const now = words.map(({ text }) => text);
  const changed = changedWords(old, now);
  const same = before.target.text === trace.target.text;
  return (
    <section class="sides-output" aria-label={t("Output before and after the change")}>
      <p class="side-label">{t("original")}</p>
      <p class="line" id="before" dir="auto">
        {before.target.text}
      </p>
      <p class="side-label">{t("now")}</p>
      <p class={same ? "line" : "line new"} id="after" dir="auto">
        {words.map((word, i) => (
          <button
            type="button"
            key={i}
            class={`chip${changed.has(i) ? " changed" : ""}${word.special ? " special" : ""}`}
            aria-pressed={i === current}
            onClick={() => ui.setState({ tick: tickAt(ui.timeline, word.positions[0]!, 1) })}
          >
            {word.text}
          </button>
        ))}
      </p>
      <p class="verdict" id="verdict" role="status" data-changed={String(edited && !same)}>
        {verdict(studio, edited, same, changed.size)}
      </p>
    </section>
  );
}

function verdict(studio: Studio, edited: boolean, same: boolean, n: number): ComponentChildren {
  if (!edited)
    return t(
      "Choose a word of the output, then drag one of its bars: the model writes again with your weight.",
    );
  if (studio.busy.value) return t("Working …");
  if (same) return t("The output stays the same with your weights.");
  return n === 1 ? t("Your weights changed 1 word.") : t("Your weights changed {n} words.", { n });
}

/** Positions of words of `now` outside the longest common subsequence with `old`. */
export function changedWords(old: readonly string[], now: readonly string[]): Set<number> {
  const length = old.map(() => new Array<number>(now.length + 1).fill(0));
  length.push(new Array<number>(now.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      length[i]![j] =
        old[i] === now[j] ? length[i + 1]![j + 1]! + 1 : Math.max(length[i + 1]![j]!, length[i]![j + 1]!);
  const changed = new Set<number>();
  let [i, j] = [0, 0];
  while (j < now.length) {
    if (i < old.length && old[i] === now[j]) [i, j] = [i + 1, j + 1];
    else if (i < old.length && length[i + 1]![j]! >= length[i]![j + 1]!) i++;
    else changed.add(j++);
  }
  return changed;
}

/** The weights of one output word as bars that can be dragged. */
function bars(studio: Studio, ui: Ui, words: readonly WordGroup[], current: number): ComponentChildren {
  const { trace, state } = ui;
  const record = pairSite(trace, state.site);
  const word = words[current];
  if (record === null || word === undefined)
    return <p class="note">{t("The weights of this site cannot be changed here.")}</p>;
  const head = validHead(record, state.head);
  const weightsAt = weights(ui, record.site, head);
  const site = trace.sites.length > 1 ? record.site : null;
  const steps = word.positions;
  const set = (positions: readonly number[], value: number, drag: boolean): void => {
    wished.value = { trace, row: current, positions, value };
    const now = steps.map((step) => positions.map((position) => weightsAt(step)[position] ?? 0));
    studio.apply(
      { edits: setWordWeight(studio.edits.value, { site, head, steps, positions, weights: now }, value) },
      drag,
    );
  };
  const everywhere = (edit: Omit<Edit, "step">): void => {
    const all = steps.reduce<Edit[]>(
      (result, step) =>
        addEdit(result, {
          ...edit,
          ...(site === null ? {} : { site }),
          ...(head === null ? {} : { head }),
          step,
        } as Edit),
      [...studio.edits.value],
    );
    studio.apply({ edits: all });
  };
  const inputs = wordGroups(trace.source);
  const recorded = inputs.map(
    ({ positions }) =>
      steps.reduce(
        (sum, step) => sum + positions.reduce((a, position) => a + (weightsAt(step)[position] ?? 0), 0),
        0,
      ) / steps.length,
  );
  const values = withWish(recorded, inputs, trace, current);
  const start = studio.edits.value.length === 0;
  const least = suggestion(values, inputs);
  return (
    <section class="card" aria-labelledby="bars-title">
      <h3 id="bars-title">{t("Where “{word}” looks", { word: word.text })}</h3>
      <div
        class="drag-bars"
        role="group"
        aria-label={t("Weights, one per {noun}", { noun: t("input word") })}
      >
        {inputs.map(({ text, positions }, i) => (
          <Bar
            key={i}
            name={text}
            value={values[i]!}
            hint={start && i === least}
            set={(value, drag) => set(positions, value, drag)}
            zero={() => studio.apply({ edits: zeroWord(studio.edits.value, site, positions) })}
          />
        ))}
      </div>
      <p class="actions">
        <button type="button" onClick={() => everywhere({ op: "uniform" } as Edit)} id="uniform">
          {t("Look everywhere equally")}
        </button>
        {start && inputs[least] !== undefined && (
          <button
            type="button"
            class="primary"
            id="surprise"
            onClick={() => set(inputs[least]!.positions, 1, false)}
          >
            {t("Try it: look only at “{word}”", { word: inputs[least].text })}
          </button>
        )}
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
        )}
      </p>
    </section>
  );
}

/** What was just dragged: shown at once, until the model has answered. */
const wished = signal<{
  readonly trace: Trace;
  readonly row: number;
  readonly positions: readonly number[];
  readonly value: number;
} | null>(null);

function withWish(
  values: readonly number[],
  inputs: readonly WordGroup[],
  trace: Trace,
  row: number,
): number[] {
  const wish = wished.value;
  if (wish === null || wish.trace !== trace || wish.row !== row) return [...values];
  const at = inputs.findIndex(({ positions }) => positions[0] === wish.positions[0]);
  const scale = (values[at] ?? 0) < 1 ? (1 - wish.value) / (1 - (values[at] ?? 0)) : 0;
  return values.map((value, i) => (i === at ? wish.value : value * scale));
}

/** The input word whose choice would surprise: with a small weight, not the end, and as long as possible. */
function suggestion(values: readonly number[], inputs: readonly WordGroup[]): number {
  const scores = values.map((value, i) =>
    inputs[i]!.special || value > 0.3 || !/\p{L}{2}/u.test(inputs[i]!.text) ? -1 : inputs[i]!.text.length,
  );
  return scores.indexOf(Math.max(...scores));
}

function weights(ui: Ui, site: string, head: number | null): (step: number) => number[] {
  const record = ui.trace.sites.find((one) => one.site === site)!;
  const heads = head === null ? Array.from({ length: record.heads }, (_, i) => i) : [head];
  return (step) => {
    const rows = heads.map((index) => ui.arrays.row(record.weights, step, index));
    return Array.from(rows[0]!, (_, i) => rows.reduce((sum, row) => sum + row[i]!, 0) / rows.length);
  };
}

interface BarProps {
  readonly name: string;
  readonly value: number;
  readonly hint: boolean;
  readonly set: (value: number, drag: boolean) => void;
  readonly zero: () => void;
}

function Bar({ name, value, hint, set, zero }: BarProps) {
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
      >
        <span class="fill" style={{ width: `${100 * Math.min(1, value)}%` }} />
        <span class="grip" style={{ left: `${100 * Math.min(1, value)}%` }} />
      </div>
      <span class="n">{formatNumber(value, 2)}</span>
      <button
        type="button"
        class="zero"
        onClick={zero}
        title={t("No weight on “{word}” in any step", { word: name })}
      >
        <span aria-hidden="true">0</span>
        <span class="visually-hidden">{t("No weight on “{word}” in any step", { word: name })}</span>
      </button>
    </div>
  );
}

const painting = { value: null as number | null };

/** All weights; pressing a cell gives it everything, moving on paints more cells. */
function matrix(studio: Studio, ui: Ui, words: readonly WordGroup[], current: number): ComponentChildren {
  const { trace, state } = ui;
  const record = pairSite(trace, state.site);
  const head = record === null ? null : validHead(record, state.head);
  const table = pairTable(trace, record, head);
  if (record === null || table === null || table.values.length * (table.values[0]?.length ?? 0) > MAX_CELLS)
    return null;
  const rowWords = words.filter(({ special }) => !special);
  const weightsAt = weights(ui, record.site, head);
  const site = trace.sites.length > 1 ? record.site : null;
  const paint = (row: number, column: number, drag: boolean): void => {
    const [steps, positions] = [rowWords[row]?.positions, table.columns[column]?.positions];
    if (steps === undefined || positions === undefined || painting.value === null) return;
    const now = steps.map((step) => positions.map((position) => weightsAt(step)[position] ?? 0));
    const value = painting.value;
    studio.apply(
      { edits: setWordWeight(studio.edits.value, { site, head, steps, positions, weights: now }, value) },
      drag,
    );
  };
  const start = (row: number, column: number): void => {
    painting.value = (table.values[row]?.[column] ?? 0) > 0.5 ? 0 : 1;
    paint(row, column, false);
  };
  const editedRows = new Set(
    studio.edits.value.flatMap(({ step }) =>
      step == null ? [] : [rowWords.findIndex(({ positions }) => positions.includes(step))],
    ),
  );
  return (
    <section class="card" aria-labelledby="paint-title">
      <h3 id="paint-title">{t("All weights: paint")}</h3>
      <div
        class="scroll"
        tabIndex={-1}
        onPointerUp={() => (painting.value = null)}
        onPointerLeave={() => (painting.value = null)}
      >
        <table class="paint">
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
              <tr key={i} class={i === rowIndex(rowWords, words, current) ? "current" : undefined}>
                <th scope="row" dir="auto">
                  {editedRows.has(i) ? "✎ " : ""}
                  {label}
                </th>
                {table.values[i]!.map((value, j) => (
                  <td key={j}>
                    <button
                      type="button"
                      class="cell-button"
                      tabIndex={i === 0 && j === 0 ? 0 : -1}
                      data-cell={`${i}.${j}`}
                      data-v={String(value)}
                      aria-label={`${label}, ${table.columns[j]!.label}: ${t("weight")} ${formatNumber(value, 2)}`}
                      style={{ "--shade": `${Math.round(100 * Math.min(1, value))}%` }}
                      onPointerDown={(event) => {
                        event.currentTarget.releasePointerCapture(event.pointerId);
                        start(i, j);
                      }}
                      onPointerEnter={() => paint(i, j, true)}
                      onKeyDown={(event) => moveCell(event, () => start(i, j))}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="letters">
        {t(
          "Press a cell to give it all of the weight, or none if it has most; keep pressing and move to paint more.",
        )}
      </p>
      {state.table &&
        dataTable({
          caption: `${siteLabel(record)}: ${t("weight")}`,
          corner: t("output word"),
          columns: table.columns.map(({ label }) => label),
          rows: table.rows.map(({ label }, i) => ({ label, values: table.values[i]! })),
        })}
    </section>
  );
}

const rowIndex = (rowWords: readonly WordGroup[], words: readonly WordGroup[], current: number): number =>
  rowWords.indexOf(words[current]!);

/** Arrow keys move between the cells of the table; Enter and Space press one. */
function moveCell(event: KeyboardEvent & { currentTarget: HTMLElement }, press: () => void): void {
  const [row, column] = (event.currentTarget.dataset.cell ?? "0.0").split(".").map(Number) as [
    number,
    number,
  ];
  const moves: Record<string, readonly [number, number]> = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
  };
  const move = moves[event.key];
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    press();
    painting.value = null;
  } else if (move !== undefined) {
    event.preventDefault();
    event.stopPropagation();
    const table = event.currentTarget.closest("table");
    table?.querySelector<HTMLElement>(`[data-cell="${move[0]}.${move[1]}"]`)?.focus();
  }
}

/** The edits as the command line writes them; each can be taken back. */
function edits(studio: Studio): ComponentChildren {
  const all = studio.edits.value;
  if (all.length === 0) return null;
  const remove = (edit: Edit): void =>
    studio.apply({ edits: studio.edits.value.filter((one) => one !== edit) });
  return (
    <section class="edit-list" aria-label={t("Your changes")}>
      <h3>{t("Your changes")}</h3>
      <ul>
        {all.map((edit) => (
          <li key={formatEdit(edit)}>
            <code>--set {formatEdit(edit)}</code>
            <button
              type="button"
              aria-label={t("Take back {edit}", { edit: formatEdit(edit) })}
              onClick={() => remove(edit)}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <p class="letters">
        {t("The address of this page has them all: copy it to share what you see.")} <CopyLink />
      </p>
    </section>
  );
}

function CopyLink() {
  return (
    <button
      type="button"
      id="copy-link"
      onClick={(event) => {
        const { currentTarget } = event;
        void navigator.clipboard?.writeText(location.href).then(() => {
          currentTarget.dataset.copied = "";
        });
      }}
    >
      {t("Copy the link")}
    </button>
  );
}
