/** The tests of the faithfulness strip: what one decision becomes with other weights, or without a part of the input. */
import type { Text } from "../i18n";
import { tokenText } from "../format";
import type { Edit, SiteRecord, Trace } from "../trace";
import { postJson, requestTrace, requestWhatIf, type Change, type History, type Subject } from "./api";

const TOP = 100; // labels of which the probabilities are known
const GRAY = "#808080";

export interface Decision {
  readonly subject: Subject;
  readonly trace: Trace;
  readonly step: number;
  readonly record: SiteRecord;
  readonly head: number | null;
  readonly top: number; // position with the largest weight
}

export interface Outcome {
  readonly name: Text;
  readonly value: number | null; // probability, or score of a recommended item; null: less likely than all known ones
  readonly best: string; // most likely then; of a recommended item, its rank
  readonly changed: boolean;
}

/** All tests of one decision, in order. */
export async function runTests(decision: Decision, signal: AbortSignal): Promise<Outcome[]> {
  const { trace, step, record, head, top } = decision;
  const where = {
    ...(trace.sites.length > 1 ? { site: record.site } : {}),
    ...(head === null ? {} : { head }),
    step,
  };
  const edits: readonly (readonly [Text, Edit])[] = [
    ["equal weights", { op: "uniform", ...where } as Edit],
    ["shuffled weights", { op: "permute", ...where } as Edit],
    ["no weight where it is largest", { op: "zero", ...where, position: top } as Edit],
  ];
  const outcomes: Outcome[] = [];
  for (const [name, edit] of edits)
    outcomes.push(outcome(name, decision, await edited(decision, edit, signal), step));
  const left = await leftOut(decision, signal);
  return left === null ? outcomes : [...outcomes, left];
}

/** The decision under an edit. The token is forced, so that its own probability is known however small it is. */
async function edited({ subject, trace, step }: Decision, edit: Edit, signal: AbortSignal): Promise<Trace> {
  const before = trace.edits.filter(({ op }) => op !== "prefix");
  const change = { edits: [...before, edit], prefix: prefixOf(trace, step) };
  return (await ask(subject, change, signal)).after;
}

/** The tokens up to and including those of a step; nothing for tasks that force none. */
const prefixOf = (trace: Trace, step: number): number[] =>
  ["classify", "read", "recommend"].includes(trace.model.task)
    ? []
    : trace.target.tokens.slice(0, step + 1).map(({ id }) => id!);

async function ask(
  subject: Subject,
  change: Change,
  signal: AbortSignal,
): Promise<{ readonly after: Trace }> {
  if (typeof subject.input !== "string") return requestWhatIf(subject, change, "weights", signal);
  return postJson(
    "/v1/whatif",
    { ...subject, ...change, detail: "weights", top_k: TOP, options: {} },
    signal,
  );
}

function outcome(name: Text, { trace, step }: Decision, after: Trace, at: number): Outcome {
  const decided = after.steps[at];
  if (trace.model.task === "recommend") {
    const rank = rankOf(after, at);
    return { name, value: decided?.logp ?? null, best: `${rank}.`, changed: rank !== rankOf(trace, step) };
  }
  const token = trace.target.tokens[step]!;
  const likeliest = decided?.top[0]?.text ?? "–";
  const same =
    trace.model.task === "classify"
      ? (decided?.top.find(({ text }) => text === token.text)?.logp ?? null)
      : (decided?.logp ?? null);
  return {
    name,
    value: same === null ? null : Math.exp(same),
    best: likeliest === token.text ? tokenText(trace.target, step) : likeliest.replace(/^▁(?=.)/u, ""),
    changed: likeliest !== (trace.steps[step]!.top[0]?.text ?? token.text),
  };
}

/** The rank of an item among those that are recommended. */
export const rankOf = (trace: Trace, at: number): number =>
  1 + trace.steps.filter(({ logp }) => logp > trace.steps[at]!.logp).length;

/** Leave-one-out: the same decision about an input without the part that was looked at most. */
async function leftOut(decision: Decision, signal: AbortSignal): Promise<Outcome | null> {
  const { subject, trace, step, top } = decision;
  const input = await without(decision);
  if (input === null || top < 0) return null;
  const task = trace.model.task;
  const name: Text = task === "caption" ? "with this region painted gray" : "without this word in the input";
  const changed = { ...subject, input };
  if (task === "recommend") {
    const after = await requestTrace(changed, { detail: "weights" }, signal);
    const at = after.target.tokens.findIndex(({ id, text }) => samePlace(trace, step, id, text));
    const left: Text = "without this item in the history";
    return at < 0
      ? { name: left, value: null, best: "–", changed: true }
      : { ...outcome(left, decision, after, at), changed: rankOf(after, at) !== rankOf(trace, step) };
  }
  const prefix = prefixOf(trace, step);
  const after =
    prefix.length > 0
      ? (await ask(changed, { edits: [], prefix }, signal)).after
      : await requestTrace(changed, { detail: "weights" }, signal);
  const at = task === "read" ? step - (trace.steps.length - after.steps.length) : step;
  return at < 0 || after.steps[at] === undefined ? null : outcome(name, decision, after, at);
}

function samePlace(trace: Trace, step: number, id: number | null | undefined, text: string): boolean {
  const token = trace.target.tokens[step]!;
  return token.id == null ? token.text === text : token.id === id;
}

async function without({ subject, trace, top }: Decision): Promise<Subject["input"] | null> {
  const { input } = subject;
  if (typeof input === "string") return withoutWord(trace, input, top);
  if (input instanceof Blob) return withoutRegion(trace, top);
  const items = (input as History).items;
  return items === undefined || items.length < 2 || items.length !== trace.source.tokens.length
    ? null
    : { items: items.filter((_, i) => i !== top) };
}

/** The text without the word of a position, which leaves its punctuation behind; null: nothing would be left. */
export function withoutWord(trace: Trace, text: string, position: number): string | null {
  const { words, tokens } = trace.source;
  const number = tokens[position]?.word ?? -1;
  if (number < 0) return null;
  let at = 0;
  for (let i = 0; i <= number; i++) {
    const found = text.indexOf(words[i]!, at);
    if (found < 0) return null;
    if (i < number) at = found + words[i]!.length;
    else at = found;
  }
  const word = words[number]!;
  const kept = /[\p{L}\p{N}]/u.test(word) ? (/[^\p{L}\p{N}]*$/u.exec(word)?.[0] ?? "") : "";
  const before = text.slice(0, at).trimEnd();
  const after = text.slice(at + word.length).trimStart();
  const rest = `${before}${kept}${before + kept !== "" && after !== "" ? " " : ""}${after}`;
  return /[\p{L}\p{N}]/u.test(rest) ? rest : null;
}

/** The picture with one region painted over. */
function withoutRegion(trace: Trace, region: number): Promise<Blob | null> {
  const { data_uri, grid } = trace.source.image!;
  return new Promise((resolve) => {
    const image = new Image();
    image.onerror = () => resolve(null);
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
      const pen = canvas.getContext("2d");
      if (pen === null) return resolve(null);
      pen.drawImage(image, 0, 0);
      const [width, height] = [canvas.width / grid[1], canvas.height / grid[0]];
      pen.fillStyle = GRAY;
      pen.fillRect(width * (region % grid[1]), height * Math.floor(region / grid[1]), width, height);
      canvas.toBlob(resolve, "image/png");
    };
    image.src = data_uri;
  });
}
