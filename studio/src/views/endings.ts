/** The last two lanes of the Walk: what comes of a look, and the word. */
import { section } from "../check";
import { h, type Children } from "../dom";
import { bar, list, type Row } from "../figures/list";
import { vector } from "../figures/vector";
import { bare, number, percent, piece } from "../format";
import type { Moment } from "../moment";
import {
  combineRules,
  itemChance,
  itemNumbers,
  itemRule,
  scoreOf,
  wordNumbers,
  wordRule,
  type ReadOut,
} from "../readout";
import { capital, speech } from "../speech";
import type { Ui } from "../ui";
import { MORE, value, type Lane } from "./lanes";

const PARTS: Record<string, [string, string]> = {
  state: ["s", "the decoder's state"],
  stream: ["r", "what the decoder had"],
  gated: ["g", "the layer's output"],
  context: ["c", "what was read"],
  said: ["x", ""], // by what is written
};

function readOutOf({ trace }: Ui, { looks }: Moment): ReadOut {
  const { task } = trace.model;
  if (task === "recommend" || task === "classify") {
    const { form } = section(trace, "classifier") as { form?: string };
    return { ...PLAIN, kind: task, readOut: form === "zhou" ? "tanh" : "linear" };
  }
  const decoder = section(trace, "decoder") as {
    kind?: string;
    read_out?: string;
    norm?: string;
    hidden?: number;
  };
  const { tie, embedding } = trace.model.settings as { tie?: string; embedding?: number };
  return {
    kind: decoder.kind ?? "",
    readOut: decoder.read_out ?? "linear",
    norm: decoder.norm ?? "pre",
    looks: looks.context != null || "context" in trace.combine,
    tied: tie === "output" || tie === "all",
    resized: embedding !== decoder.hidden,
  };
}

const PLAIN: ReadOut = {
  kind: "",
  readOut: "linear",
  norm: "pre",
  looks: true,
  tied: false,
  resized: false,
};

export function combineLane(ui: Ui, moment: Moment): Lane {
  return ui.trace.model.task === "recommend" ? comparing(ui, moment) : combining(ui, moment);
}

/** A recommender's: the item in question and what was read, number by number. */
function comparing(ui: Ui, moment: Moment): Lane {
  const { query, context, record } = moment;
  const { rules, what } = combineRules(readOutOf(ui, moment));
  const there = query !== null && context !== null && query.length === context.length;
  const product = there ? Array.from(query).reduce((sum, one, i) => sum + one * context[i]!, 0) : 0;
  const score = scoreOf(record.logp);
  return {
    title: "Compare",
    what: speech(ui.trace).joins,
    rules: [rules, h("p", { class: "letters" }, what)],
    numbers: there && itemNumbers(product, score),
    body: there
      ? h(
          "div",
          { class: "vectors" },
          vector({ id: "in-query", letter: "q", what: "the item in question", values: query, from: "q" }),
          vector({
            id: "in-context",
            letter: "c",
            what: "what was read",
            values: context,
            from: "context",
          }),
        )
      : h("p", { class: "note" }, MORE),
    foot: null,
  };
}

function combining(ui: Ui, moment: Moment): Lane {
  const { trace, arrays } = ui;
  const how = readOutOf(ui, moment);
  const { rules, what } = combineRules(how);
  const parts = Object.entries(trace.combine).filter(([name]) => name in PARTS);
  const same = trace.combine.context === undefined || trace.combine.context === moment.looks.context;
  const several = trace.sites.filter((looks) => looks.kind === "cross").length > 1;
  const gate = trace.combine.gate;
  const vectors = parts.map(([name, tensor]) => {
    const [letter, known] = PARTS[name]!;
    const meaning = name === "said" ? `what ${speech(trace).one}s are compared with` : known;
    const from =
      name === "said"
        ? parts
            .filter(([other]) => other !== "said")
            .map(([other]) => `in-${other}`)
            .join(" ")
        : name === "context" && same
          ? "context"
          : undefined;
    return vector({
      id: name === "said" ? "said" : `in-${name}`,
      letter,
      what: meaning,
      values: arrays.row(tensor, moment.step),
      ...(from ? { from } : {}),
    });
  });
  return {
    title: "Combine",
    what: speech(trace).joins,
    rules: how.kind !== "" && [rules, h("p", { class: "letters" }, what)],
    numbers:
      !same &&
      h(
        "p",
        { class: "letters" },
        several
          ? "c comes from the last layer's look, all heads together; the lanes on the left may show another."
          : "c: all heads together, after a learned matrix.",
      ),
    body: parts.length === 0 ? h("p", { class: "note" }, MORE) : h("div", { class: "vectors" }, vectors),
    foot: gate !== undefined && copied(Number(arrays.get(gate).data[moment.step])),
  };
}

