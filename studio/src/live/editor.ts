/** What the bars and the table of What-if change: the weights of one site, by words. */
import { signal } from "@preact/signals-core";
import { readable } from "../format";
import { positionAt, tickAt } from "../timeline";
import type { SiteRecord } from "../trace";
import { findSite, validHead, type Ui } from "../ui";
import { setWordWeight, wordGroups, type WordGroup } from "./edits";
import { pairSite } from "./pair";
import type { Studio } from "./store";

export interface Editor {
  readonly studio: Studio;
  readonly ui: Ui;
  readonly record: SiteRecord;
  readonly head: number | null; // null: all heads
  readonly site: string | null; // null: the only one
  readonly queries: readonly WordGroup[];
  readonly keys: readonly WordGroup[];
  readonly row: number; // of the chosen query
  readonly query: WordGroup;
  readonly choose: (row: number) => void;
  /** The weights of a query, by key. */
  readonly values: (row: number) => number[];
  /** Whether a query may read a key. */
  readonly allowed: (row: number, column: number) => boolean;
  readonly setWeight: (row: number, positions: readonly number[], value: number, drag: boolean) => void;
}

const inputRow = signal(0); // the chosen query of a site whose queries are input words

/** The site that is edited; by default the one over the input. */
export const editedSite = (ui: Ui): SiteRecord | null =>
  (ui.state.site === null ? pairSite(ui.trace, null) : null) ?? findSite(ui.trace, ui.state.site);

export function makeEditor(studio: Studio, ui: Ui): Editor | null {
  const { trace, state, timeline, arrays } = ui;
  const record = editedSite(ui);
  if (record === null) return null;
  const show = trace.model.task === "classify" ? readable : (text: string): string => text;
  const queries = wordGroups(trace[record.query_side]).map((one) => ({ ...one, text: show(one.text) }));
  const keys = wordGroups(trace[record.key_side]);
  const byStep = record.query_side === "target";
  const { step } = positionAt(timeline, state.tick);
  const found = byStep
    ? queries.findIndex(({ positions }) => positions.includes(step))
    : Math.min(inputRow.value, queries.length - 1);
  const row = Math.max(0, found);
  const query = queries[row];
  if (query === undefined) return null;
  const head = validHead(record, state.head);
  const heads = head === null ? Array.from({ length: record.heads }, (_, i) => i) : [head];
  const weight = (at: number, position: number): number =>
    heads.reduce((sum, one) => sum + (arrays.row(record.weights, at, one)[position] ?? 0), 0) / heads.length;
  const site = trace.sites.length > 1 ? record.site : null;
  const causal = record.kind === "self" && byStep;
  return {
    studio,
    ui,
    record,
    head,
    site,
    queries,
    keys,
    row,
    query,
    choose: (to) => {
      if (byStep) ui.setState({ tick: tickAt(timeline, queries[to]!.positions[0]!, 1) });
      else inputRow.value = to;
    },
    values: (of) => {
      const steps = queries[of]!.positions;
      return keys.map(
        ({ positions }) =>
          steps.reduce((sum, at) => sum + positions.reduce((all, key) => all + weight(at, key), 0), 0) /
          steps.length,
      );
    },
    allowed: (of, column) => !causal || keys[column]!.positions[0]! <= queries[of]!.positions[0]!,
    setWeight: (of, positions, value, drag) => {
      const steps = queries[of]!.positions;
      const weights = steps.map((at) => positions.map((key) => weight(at, key)));
      const edits = setWordWeight(studio.edits.value, { site, head, steps, positions, weights }, value);
      studio.apply({ edits }, drag);
    },
  };
}
