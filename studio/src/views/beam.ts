/** Beam: the hypotheses of a beam search as a tree; a node can be chosen, and in the studio forced. */
import { h, type Children, type VNode } from "../dom";
import { dataTable } from "../figures/table";
import { formatNumber, formatPercent } from "../format";
import { t, type Text } from "../i18n";
import type { BeamNode, BeamTree } from "../trace";
import type { Ui } from "../ui";
import { toggleButton } from "./selects";

const COLUMN = 104; // pixels
const ROW = 30;
const MAX_NODES = 1500;
const STATES: Record<BeamNode["state"], Text> = {
  active: "continued",
  pruned: "pruned",
  finished: "finished",
};
const MARKS: Record<BeamNode["state"], string> = { active: "", pruned: " ×", finished: " ■" };

const show = (text: string): string => text.replace(/^▁(?=.)/u, "");

/** The nodes from the first to this one. */
export function path(tree: BeamTree, id: number): BeamNode[] {
  const byId = new Map(tree.nodes.map((node) => [node.id, node]));
  const nodes: BeamNode[] = [];
  for (let node = byId.get(id); node !== undefined; node = byId.get(node.parent)) nodes.unshift(node);
  return nodes;
}

export const hypothesisText = (nodes: readonly BeamNode[]): string =>
  nodes
    .filter(({ text }) => !/^<\/?s>$/.test(text))
    .map(({ text }) => text)
    .join("")
    .replaceAll("▁", " ")
    .trim();

export function beam(ui: Ui): Children {
  const tree = ui.trace.beam;
  if (tree == null || tree.nodes.length === 0) {
    return h(
      "p",
      { class: "note" },
      t("This trace has no beam. Beam search with a size of at least 2 records one."),
    );
  }
  if (tree.nodes.length > MAX_NODES)
    return h(
      "p",
      { class: "note" },
      t("This tree has {n} nodes, too many to draw.", { n: tree.nodes.length }),
    );
  const chosen = ui.state.node ?? tree.best[0] ?? tree.nodes[0]!.id;
  return [
    h(
      "div",
      { class: "selects" },
      toggleButton("table", t("table"), ui.state.table, "T", (on) => ui.setState({ table: on })),
    ),
    h("h2", {}, t("Hypotheses of the beam, {n} wide", { n: tree.beam_size })),
    h(
      "p",
      { class: "legend" },
      t(
        "Every column is a step. Line width: probability of the token. ×: pruned, ■: finished. Choose a hypothesis to read it.",
      ),
    ),
    h("div", { class: "scroll", tabindex: -1 }, drawTree(ui, tree, chosen)),
    panel(ui, tree, chosen),
    ui.state.table && nodeTable(tree),
  ];
}

/** The row of each node: a node shares that of its best child. */
function layout(tree: BeamTree): { rows: Map<number, number>; count: number } {
  const children = new Map<number, BeamNode[]>();
  for (const node of tree.nodes) children.set(node.parent, [...(children.get(node.parent) ?? []), node]);
  const onBest = new Set(path(tree, tree.best[0] ?? -1).map(({ id }) => id));
  const rows = new Map<number, number>();
  let count = 0;
  const place = (node: BeamNode, row: number): void => {
    rows.set(node.id, row);
    const next = (children.get(node.id) ?? []).sort(
      (a, b) => Number(onBest.has(b.id)) - Number(onBest.has(a.id)) || b.total_logp - a.total_logp,
    );
    next.forEach((child, i) => place(child, i === 0 ? row : count++));
  };
  for (const root of (children.get(-1) ?? []).sort(
    (a, b) => Number(onBest.has(b.id)) - Number(onBest.has(a.id)) || b.total_logp - a.total_logp,
  ))
    place(root, count++);
  return { rows, count };
}

