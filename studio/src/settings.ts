/** The settings of a model, as its recipe has them. */
import { t } from "./i18n";
import type { AttentionSettings } from "./equations";
import type { SiteRecord, Trace } from "./trace";

export const DEFAULT_SETTINGS: AttentionSettings = {
  score: "",
  normalizer: "softmax",
  placement: "global",
  heads: 0,
  bias: false,
  coverage: false,
  beta: 0.5,
  window: 10,
  renormalize: false,
  hard_inference: "expectation",
};

type Section = Record<string, unknown>;
type SectionName = "encoder" | "decoder" | "attention" | "classifier" | "language_model";

export function section(trace: Trace, name: SectionName): Section {
  return (trace.model.settings[name] ?? {}) as Section;
}

/** The settings of a site: Transformers, tapes and pointers have their own, the rest those of the recipe. */
export function attentionSettings(trace: Trace, record: SiteRecord): AttentionSettings {
  if (record.kind === "tape") return { ...DEFAULT_SETTINGS, score: "additive" };
  if (record.site === "copy") return { ...DEFAULT_SETTINGS, score: "general" };
  if (record.kind === "self" || section(trace, "decoder").kind === "transformer") {
    return { ...DEFAULT_SETTINGS, score: "scaled-dot", heads: record.heads };
  }
  return { ...DEFAULT_SETTINGS, ...usable(section(trace, "attention")) };
}

/** The settings that this page knows, as far as they have the right type. */
function usable(settings: Section): Partial<AttentionSettings> {
  const defaults: Section = { ...DEFAULT_SETTINGS };
  return Object.fromEntries(
    Object.keys(defaults)
      .filter((name) => typeof settings[name] === typeof defaults[name])
      .filter((name) => !(typeof settings[name] === "string" && settings[name] in Object.prototype))
      .map((name) => [name, settings[name]]),
  );
}

/** Whether the model is of another library: its trace has attention only, and not what follows it. */
export const isForeign = (trace: Trace): boolean => typeof trace.model.settings.architecture === "string";

/** A description of the query vector. */
export function queryMeaning(trace: Trace): string {
  if (isForeign(trace)) return t("the query");
  if (trace.model.task === "recommend") return t("the recommended item");
  if (trace.model.task === "classify") {
    const { query } = section(trace, "classifier") as { query?: string };
    return query === "final" ? t("the encoder's final state") : t("a learned vector");
  }
  if (trace.model.task === "read") return t("the word just read");
  const { kind, step_order } = section(trace, "decoder") as { kind?: string; step_order?: string };
  if (kind === "transformer" || kind === "conv") return t("the decoder's hidden state");
  if (kind === "abs") return t("the embeddings of the last words");
  if (kind === undefined) return t("the query");
  return step_order?.startsWith("attend") ? t("the decoder's previous state") : t("the decoder's state");
}
