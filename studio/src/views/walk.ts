/** Walk: one output word at a time, from scores to the word, with the numbers of the trace. */
import { h, type Children, type Element } from "../dom";
import { piece, quoted } from "../format";
import { momentOf } from "../moment";
import { capital, speech } from "../speech";
import { STAGES, place, tickOf } from "../tick";
import { headOf, walkable, walked, type Ui } from "../ui";
import { headChooser, siteChooser } from "./choosers";
import { controls } from "./controls";
import { combineLane, wordLane } from "./endings";
import { contextLane, scoreLane, softmaxLane, type Lane } from "./lanes";
import { momentTables, wordTable } from "./tables";
import { told, toldWord } from "./told";

export function walk(ui: Ui): Children {
  const looks = walked(ui.trace, ui.state.site);
  const { step, stage } = place(ui.line, ui.state.tick);
  const word = piece(ui.trace.target, step);
  const heading = h(
    "h2",
    { class: "word-heading" },
    `${capital(speech(ui.trace).one)} ${step + 1} of ${ui.line.steps}: `,
    h("span", { class: "written", dir: "auto" }, quoted(word)),
  );
  if (looks === null) {
    const only = wordLane(ui, step);
    return [
      h(
        "p",
        { class: "note" },
        ui.trace.sites.length > 0
          ? "Nothing in this trace looks back once for every output word; Alignment shows what there is. Here are the words that were written, and what else was likely."
          : "This model has no attention: its decoder never looks back at the input. What is left to see are the words it wrote, and what else was likely.",
      ),
      controls(ui),
      heading,
      narration(toldWord(ui, step)),
      h("div", { class: "lanes single" }, lane(ui, only, 4, 4)),
      ui.state.table && wordTable(ui, step),
    ];
  }
  const head = headOf(looks, ui.state.head) ?? 0;
  const moment = momentOf(ui.trace, ui.arrays, { step, stage, looks, head, position: ui.state.position });
  const lanes = [
    scoreLane(ui, moment),
    softmaxLane(ui, moment),
    contextLane(ui, moment),
    combineLane(ui, moment),
    wordLane(ui, step),
  ];
  return [
    h(
      "div",
      { class: "choosers" },
      siteChooser(ui, walkable(ui.trace), looks),
      headChooser(ui, looks, false),
    ),
    controls(ui),
    h("div", { class: "word-line" }, heading, narration(told(ui, moment))),
    h(
      "div",
      { class: "lanes" },
      lanes.map((one, i) => lane(ui, one, i, stage)),
    ),
    ui.state.table && momentTables(ui, moment),
  ];
}

const narration = (text: string): Element =>
  h("p", { class: "narration", id: "narration", "aria-live": "polite" }, text);

function lane(
  ui: Ui,
  { title, what, rules, numbers, body, foot }: Lane,
  index: number,
  stage: number,
): Element {
  const when = index < stage ? "done" : index === stage ? "current" : "ahead";
  const here = tickOf(ui.line, place(ui.line, ui.state.tick).step, index);
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
          onclick: () => ui.go({ tick: here }),
          "aria-current": when === "current" ? "step" : null,
        },
        h("span", { class: "digit" }, String(index + 1)),
        ` ${title}`,
      ),
    ),
    h("p", { class: "meaning" }, what),
    h("div", { class: "rule" }, rules),
    h("div", { class: "put-in later" }, numbers),
    h("div", { class: "body later" }, body),
    h("div", { class: "foot later" }, foot),
  );
}
