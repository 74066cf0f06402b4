/** Save this page: what is shown, as a page of its own, a figure or numbers. */
import type { ComponentChildren } from "preact";
import { t, type Text } from "../i18n";
import type { Ui } from "../ui";
import { requestTrace, requestWhatIf, send } from "./api";
import { menu } from "./menu";
import type { Studio } from "./store";

const FORMATS: readonly (readonly [string, Text])[] = [
  ["html", "a page that works without this server"],
  ["png", "a picture"],
  ["svg", "a drawing that can be edited"],
  ["pdf", "a figure for a paper"],
  ["json", "all numbers"],
];
/** What a view becomes: the view of the page that opens, and the figure that is drawn. */
const SAVED: Readonly<Record<string, readonly [page: string, figure: string]>> = {
  write: ["alignment", "lines"],
  walk: ["walk", "alignment"],
  heads: ["heads", "heads"],
  beam: ["beam", "beam"],
  photo: ["photo", "photo"],
  history: ["history", "history"],
  classify: ["alignment", "words"],
  read: ["alignment", "arcs"],
  "what-if": ["what-if", "alignment"],
};
const DETAIL_VIEWS: readonly string[] = ["walk", "what-if"]; // whose pages need more than weights

export function saveMenu(studio: Studio, ui: Ui): ComponentChildren {
  return menu({
    id: "save",
    label: t("Save this page"),
    items: FORMATS.map(([format, about]) => ({
      name: format,
      title: format.toUpperCase(),
      about: t(about),
      choose: () => void saveAs(studio, ui, format),
    })),
  });
}

async function saveAs(studio: Studio, ui: Ui, format: string): Promise<void> {
  const { view } = ui.state;
  const [own, figure] = SAVED[view] ?? ["alignment", "alignment"];
  const page = own === "what-if" && studio.edits.value.length > 0 ? "alignment" : own;
  try {
    const trace = format === "html" && DETAIL_VIEWS.includes(view) ? await detailed(studio, ui) : ui.trace;
    const response = await send("/v1/page", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ trace, format, view: format === "html" ? page : figure }),
    });
    download(await response.blob(), `heedful-${view}.${format}`);
  } catch (error) {
    studio.problem.value = error instanceof Error ? error.message : String(error);
  }
}

/** The trace with every number, and with what each changed weight would do: a page without a model shows it. */
async function detailed(studio: Studio, ui: Ui): Promise<unknown> {
  const subject = studio.subject.value;
  const { edits, prefix } = studio.change.value;
  if (subject === null) return ui.trace;
  const { signal } = new AbortController();
  if (edits.length > 0) return (await requestWhatIf(subject, { edits, prefix }, "steps", signal)).after;
  return requestTrace(subject, { detail: "steps", prefix, what_if: null }, signal);
}

export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
