/** The page: its state, keyboard shortcuts and drawing. */
import { mergeErrors, NO_ERRORS, queryErrors, type Errors } from "./check";
import { draw, h, type Children, type VNode } from "./dom";
import { clearHighlight, highlight } from "./highlight";
import { FIGURES, availableViews, formatLink, initialState, validState, type State, type View } from "./link";
import { provideImage } from "./regions";
import { reveal, syncScroll } from "./scroll";
import { Arrays } from "./tensor";
import {
  changeSpeed,
  firstTick,
  lastTick,
  moveSteps,
  positionAt,
  tickAt,
  tickDelay,
  type Timeline,
} from "./timeline";
import type { Trace } from "./trace";
import { walkableSites, type Painter, type CellAction, type Ui } from "./ui";
import { alignment } from "./views/alignment";
import { counterfactuals } from "./views/counterfactuals";
import { footer, header } from "./views/header";
import { help } from "./views/help";
import { history } from "./views/history";
import { photo } from "./views/photo";
import { walk } from "./views/walk";

const VIEW_LABELS: Record<View, string> = {
  walk: "Walk",
  alignment: "Alignment",
  "what-if": "What-if",
  photo: "Photo",
  history: "History",
};
export const VIEW_FUNCTIONS: Record<View, (ui: Ui) => Children> = {
  walk,
  alignment,
  "what-if": counterfactuals,
  photo,
  history,
};

const RECOMPUTE_MILLISECONDS = 30; // between two pauses

export class App {
  private readonly arrays: Arrays;
  private readonly timeline: Timeline;
  private readonly focused = new Map<string, readonly [number, number]>();
  private painters = new Map<string, Painter>();
  private picks = new Map<string, CellAction>();
  private state: State;
  private errors: Errors | null = null;
  private timer: number | undefined;

  constructor(
    private readonly root: HTMLElement,
    private readonly trace: Trace,
  ) {
    this.arrays = new Arrays(trace);
    this.timeline = { steps: trace.steps.length, stages: walkableSites(trace).length > 0 ? 5 : 1 };
    this.state = initialState(location.hash || (root.dataset.start ?? ""), trace, this.timeline);
  }

