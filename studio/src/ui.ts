/** What every view receives: the trace, the state, and functions that change the state. */
import type { Errors } from "./check";
import type { State, View } from "./link";
import type { Arrays } from "./tensor";
import type { Timeline } from "./timeline";
import type { SiteRecord, Trace } from "./trace";

export interface Ui {
  readonly trace: Trace;
  readonly arrays: Arrays;
  readonly state: State;
  readonly timeline: Timeline;
  readonly playing: boolean;
  readonly errors: Errors | null; // null: still computing
  /** The cell of a grid that the Tab key focuses. */
  readonly focused: (grid: string) => readonly [row: number, column: number];
  readonly setState: (change: Partial<State>) => void;
  readonly play: (on: boolean) => void;
  /** Register the action for choosing a cell of a grid. */
  readonly onPick: (grid: string, action: CellAction) => void;
  /** Register a painter for a canvas, called once it is in the document. */
  readonly onPaint: (id: string, painter: Painter) => void;
  /** Force the beginning of the output and show it in a view; only where a model can be asked. */
  readonly force?: (tokens: readonly number[], view: View) => void;
}

export type CellAction = (row: number, column: number) => void;
export type Painter = (canvas: HTMLCanvasElement) => void;

/** The record of a site; without a name the alignment site's, else the first. */
export function findSite(trace: Trace, site: string | null): SiteRecord | null {
  const name = site ?? trace.alignment_site ?? trace.sites[0]?.site;
  return trace.sites.find((record) => record.site === name) ?? trace.sites[0] ?? null;
}

/**
 * The sites with one query per output token, which the Walk can follow. The queries of a language model are the words
 * that it has read, each of which predicts the next one.
 */
export const walkableSites = (trace: Trace): SiteRecord[] =>
  trace.sites.filter(
    (record) =>
      record.query_side === "target" ||
      (trace.model.task === "read" && trace.tensors[record.weights]?.shape[0] === trace.steps.length),
  );

export function findWalkableSite(trace: Trace, site: string | null): SiteRecord | null {
  const records = walkableSites(trace);
  return (
    records.find((record) => record.site === site) ??
    records.find((record) => record.site === trace.alignment_site) ??
    records[0] ??
    null
  );
}

/** The weights by (step, key), of the chosen head or the mean of all. */
export function stepWeights(ui: Ui, record: SiteRecord): number[][] {
  const head = validHead(record, ui.state.head);
  const heads = head === null ? Array.from({ length: record.heads }, (_, i) => i) : [head];
  return ui.trace.steps.map((_, step) => {
    const rows = heads.map((index) => ui.arrays.row(record.weights, step, index));
    return Array.from(rows[0]!, (_, i) => rows.reduce((sum, row) => sum + row[i]!, 0) / rows.length);
  });
}

/** The chosen head, or null (the mean) if the site does not have it. */
export function validHead(record: SiteRecord, head: number | null): number | null {
  return head === null || head >= record.heads ? null : head;
}
