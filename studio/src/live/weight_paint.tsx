/** All weights of a site as a table whose cells can be painted. */
import type { ComponentChildren } from "preact";
import { dataTable } from "../figures/table";
import { formatNumber } from "../format";
import { t } from "../i18n";
import { capitalize } from "../format";
import { siteNouns } from "../nouns";
import { siteLabel } from "../views/selects";
import type { Editor } from "./editor";

const MAX_CELLS = 1600; // of a table that can be painted

const painting = { value: null as number | null };

/** Pressing a cell gives it everything, or nothing; moving on paints more cells. */
export function matrix(editor: Editor): ComponentChildren {
  const { studio, queries, keys, record } = editor;
  const { trace, state } = editor.ui;
  const shown = queries.map((query, row) => ({ ...query, row })).filter(({ special }) => !special);
  const columns = keys.map((key, column) => ({ ...key, column })).filter(({ special }) => !special);
  if (shown.length * columns.length > MAX_CELLS || columns.length === 0)
    return <p class="note">{t("This input is too long to paint; its weights can be dragged as bars.")}</p>;
  const values = queries.map((_, row) => editor.values(row));
  const paint = (row: number, column: number, drag: boolean): void => {
    if (painting.value === null || !editor.allowed(row, column)) return;
    editor.setWeight(row, keys[column]!.positions, painting.value, drag);
  };
  const start = (row: number, column: number): void => {
    painting.value = values[row]![column]! > 0.5 ? 0 : 1;
    paint(row, column, false);
  };
  const edited = (positions: readonly number[]): boolean =>
    studio.edits.value.some(
      ({ step, site }) => step != null && positions.includes(step) && (site == null || site === record.site),
    );
  const { query, key } = siteNouns(trace, record);
  return (
    <section class="card" aria-labelledby="paint-title">
      <h3 id="paint-title">{t("All weights: paint")}</h3>
      <div
        class="scroll"
        tabIndex={-1}
        onPointerUp={() => (painting.value = null)}
        onPointerLeave={() => (painting.value = null)}
      >
        <table
          class="paint"
          aria-label={t("Attention of each {query} to the {keys}", { query: query[0], keys: key[1] })}
        >
          <thead>
            <tr>
              <td class="axis-title">
                {capitalize(query[0])} ↓ {key[0]} →
              </td>
              {columns.map(({ text, column }) => (
                <th scope="col" key={column}>
                  <span dir="auto">{text}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ text, row, positions }, i) => (
              <tr key={row} class={row === editor.row ? "current" : undefined}>
                <th scope="row" dir="auto">
                  <button type="button" class="row-button" tabIndex={-1} onClick={() => editor.choose(row)}>
                    {edited(positions) && (
                      <span class="pencil" aria-hidden="true">
                        ✎
                      </span>
                    )}
                    {text}
                  </button>
                </th>
                {columns.map(({ column, text: name }, j) => (
                  <td key={column}>
                    <button
                      type="button"
                      class="cell-button"
                      tabIndex={i === 0 && j === 0 ? 0 : -1}
                      disabled={!editor.allowed(row, column)}
                      data-cell={`${i}.${j}`}
                      data-v={String(values[row]![column]!)}
                      aria-label={`${text}, ${name}: ${t("weight")} ${formatNumber(values[row]![column]!, 2)}`}
                      title={`${text} → ${name}: ${values[row]![column]!.toFixed(2)}`}
                      style={{ "--shade": `${Math.round(100 * Math.min(1, values[row]![column]!))}%` }}
                      onPointerDown={(event) => {
                        event.currentTarget.releasePointerCapture(event.pointerId);
                        start(row, column);
                      }}
                      onPointerEnter={() => paint(row, column, true)}
                      onKeyDown={(event) =>
                        moveCell(event, () => {
                          start(row, column);
                          painting.value = null;
                        })
                      }
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
          corner: query[0],
          columns: keys.map(({ text }) => text),
          rows: queries.map(({ text }, row) => ({ label: text, values: values[row]! })),
        })}
    </section>
  );
}

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
  } else if (move !== undefined) {
    event.preventDefault();
    event.stopPropagation();
    const table = event.currentTarget.closest("table");
    table?.querySelector<HTMLElement>(`[data-cell="${move[0]}.${move[1]}"]`)?.focus();
  }
}
