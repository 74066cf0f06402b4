/** The last two lanes of the Walk: from the context to the features, and the output. */
import { rich, t, type Text } from "../i18n";
import { isForeign, section } from "../settings";
import type { StepDetail } from "../detail";
import { h, type Children } from "../dom";
import { bar, list, type Row } from "../figures/list";
import { vector } from "../figures/vector";
import { capitalize, formatCount, formatNumber, formatPercent, tokenText, withoutMarker } from "../format";
import { taskWords } from "../nouns";
import {
  featureNumbers,
  featureRules,
  itemNumbers,
  itemProbability,
  itemRule,
  logitNumbers,
  scoreOf,
  wordNumbers,
  wordRule,
  type ReadOut,
} from "../read_out";
import { featureTerms, logSumAt, logitTerms } from "../terms";
import type { Ui } from "../ui";
import { needsDetail, value, type Lane } from "./attention_lanes";

const INTERMEDIATES: Record<string, readonly [symbol: string, meaning: Text]> = {
  state: ["s", "the decoder's state"],
  residual: ["r", "the residual"],
  glu: ["g", "the output of the gated linear unit"],
  context: ["c", "the context"],
  features: ["x", "the features: inputs of the output matrix"],
};

const DEFAULT_READ_OUT: ReadOut = {
  kind: "",
  readOut: "linear",
  norm: "pre",
  hasContext: true,
  tied: false,
  resized: false,
};

function readOutSettings({ trace }: Ui, { record }: StepDetail): ReadOut {
  const { task } = trace.model;
  if (isForeign(trace)) return DEFAULT_READ_OUT;
  if (task === "read") {
    const { kind, norm, hidden } = section(trace, "language_model") as {
      kind?: string;
      norm?: string;
      hidden?: number;
    };
    const { tie_embeddings, embedding } = trace.model.settings as {
      tie_embeddings?: string;
      embedding?: number;
    };
    return {
      ...DEFAULT_READ_OUT,
      kind: kind ?? "lstmn",
      norm: norm ?? "pre",
      tied: tie_embeddings === "output",
      resized: embedding !== hidden,
    };
  }
  if (task === "recommend" || task === "classify") {
    const { form } = section(trace, "classifier") as { form?: string };
    return { ...DEFAULT_READ_OUT, kind: task, readOut: form === "zhou" ? "tanh" : "linear" };
  }
  const decoder = section(trace, "decoder") as {
    kind?: string;
    read_out?: string;
    norm?: string;
    hidden?: number;
  };
  const { tie_embeddings, embedding } = trace.model.settings as {
    tie_embeddings?: string;
    embedding?: number;
  };
  return {
    kind: decoder.kind ?? "",
    readOut: decoder.read_out ?? "linear",
    norm: decoder.norm ?? "pre",
    hasContext: record.context != null || "context" in trace.intermediates,
    tied: tie_embeddings === "output" || tie_embeddings === "all",
    resized: embedding !== decoder.hidden,
  };
}

export function featureLane(ui: Ui, detail: StepDetail): Lane {
  return ui.trace.model.task === "recommend" ? itemScoreLane(ui, detail) : combineLane(ui, detail);
}

/** A recommender's: the dot product of the item and the context. */
function itemScoreLane(ui: Ui, detail: StepDetail): Lane {
  const { query, context, stepRecord } = detail;
  const { rules, meaning } = featureRules(readOutSettings(ui, detail));
  const complete = query !== null && context !== null && query.length === context.length;
  return {
    title: t("Compare"),
    summary: taskWords(ui.trace).combine,
    rules: [rules, h("p", { class: "letters" }, meaning)],
    numbers: complete && itemNumbers(query, context, scoreOf(stepRecord.logp)),
    body: complete
      ? h(
          "div",
          { class: "vectors" },
          vector({
            id: "in-query",
            symbol: "q",
            meaning: t("the recommended item"),
            values: query,
            from: "q",
          }),
          vector({
            id: "in-context",
            symbol: "c",
            meaning: t("the context"),
            values: context,
            from: "context",
          }),
        )
      : h("p", { class: "note" }, needsDetail()),
    footer: null,
  };
}