  start(): void {
    provideImage(this.root, this.trace.source);
    this.draw();
    addEventListener("hashchange", () => {
      this.state = initialState(location.hash, this.trace, this.timeline);
      this.draw();
    });
    document.addEventListener("keydown", (event) => this.key(event));
    for (const type of ["mouseover", "focusin"] as const) {
      this.root.addEventListener(type, (event) => highlight(this.root, event.target));
    }
    this.root.addEventListener("mouseleave", clearHighlight);
    syncScroll(this.root);
    this.root.addEventListener("click", (event) => this.click(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    void this.recomputeTrace();
  }

  private validState(state: State): State {
    return validState(state, this.trace, this.timeline);
  }

  /** Recompute the numbers of the trace, with pauses, so that the page stays responsive. */
  private async recomputeTrace(): Promise<void> {
    let errors = NO_ERRORS;
    let pause = 0;
    for (const record of this.trace.sites) {
      const queries = this.trace.tensors[record.weights]!.shape[0]!;
      for (let query = 0; query < queries; query++) {
        if (performance.now() >= pause) {
          await new Promise((done) => setTimeout(done));
          pause = performance.now() + RECOMPUTE_MILLISECONDS;
        }
        errors = mergeErrors(errors, queryErrors(this.trace, this.arrays, record, query));
      }
    }
    this.errors = errors;
    this.draw();
  }

  private readonly setState = (change: Partial<State>): void => {
    const before = this.state;
    this.state = this.validState({ ...before, ...change });
    this.updateAddress(before.view !== this.state.view);
    this.draw();
  };

  /** Write the state to the address; a page inside a notebook may have none. */
  private updateAddress(push: boolean): void {
    try {
      if (push) window.history.pushState(null, "", formatLink(this.state));
      else window.history.replaceState(null, "", formatLink(this.state));
    } catch {
      // the state is kept in memory only
    }
  }

  private readonly play = (on: boolean): void => {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (on) {
      const { tick } = this.state;
      if (tick === lastTick(this.timeline) || tick === firstTick(this.timeline)) this.setState({ tick: 0 });
      this.scheduleTick();
    }
    this.draw();
  };

  private scheduleTick(): void {
    this.timer = window.setTimeout(() => {
      this.setState({ tick: this.state.tick + 1 });
      if (this.state.tick === lastTick(this.timeline)) this.play(false);
      else this.scheduleTick();
    }, tickDelay(this.state.speed));
  }

  // drawing

  private ui(): Ui {
    return {
      trace: this.trace,
      arrays: this.arrays,
      state: this.state,
      timeline: this.timeline,
      playing: this.timer !== undefined,
      errors: this.errors,
      focused: (grid) => this.focused.get(grid) ?? [0, 0],
      setState: this.setState,
      play: this.play,
      onPick: (grid, pick) => this.picks.set(grid, pick),
      onPaint: (id, painter) => this.painters.set(id, painter),
    };
  }

  private draw(): void {
    this.painters = new Map();
    this.picks = new Map();
    const ui = this.ui();
    clearHighlight();
    draw(
      this.root,
      h(
        "a",
        { class: "skip", href: "#main", onclick: (event: Event) => this.skip(event) },
        "Skip to the figure",
      ),
      header(ui),
      this.tabs(),
      h(
        "main",
        { id: "main", tabindex: -1, "data-view": this.state.view },
        h("div", { class: `view ${this.state.view}` }, VIEW_FUNCTIONS[this.state.view](ui)),
      ),
      footer(ui),
      help(),
    );
    this.paint();
    reveal(this.root);
    if (document.activeElement !== null) highlight(this.root, document.activeElement);
  }

  private skip(event: Event): void {
    event.preventDefault();
    document.getElementById("main")?.focus();
  }

  private tabs(): VNode {
    return h(
      "nav",
      { class: "tabs", "aria-label": "Views" },
      availableViews(this.trace).map((view) =>
        h(
          "a",
          {
            href: formatLink({ ...this.state, view }),
            "aria-current": view === this.state.view ? "page" : null,
            onclick: (event: Event) => {
              event.preventDefault();
              this.show(view);
            },
          },
          VIEW_LABELS[view],
        ),
      ),
      h(
        "button",
        { type: "button", id: "help-button", class: "help", onclick: () => this.help() },
        h("span", {}, "Help"),
        h("kbd", { "aria-hidden": "true" }, "?"),
      ),
    );
  }

  private paint(): void {
    for (const canvas of this.root.querySelectorAll<HTMLCanvasElement>("canvas[data-canvas]")) {
      this.painters.get(canvas.dataset.canvas!)?.(canvas);
    }
  }

  private show(view: View): void {
    this.play(false);
    this.setState({ view });
  }

  private help(): void {
    document.querySelector<HTMLDialogElement>("#help")?.showModal();
  }

  // keys and clicks

  private click(event: Event): void {
    const cell =
      event.target instanceof Element ? event.target.closest<HTMLElement>("[role=gridcell][data-r]") : null;
    const grid = cell?.closest<HTMLElement>("[data-grid]");
    if (cell && grid) this.pick(grid.dataset.grid!, Number(cell.dataset.r), Number(cell.dataset.c));
  }

  private pick(grid: string, row: number, column: number): void {
    this.focused.set(grid, [row, column]);
    this.picks.get(grid)?.(row, column);
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest("select")) return;
    if (this.gridKey(event, target) || this.plainKey(event, target)) event.preventDefault();
  }

  /** Arrow keys move between the cells of a figure. */
  private gridKey(event: KeyboardEvent, target: Element): boolean {
    const grid = target.closest<HTMLElement>("[data-grid]");
    if (grid === null || event.shiftKey) return false;
    const [id, rows, columns] = [grid.dataset.grid!, Number(grid.dataset.rows), Number(grid.dataset.columns)];
    const cell = target.closest<HTMLElement>("[data-r]");
    const [row, column] = cell
      ? [Number(cell.dataset.r), Number(cell.dataset.c)]
      : (this.focused.get(id) ?? [0, 0]);
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
      else this.pick(id, row, column);
      return true;
    }
    if (move === undefined) return false;
    const next = [
      Math.max(0, Math.min(rows - 1, move[0])),
      Math.max(0, Math.min(columns - 1, move[1])),
    ] as const;
    this.focused.set(id, next);
    this.draw();
    grid.querySelector<HTMLElement>(`[data-r="${next[0]}"][data-c="${next[1]}"]`)?.focus();
    return true;
  }

  private plainKey(event: KeyboardEvent, target: Element): boolean {
    const { state } = this;
    const always: Record<string, () => void> = {
      "?": () => this.help(),
      n: () => this.setState({ numbers: !state.numbers }),
      t: () => this.setState({ table: !state.table }),
      m: () => this.setState({ figure: FIGURES[(FIGURES.indexOf(state.figure) + 1) % FIGURES.length]! }),
      w: () => this.show("walk"),
      a: () => this.show("alignment"),
      i: () => this.show("what-if"),
      p: () => this.show("photo"),
      h: () => this.show("history"),
    };
    const action =
      always[event.key.toLowerCase()] ?? (state.view === "walk" ? this.walkKey(event, target) : undefined);
    action?.();
    return action !== undefined;
  }

  private walkKey(event: KeyboardEvent, target: Element): (() => void) | undefined {
    const { timeline } = this;
    const { tick, speed } = this.state;
    if (event.key === " ")
      return target.closest("button,a,summary") ? undefined : () => this.play(this.timer === undefined);
    if (/^[1-5]$/.test(event.key))
      return () =>
        this.setState({ tick: tickAt(timeline, positionAt(timeline, tick).step, Number(event.key) - 1) });
    const byStep = event.shiftKey;
    const targets: Record<string, number> = {
      ArrowLeft: byStep ? moveSteps(timeline, tick, -1) : tick - 1,
      ArrowRight: byStep ? moveSteps(timeline, tick, 1) : tick + 1,
      Home: 0,
      End: lastTick(timeline),
    };
    const next = targets[event.key];
    if (next !== undefined) return () => this.setState({ tick: next });
    if (event.key === "+" || event.key === "=") return () => this.setState({ speed: changeSpeed(speed, 1) });
    if (event.key === "-") return () => this.setState({ speed: changeSpeed(speed, -1) });
    return undefined;
  }
}
