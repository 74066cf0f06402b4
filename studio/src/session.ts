/** What is shown: a trace, the state of its view, and the recomputed numbers. All are signals. */
import { batch, computed, signal, type Signal } from "@preact/signals-core";
import { mergeErrors, NO_ERRORS, queryErrors, type Errors } from "./check";
import { availableViews, formatLink, initialState, validState, type State, type View } from "./link";
import { Arrays } from "./tensor";
import { firstTick, lastTick, tickDelay, type Timeline } from "./timeline";
import type { Trace } from "./trace";
import { walkableSites, type CellAction, type Painter, type Ui } from "./ui";

const RECOMPUTE_MILLISECONDS = 30; // between two pauses

type Cell = readonly [row: number, column: number];

export const timelineOf = (trace: Trace): Timeline => ({
  steps: trace.steps.length,
  stages: walkableSites(trace).length > 0 ? 5 : 1,
});

export class Session {
  readonly trace: Signal<Trace>;
  readonly state: Signal<State>;
  readonly errors = signal<Errors | null>(null); // null: still computing
  readonly playing = signal(false);
  readonly focused = signal<ReadonlyMap<string, Cell>>(new Map());
  readonly timeline = computed(() => timelineOf(this.trace.value));
  readonly painters = new Map<string, Painter>();
  readonly picks = new Map<string, CellAction>();
  private readonly arrays = computed(() => new Arrays(this.trace.value));
  private timer: number | undefined;

  /** `address` writes the state to the address of the page. */
  constructor(
    trace: Trace,
    start: string,
    private readonly address: (link: string, push: boolean) => void,
    private readonly views: (trace: Trace) => readonly View[] = availableViews,
  ) {
    this.trace = signal(trace);
    this.state = signal(initialState(start, trace, this.timeline.value, views(trace)));
  }

  /** Show another trace, with as much of the state as it has. */
  show(trace: Trace): void {
    this.play(false);
    batch(() => {
      this.trace.value = trace;
      this.errors.value = null;
      this.state.value = validState(this.state.value, trace, this.timeline.value, this.views(trace));
    });
    void this.recompute();
  }

  /** Whether the trace has this view. */
  has(view: View): boolean {
    return this.views(this.trace.value).includes(view);
  }

  open(link: string): void {
    const trace = this.trace.value;
    this.state.value = initialState(link, trace, this.timeline.value, this.views(trace));
  }

  readonly setState = (change: Partial<State>): void => {
    const before = this.state.value;
    const trace = this.trace.value;
    const after = validState({ ...before, ...change }, trace, this.timeline.value, this.views(trace));
    this.address(formatLink(after), before.view !== after.view);
    this.state.value = after;
  };

  /** Recompute the numbers of the trace, with pauses, so that the page stays responsive. */
  async recompute(): Promise<void> {
    const trace = this.trace.value;
    const arrays = this.arrays.value;
    let errors = NO_ERRORS;
    let pause = 0;
    for (const record of trace.sites) {
      const queries = trace.tensors[record.weights]!.shape[0]!;
      for (let query = 0; query < queries; query++) {
        if (performance.now() >= pause) {
          await new Promise((done) => setTimeout(done));
          pause = performance.now() + RECOMPUTE_MILLISECONDS;
        }
        if (this.trace.value !== trace) return;
        errors = mergeErrors(errors, queryErrors(trace, arrays, record, query));
      }
    }
    this.errors.value = errors;
  }

  readonly play = (on: boolean): void => {
    clearTimeout(this.timer);
    this.playing.value = on;
    if (!on) return;
    const { tick } = this.state.value;
    if (tick === lastTick(this.timeline.value) || tick === firstTick(this.timeline.value))
      this.setState({ tick: 0 });
    this.scheduleTick();
  };

  private scheduleTick(): void {
    this.timer = window.setTimeout(() => {
      this.setState({ tick: this.state.value.tick + 1 });
      if (this.state.value.tick === lastTick(this.timeline.value)) this.play(false);
      else this.scheduleTick();
    }, tickDelay(this.state.value.speed));
  }

  focus(grid: string, cell: Cell): void {
    this.focused.value = new Map(this.focused.value).set(grid, cell);
  }

  /** What views receive; they register painters and actions while they are drawn. */
  ui(): Ui {
    this.painters.clear();
    this.picks.clear();
    const focused = this.focused.value;
    return {
      trace: this.trace.value,
      arrays: this.arrays.value,
      state: this.state.value,
      timeline: this.timeline.value,
      playing: this.playing.value,
      errors: this.errors.value,
      focused: (grid) => focused.get(grid) ?? [0, 0],
      setState: this.setState,
      play: this.play,
      onPick: (grid, pick) => this.picks.set(grid, pick),
      onPaint: (id, painter) => this.painters.set(id, painter),
    };
  }
}