function copied(gate: number): Children {
  const share = 1 / (1 + Math.exp(-gate));
  return h(
    "p",
    { class: "letters" },
    "Of the probability of words, ",
    value(share, percent(share)),
    " is copied from the input by the weights of “copy”.",
  );
}

const LISTED = 8;

export function wordLane(ui: Ui, step: number): Lane {
  return ui.trace.model.task === "recommend" ? itemLane(ui, step) : likelyLane(ui, step);
}

function itemLane(ui: Ui, step: number): Lane {
  const rows = ui.trace.steps.map((record, i): Row => {
    const p = Math.exp(record.logp);
    return {
      label: piece(ui.trace.target, i),
      said: `probability ${number(p)}`,
      marks: i === step ? "chosen" : "",
      cell: [bar(p, 1), value(p)],
      attributes: { "data-id": `p${i}`, "data-from": "said", "data-logp": String(record.logp) },
    };
  });
  return {
    title: "Item",
    what: speech(ui.trace).chosen,
    rules: itemRule(),
    numbers: itemChance(piece(ui.trace.target, step), scoreOf(ui.trace.steps[step]!.logp)),
    body: list(ui, "words", "Items of this trace", rows),
    foot: h("p", { class: "letters" }, "Each by itself: these do not sum to 1."),
  };
}

function likelyLane(ui: Ui, step: number): Lane {
  const { one, chosen } = speech(ui.trace);
  const record = ui.trace.steps[step]!;
  const token = ui.trace.target.tokens[step]!;
  const mine = (top: { id?: number | null; text: string }): boolean =>
    token.id == null ? top.text === token.text : top.id === token.id;
  const likely = record.top.slice(0, LISTED);
  const rest = 1 - likely.reduce((sum, top) => sum + Math.exp(top.logp), 0);
  const outside = likely.length > 0 && !likely.some(mine);
  const rows = [
    ...likely,
    ...(outside ? [{ id: token.id ?? null, text: token.text, logp: record.logp }] : []),
  ].map((top, i): Row => {
    const p = Math.exp(top.logp);
    return {
      label: bare(top),
      said: `probability ${number(p)}${mine(top) ? ", written" : ""}`,
      marks: mine(top) ? "chosen" : "",
      cell: [bar(p, 1), value(p)],
      attributes: { "data-id": `p${i}`, "data-from": "said", "data-logp": String(top.logp) },
    };
  });
  const left = Math.max(0, outside ? rest - Math.exp(record.logp) : rest);
  return {
    title: capital(one),
    what: chosen,
    rules: [wordRule(), h("p", { class: "letters" }, `O, with a row for each ${one}, and b are learned.`)],
    numbers: record.top.length > 0 && wordNumbers(piece(ui.trace.target, step), record.logp),
    body:
      rows.length === 0
        ? h("p", { class: "note" }, `This trace does not say which ${one}s were likely.`)
        : list(ui, "words", `Likely ${one}s`, rows),
    foot: rows.length > 0 && [
      h("p", { class: "sum" }, `all other ${one}s together ${number(left)}`),
      record.entropy != null &&
        h(
          "p",
          { class: "letters" },
          `As unsure as among ${number(Math.exp(record.entropy), 1)} equally likely ${one}s.`,
        ),
      record.forced && h("p", { class: "badge plain" }, `This ${one} was given, not chosen.`),
    ],
  };
}