function drawTree(ui: Ui, tree: BeamTree, chosen: number): VNode {
  const { rows, count } = layout(tree);
  const steps = Math.max(...tree.nodes.map(({ step }) => step)) + 1;
  const [width, height] = [steps * COLUMN + 40, count * ROW + 16];
  const at = (node: BeamNode): readonly [number, number] => [
    14 + node.step * COLUMN,
    20 + rows.get(node.id)! * ROW,
  ];
  const byId = new Map(tree.nodes.map((node) => [node.id, node]));
  const onPath = new Set(path(tree, chosen).map(({ id }) => id));
  const best = new Set(path(tree, tree.best[0] ?? -1).map(({ id }) => id));
  const choose = (id: number) => () => ui.setState({ node: id });
  const link = (node: BeamNode): Children => {
    const parent = byId.get(node.parent);
    const [x, y] = at(node);
    const [x0, y0] = parent === undefined ? [0, y] : at(parent);
    const from = parent === undefined ? 0 : Math.min(x - 12, x0 + 8 + show(parent.text).length * 7.2 + 8);
    return h("path", {
      class: onPath.has(node.id) ? "branch chosen" : best.has(node.id) ? "branch best" : "branch",
      d: `M${from} ${y0}C${from + 14} ${y0} ${x - 18} ${y} ${x - 3} ${y}`,
      "stroke-width": (0.8 + 3.2 * Math.exp(node.logp)).toFixed(2),
    });
  };
  return h(
    "svg",
    {
      class: "beam-tree",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": t("Hypotheses of the beam, {n} wide", { n: tree.beam_size }),
    },
    h("g", { "aria-hidden": "true" }, tree.nodes.map(link)),
    tree.nodes.map((node) => {
      const [x, y] = at(node);
      const text = `${show(node.text) || "␣"}${MARKS[node.state]}`;
      return h(
        "g",
        {
          role: "button",
          tabindex: 0,
          class: `beam-node ${node.state}${best.has(node.id) ? " best" : ""}`,
          "aria-pressed": String(node.id === chosen),
          "aria-label": t("{token}, step {n}: probability {probability}, {state}", {
            token: show(node.text),
            n: node.step + 1,
            probability: formatPercent(Math.exp(node.logp)),
            state: t(STATES[node.state]),
          }),
          "data-node": node.id,
          "data-v": String(node.logp),
          onclick: choose(node.id),
          onkeydown: (event: KeyboardEvent) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            choose(node.id)();
          },
        },
        h("title", {}, formatPercent(Math.exp(node.logp))),
        h("rect", { class: "focus", x: x - 2, y: y - 12, width: text.length * 7.4 + 10, height: 24, rx: 5 }),
        h("text", { x: x + 3, y: y + 4.5 }, text),
      );
    }),
  );
}

function panel(ui: Ui, tree: BeamTree, chosen: number): Children {
  const nodes = path(tree, chosen);
  const last = nodes.at(-1);
  if (last === undefined) return null;
  return h(
    "section",
    { class: "side-panel beam-panel", "aria-live": "polite" },
    h("p", { class: "hypothesis", dir: "auto" }, hypothesisText(nodes) || "…"),
    h(
      "p",
      { class: "letters" },
      t("{state} at step {n} · log-probability {logp} · this token {probability}", {
        state: t(STATES[last.state]),
        n: last.step + 1,
        logp: formatNumber(last.total_logp, 2),
        probability: formatPercent(Math.exp(last.logp)),
      }),
    ),
    ui.force !== undefined &&
      h(
        "div",
        { class: "selects" },
        h(
          "button",
          {
            type: "button",
            id: "force-branch",
            class: "primary",
            onclick: () =>
              ui.force!(
                nodes.map(({ token }) => token),
                "beam",
              ),
          },
          t("Force this branch"),
        ),
        h(
          "button",
          {
            type: "button",
            id: "walk-branch",
            onclick: () =>
              ui.force!(
                nodes.map(({ token }) => token),
                "walk",
              ),
          },
          t("Open its Walk"),
        ),
      ),
  );
}

function nodeTable(tree: BeamTree): Children {
  return dataTable({
    caption: t("Every hypothesis"),
    corner: t("hypothesis"),
    columns: [t("step"), t("probability"), t("log-probability of all tokens"), t("state")],
    rows: tree.nodes.map((node) => ({
      label: hypothesisText(path(tree, node.id)),
      values: [node.step + 1, Math.exp(node.logp), node.total_logp, t(STATES[node.state])],
    })),
  });
}
