/** Walk: one output word at a time, from scores to the word, with the numbers of the trace. */
import { t } from "../i18n";
import { stepDetail } from "../detail";
import { h, type Children, type VNode } from "../dom";
import { capitalize, quote, tokenText } from "../format";
import { taskWords } from "../nouns";
import { STAGES, positionAt, tickAt } from "../timeline";
import { findWalkableSite, validHead, walkableSites, type Ui } from "../ui";
import { contextLane, scoreLane, weightLane, type Lane } from "./attention_lanes";
import { narrateOutput, narrateStage } from "./narration";
import { featureLane, outputLane } from "./output_lanes";
import { playback } from "./playback";
import { headSelect, siteSelect } from "./selects";
import { outputTable, stepTables } from "./tables";

export function walk(ui: Ui): Children {
  const record = findWalkableSite(ui.trace, ui.state.site);
  const { step, stage } = positionAt(ui.timeline, ui.state.tick);
  const word = tokenText(ui.trace.target, step);
  const heading = h(
    "h2",
    { class: "word-heading" },
    ui.timeline.steps === 1
      ? `${capitalize(taskWords(ui.trace).output)}: `
      : `${t("{output} {n} of {all}", { output: capitalize(taskWords(ui.trace).output), n: step + 1, all: ui.timeline.steps })}: `,
    h("span", { class: "written", dir: "auto" }, quote(word)),
  );
  if (record === null) {
    return [
      h(
        "p",
        { class: "note" },
        ui.trace.sites.length > 0
          ? t(
              "No site of this trace has one query per output word; Alignment shows its sites. Here are the output words and their most likely alternatives.",
            )
          : t(
              "This model has no attention over its input. Here are the output words and their most likely alternatives.",
            ),
      ),
      playback(ui),
      heading,
      narration(narrateOutput(ui, step)),
      h("div", { class: "lanes single" }, laneSection(ui, outputLane(ui, step), 4, 4)),
      ui.state.table && outputTable(ui, step),
    ];
  }
  const head = validHead(record, ui.state.head) ?? 0;
  const selection = { step, stage, record, head, position: ui.state.position };
  const detail = stepDetail(ui.trace, ui.arrays, selection);
  const lanes = [
    scoreLane(ui, detail),
    weightLane(ui, detail),
    contextLane(ui, detail),
    featureLane(ui, detail),
    outputLane(ui, step),
  ];
  return [
    h(
      "div",
      { class: "selects" },
      siteSelect(ui, walkableSites(ui.trace), record),
      headSelect(ui, record, false),
    ),
    playback(ui),
    h("div", { class: "word-line" }, heading, narration(narrateStage(ui, detail))),
    h(
      "div",
      {
        class: `lanes${ui.playing ? " playing" : ""}`,
      },
      lanes.map((lane, i) => laneSection(ui, lane, i, stage, narrateStage(ui, { ...detail, stage: i }))),
    ),
    ui.state.table && stepTables(ui, detail),
  ];
}

const narration = (text: string): VNode =>
  h("p", { class: "narration", id: "narration", "aria-live": "polite" }, text);

function laneSection(
  ui: Ui,
  { title, summary, rules, numbers, body, footer }: Lane,
  index: number,
  stage: number,
  brief = "", // shown where the lane is folded
): VNode {
  const when = index < stage ? "done" : index === stage ? "current" : "ahead";
  const tick = tickAt(ui.timeline, positionAt(ui.timeline, ui.state.tick).step, index);
  return h(
    "section",
    { class: `lane ${when}`, "aria-labelledby": `lane-${index}`, "data-stage": STAGES[index]!.toLowerCase() },
    h(
      "h3",
      { id: `lane-${index}` },
      h(
        "button",
        {
          type: "button",
          onclick: () => ui.setState({ tick }),
          "aria-current": when === "current" ? "step" : null,
        },
        h("span", { class: "digit" }, String(index + 1)),
        ` ${title}`,
      ),
    ),
    h("p", { class: "brief" }, brief),
    h("p", { class: "summary" }, summary),
    h("div", { class: "rule" }, rules),
    h("div", { class: "rule-numbers later" }, numbers),
    h("div", { class: "body later" }, body),
    h("div", { class: "footer later" }, footer),
  );
}