function combineLane(ui: Ui, detail: StepDetail): Lane {
  const { trace, arrays } = ui;
  const readOut = readOutSettings(ui, detail);
  const { rules, meaning } = featureRules(readOut);
  const { intermediates } = trace;
  const parts = Object.entries(intermediates).filter(([name]) => name in INTERMEDIATES);
  const sameContext = intermediates.context === undefined || intermediates.context === detail.record.context;
  const severalSites = trace.sites.filter((record) => record.kind === "cross").length > 1;
  const inputs = parts.filter(([name]) => name !== "features").map(([name]) => `in-${name}`);
  const vectors = parts.map(([name, tensor]) => {
    const [symbol, text] = INTERMEDIATES[name]!;
    const from = name === "features" ? inputs.join(" ") : name === "context" && sameContext ? "context" : "";
    return vector({
      id: name === "features" ? "features" : `in-${name}`,
      symbol,
      meaning: t(text),
      values: arrays.row(tensor, detail.step),
      ...(from ? { from } : {}),
    });
  });
  const copyGate = intermediates.copy_gate;
  return {
    title: t("Combine"),
    summary: isForeign(trace)
      ? t("The rest of the model follows: this trace records its attention only.")
      : taskWords(trace).combine,
    rules: readOut.kind !== "" && [rules, h("p", { class: "letters" }, meaning)],
    numbers: [
      largestFeature(ui, detail, readOut),
      !sameContext &&
        h(
          "p",
          { class: "letters" },
          severalSites
            ? t(
                "c is the context of the last layer, all heads projected together; the other lanes may show another site.",
              )
            : t("c: the contexts of all heads, projected together."),
        ),
    ],
    body:
      parts.length > 0
        ? h("div", { class: "vectors" }, vectors)
        : !isForeign(trace) && h("p", { class: "note" }, needsDetail()),
    footer: copyGate !== undefined && copyNote(Number(arrays.get(copyGate).data[detail.step])),
  };
}

/** The numbers of the feature with the largest term of the logit. */
function largestFeature({ trace, arrays }: Ui, detail: StepDetail, readOut: ReadOut): Children {
  const logit = logitTerms(trace, arrays, detail.step);
  if (logit === null) return null;
  const { index, feature } = logit.terms[0]!;
  const row = (name: string): ArrayLike<number> | null => {
    const tensor = trace.intermediates[name];
    return tensor === undefined ? null : arrays.row(tensor, detail.step);
  };
  const ownContext = trace.model.task === "classify" && detail.record.heads === 1 ? detail.context : null;
  return [
    featureNumbers({
      unit: index,
      value: feature,
      readOut,
      sizes: { state: row("state")?.length ?? 0, context: row("context")?.length ?? 0 },
      terms: featureTerms(arrays, detail.step),
      residual: row("residual"),
      context: row("context") ?? ownContext,
    }),
    h(
      "p",
      { class: "letters" },
      t("Of all {n} features, number {index} counts most here.", {
        n: formatCount(logit.width),
        index: index + 1,
      }),
    ),
  ];
}

function copyNote(gate: number): Children {
  const share = 1 / (1 + Math.exp(-gate));
  return h(
    "p",
    { class: "letters" },
    rich("Copying: {share} of the probability is distributed over input words by the weights of “copy”.", {
      share: value(share, formatPercent(share)),
    }),
  );
}

const N_CANDIDATES = 8;

export function outputLane(ui: Ui, step: number): Lane {
  return ui.trace.model.task === "recommend" ? itemLane(ui, step) : candidateLane(ui, step);
}

function itemLane(ui: Ui, step: number): Lane {
  const rows = ui.trace.steps.map((stepRecord, i): Row => {
    const p = Math.exp(stepRecord.logp);
    return {
      label: tokenText(ui.trace.target, i),
      ariaLabel: `${t("probability")} ${formatNumber(p)}`,
      classes: i === step ? "chosen" : "",
      cell: [bar(p, 1), value(p)],
      attributes: { "data-id": `p${i}`, "data-from": "features", "data-logp": String(stepRecord.logp) },
    };
  });
  return {
    title: t("Item"),
    summary: taskWords(ui.trace).choose,
    rules: itemRule(),
    numbers: itemProbability(scoreOf(ui.trace.steps[step]!.logp)),
    body: list(ui, "words", t("Items of this trace"), rows),
    footer: h("p", { class: "letters" }, t("Independent probabilities: they do not sum to 1.")),
  };
}

