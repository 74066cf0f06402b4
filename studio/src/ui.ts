/** What every view is given: the trace, what is asked for, and a way to ask for something else. */
import type { Verdict } from "./check";
import type { State } from "./link";
import type { Arrays } from "./tensor";
import type { Line } from "./tick";
import type { Looks, Trace } from "./trace";

export interface Ui {
  readonly trace: Trace;
  readonly arrays: Arrays;
  readonly state: State;
  readonly line: Line;
  readonly playing: boolean;
  readonly verdict: Verdict | null; // null: still computing
  /** The cell of a grid that the Tab key reaches. */
  readonly focused: (grid: string) => readonly [row: number, column: number];
  readonly go: (change: Partial<State>) => void;
  readonly play: (on: boolean) => void;
  /** What choosing a cell of a grid does. */
  readonly picks: (grid: string, pick: Pick) => void;
  /** What is to be painted on a canvas once it is in the document. */
  readonly paint: (id: string, painter: Painter) => void;
}

export type Pick = (row: number, column: number) => void;
export type Painter = (canvas: HTMLCanvasElement) => void;

export function looksOf(trace: Trace, site: string | null): Looks | null {
  const wanted = site ?? trace.alignment ?? trace.sites[0]?.site;
  return trace.sites.find((looks) => looks.site === wanted) ?? trace.sites[0] ?? null;
}

/** Sites that are asked once for every output token: those the Walk can follow. */
export const walkable = (trace: Trace): Looks[] => trace.sites.filter((looks) => looks.asks === "target");

export function walked(trace: Trace, site: string | null): Looks | null {
  const known = walkable(trace);
  return (
    known.find((looks) => looks.site === site) ??
    known.find((looks) => looks.site === trace.alignment) ??
    known[0] ??
    null
  );
}

/** (step, position), of the chosen head or the mean of all. */
export function meanWeights(ui: Ui, looks: Looks): number[][] {
  const head = headOf(looks, ui.state.head);
  const heads = head === null ? Array.from({ length: looks.heads }, (_, i) => i) : [head];
  return ui.trace.steps.map((_, step) => {
    const rows = heads.map((one) => ui.arrays.row(looks.weight, step, one));
    return Array.from(rows[0]!, (_, i) => rows.reduce((sum, row) => sum + row[i]!, 0) / rows.length);
  });
}

export function headOf(looks: Looks, head: number | null): number | null {
  return head === null || head >= looks.heads ? null : head;
}
