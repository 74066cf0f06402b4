/** Keyboard and clicks in figures and views. */
import { batch } from "@preact/signals-core";
import { FIGURES, type View } from "./link";
import type { Session } from "./session";
import { changeSpeed, lastTick, moveSteps, positionAt, tickAt } from "./timeline";

const EDITABLE = "select,textarea,input:not([type=range])";
export const VIEW_KEYS: Readonly<Record<string, View>> = {
  w: "walk",
  a: "alignment",
  i: "what-if",
  p: "photo",
  h: "history",
  g: "heads",
  b: "beam",
  e: "write",
  c: "compare",
  l: "lesson",
  r: "train",
};

export interface KeyTarget {
  readonly root: HTMLElement;
  readonly session: () => Session | null; // null: there is no trace yet
  readonly show: (view: View) => void;
  readonly help: () => void;
}

export function listen(page: KeyTarget): void {
  document.addEventListener("keydown", (event) => key(page, event));
  page.root.addEventListener("click", (event) => click(page, event));
}

function click({ session }: KeyTarget, event: Event): void {
  const cell =
    event.target instanceof Element ? event.target.closest<HTMLElement>("[role=gridcell][data-r]") : null;
  const grid = cell?.closest<HTMLElement>("[data-grid]");
  const shown = session();
  if (cell && grid && shown) pick(shown, grid.dataset.grid!, Number(cell.dataset.r), Number(cell.dataset.c));
}

function pick(session: Session, grid: string, row: number, column: number): void {
  const action = session.picks.get(grid);
  batch(() => {
    session.focus(grid, [row, column]);
    action?.(row, column);
  });
}

function key(page: KeyTarget, event: KeyboardEvent): void {
  if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
  const target = event.target instanceof Element ? event.target : document.body;
  const session = page.session();
  if (target.closest(EDITABLE) || session === null || event.defaultPrevented) return;
  if (gridKey(session, event, target) || plainKey(page, session, event, target)) event.preventDefault();
}

/** Arrow keys move between the cells of a figure. */
function gridKey(session: Session, event: KeyboardEvent, target: Element): boolean {
  const grid = target.closest<HTMLElement>("[data-grid]");
  if (grid === null || event.shiftKey) return false;
  const [id, rows, columns] = [grid.dataset.grid!, Number(grid.dataset.rows), Number(grid.dataset.columns)];
  const cell = target.closest<HTMLElement>("[data-r]");
  const [row, column] = cell
    ? [Number(cell.dataset.r), Number(cell.dataset.c)]
    : (session.focused.value.get(id) ?? [0, 0]);
  const moves: Record<string, readonly [number, number]> = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    Home: [row, 0],
    End: [row, columns - 1],
  };
  const move = moves[event.key];
  if (event.key === "Enter") {
    if (cell) cell.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    else pick(session, id, row, column);
    return true;
  }
  if (move === undefined) return false;
  const next = [
    Math.max(0, Math.min(rows - 1, move[0])),
    Math.max(0, Math.min(columns - 1, move[1])),
  ] as const;
  session.focus(id, next);
  grid.querySelector<HTMLElement>(`[data-r="${next[0]}"][data-c="${next[1]}"]`)?.focus();
  return true;
}

function plainKey(page: KeyTarget, session: Session, event: KeyboardEvent, target: Element): boolean {
  const state = session.state.value;
  const view = VIEW_KEYS[event.key.toLowerCase()];
  const always: Record<string, () => void> = {
    "?": page.help,
    n: () => session.setState({ numbers: !state.numbers }),
    t: () => session.setState({ table: !state.table }),
    m: () => session.setState({ figure: FIGURES[(FIGURES.indexOf(state.figure) + 1) % FIGURES.length]! }),
  };
  const action =
    always[event.key.toLowerCase()] ??
    (view !== undefined && session.has(view) ? () => page.show(view) : undefined) ??
    (state.view === "walk" ? walkKey(session, event, target) : undefined);
  action?.();
  return action !== undefined;
}

function walkKey(session: Session, event: KeyboardEvent, target: Element): (() => void) | undefined {
  const timeline = session.timeline.value;
  const { tick, speed } = session.state.value;
  if (event.key === " ")
    return target.closest("button,a,summary") ? undefined : () => session.play(!session.playing.value);
  if (/^[1-5]$/.test(event.key))
    return () =>
      session.setState({ tick: tickAt(timeline, positionAt(timeline, tick).step, Number(event.key) - 1) });
  const byStep = event.shiftKey;
  const targets: Record<string, number> = {
    ArrowLeft: byStep ? moveSteps(timeline, tick, -1) : tick - 1,
    ArrowRight: byStep ? moveSteps(timeline, tick, 1) : tick + 1,
    Home: 0,
    End: lastTick(timeline),
  };
  const next = targets[event.key];
  if (next !== undefined) return () => session.setState({ tick: next });
  if (event.key === "+" || event.key === "=") return () => session.setState({ speed: changeSpeed(speed, 1) });
  if (event.key === "-") return () => session.setState({ speed: changeSpeed(speed, -1) });
  return undefined;
}