const hiddenText = (text: string): Children => h("span", { class: "visually-hidden" }, `${text} `);
const logitCell = (logit: number): Children => [
  hiddenText(t("logit")),
  h("span", { class: "logit", "data-v": String(logit) }, formatNumber(logit, 2)),
];

function candidateLane(ui: Ui, step: number): Lane {
  const { output, outputs, choose } = taskWords(ui.trace);
  const stepRecord = ui.trace.steps[step]!;
  const token = ui.trace.target.tokens[step]!;
  const isOutput = (candidate: { id?: number | null; text: string }): boolean =>
    token.id == null ? candidate.text === token.text : candidate.id === token.id;
  const mostLikely = stepRecord.top.slice(0, N_CANDIDATES);
  const missing = mostLikely.length > 0 && !mostLikely.some(isOutput);
  const candidates = [
    ...mostLikely,
    ...(missing ? [{ id: token.id ?? null, text: token.text, logp: stepRecord.logp }] : []),
  ];
  const logSum = logSumAt(ui.arrays, step);
  const rows = candidates.map((candidate, i): Row => {
    const p = Math.exp(candidate.logp);
    return {
      label: withoutMarker(candidate),
      ariaLabel:
        logSum === null
          ? `${t("probability")} ${formatNumber(p)}${isOutput(candidate) ? `, ${t("generated")}` : ""}`
          : null,
      classes: isOutput(candidate) ? "chosen" : "",
      cell: [
        logSum !== null && logitCell(candidate.logp + logSum),
        bar(p, 1),
        logSum !== null && hiddenText(t("probability")),
        value(p),
      ],
      attributes: { "data-id": `p${i}`, "data-from": "features", "data-logp": String(candidate.logp) },
    };
  });
  const logit = logitTerms(ui.trace, ui.arrays, step);
  const rest = Math.max(0, 1 - candidates.reduce((sum, candidate) => sum + Math.exp(candidate.logp), 0));
  return {
    title: capitalize(output),
    summary: choose,
    rules: [
      wordRule(),
      h(
        "p",
        { class: "letters" },
        t("z: logits. O, with one row per {output}, and b are learned.", { output }) +
          (ui.arrays.has("output/logit")
            ? ` ${t("The softmax has two levels, for frequent and for rare words.")}`
            : ""),
      ),
    ],
    numbers:
      logit !== null
        ? logitNumbers(tokenText(ui.trace.target, step), stepRecord.logp, logit)
        : stepRecord.top.length > 0 && wordNumbers(tokenText(ui.trace.target, step), stepRecord.logp),
    body:
      rows.length === 0
        ? h("p", { class: "note" }, t("This trace does not have the most likely {outputs}.", { outputs }))
        : [
            logSum !== null &&
              h(
                "p",
                { class: "columns", "aria-hidden": "true" },
                h("span", {}, output),
                h("span", {}, t("logit")),
                h("span", {}, t("probability")),
              ),
            list(ui, "words", t("Most likely {outputs}", { outputs }), rows),
          ],
    footer: rows.length > 0 && [
      h(
        "p",
        { class: "sum" },
        t("all other {outputs} together {rest}", { outputs, rest: formatNumber(rest) }),
      ),
      stepRecord.entropy != null &&
        h(
          "p",
          { class: "letters" },
          t("Perplexity of this distribution: {perplexity}.", {
            perplexity: formatNumber(Math.exp(stepRecord.entropy), 1),
          }),
        ),
      stepRecord.forced &&
        ui.trace.model.task !== "read" &&
        h("p", { class: "badge plain" }, t("This {output} was forced, not chosen.", { output })),
    ],
  };
}
