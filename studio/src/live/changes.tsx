/** The changes of weights in words, each of which can be taken back. */
import type { ComponentChildren } from "preact";
import { formatNumber, tokenText } from "../format";
import { t } from "../i18n";
import type { Edit, Side, Trace } from "../trace";
import { CopyLink } from "./copy_link";
import { formatEdit, wordGroups } from "./edits";
import type { Studio } from "./store";

export interface ChangeGroup {
  readonly text: string;
  readonly edits: readonly Edit[];
}

/** Edits of the same kind, output word and input word belong together. */
export function describeEdits(edits: readonly Edit[], trace: Trace): ChangeGroup[] {
  const groups = new Map<string, Edit[]>();
  for (const edit of edits) {
    const { query, key } = placeOf(edit, trace);
    const name = JSON.stringify([edit.op, edit.site, edit.head, query, key]);
    groups.set(name, [...(groups.get(name) ?? []), edit]);
  }
  return [...groups.values()].map((some) => ({ text: describe(some, trace), edits: some }));
}

const wordAt = (side: Side, position: number | null | undefined): string | null => {
  if (position == null || side.tokens[position] === undefined) return null;
  return (
    wordGroups(side).find(({ positions }) => positions.includes(position))?.text ?? tokenText(side, position)
  );
};

function placeOf(edit: Edit, trace: Trace): { query: string | null; key: string | null } {
  const record =
    trace.sites.find(({ site }) => site === (edit.site ?? trace.alignment_site)) ?? trace.sites[0];
  return {
    query: wordAt(trace[record?.query_side ?? "target"], edit.step),
    key: wordAt(trace[record?.key_side ?? "source"], edit.position),
  };
}

function describe(edits: readonly Edit[], trace: Trace): string {
  const edit = edits[0]!;
  const { query, key } = placeOf(edit, trace);
  const where = edit.site == null || trace.sites.length < 2 ? "" : ` (${edit.site})`;
  if (edit.op === "mask-head") return `${t("Head {head} is masked", { head: edit.head ?? 0 })}${where}`;
  if (query !== null && key !== null && (edit.op === "set" || edit.op === "onehot")) {
    const value = formatNumber(edit.op === "onehot" ? 1 : totalOf(edits), 2);
    return `${t("“{word}” → “{key}”: {value}", { word: query, key, value })}${where}`;
  }
  if (edit.op === "zero" && key !== null && edit.step == null)
    return `${t("No weight on “{key}”", { key })}${where}`;
  if (edit.op === "uniform" && query !== null)
    return `${t("“{word}” looks everywhere equally", { word: query })}${where}`;
  return formatEdit(edit);
}

/** The weight of a word of several tokens: `set` of a later token scales that of earlier ones. */
function totalOf(edits: readonly Edit[]): number {
  const step = edits[0]!.step;
  return edits
    .filter((edit) => edit.step === step)
    .reduce((total, { value }) => (value ?? 0) + (1 - (value ?? 0)) * total, 0);
}

export function changes(studio: Studio, trace: Trace): ComponentChildren {
  const all = studio.edits.value;
  if (all.length === 0) return null;
  return (
    <section class="edit-list" aria-label={t("Your changes")}>
      <h3>{t("Your changes")}</h3>
      <ul>
        {describeEdits(all, trace).map(({ text, edits }) => (
          <li key={edits.map(formatEdit).join(" ")}>
            <span dir="auto">{text}</span>
            <button
              type="button"
              aria-label={t("Take back {edit}", { edit: text })}
              onClick={() =>
                studio.apply({ edits: studio.edits.value.filter((one) => !edits.includes(one)) })
              }
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <p class="letters">
        <CopyLink /> {t("The link has them all: whoever opens it sees what you see.")}
      </p>
      <details class="letters">
        <summary>{t("The same on the command line")}</summary>
        <ul class="codes">
          {all.map((edit) => (
            <li key={formatEdit(edit)}>
              <code>--set {formatEdit(edit)}</code>
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}
