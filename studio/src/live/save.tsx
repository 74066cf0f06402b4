/** Save this page: what is shown, as a page of its own, a figure or numbers. */
import type { ComponentChildren } from "preact";
import { t } from "../i18n";
import type { Ui } from "../ui";
import { send } from "./api";
import type { Studio } from "./store";

const FORMATS = ["html", "png", "svg", "pdf", "json"] as const;
const PAGE_VIEWS: readonly string[] = ["walk", "alignment", "heads", "beam", "photo", "history"];
const FIGURES: Readonly<Record<string, string>> = {
  heads: "heads",
  beam: "beam",
  photo: "photo",
  history: "history",
};

export function saveMenu(studio: Studio, ui: Ui): ComponentChildren {
  return (
    <label class="save">
      <span class="visually-hidden">{t("Save this page")}</span>
      <select
        id="save"
        value=""
        onChange={(event) => {
          const { currentTarget } = event;
          const format = currentTarget.value;
          currentTarget.value = "";
          if (format !== "") void saveAs(studio, ui, format);
        }}
      >
        <option value="">{t("Save this page")}</option>
        {FORMATS.map((format) => (
          <option value={format} key={format}>
            {format.toUpperCase()}
          </option>
        ))}
      </select>
    </label>
  );
}

async function saveAs(studio: Studio, ui: Ui, format: string): Promise<void> {
  const { view } = ui.state;
  const drawn = FIGURES[view] ?? "alignment";
  const shown = format === "html" && PAGE_VIEWS.includes(view) ? view : drawn;
  try {
    const response = await send("/v1/page", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ trace: ui.trace, format, view: shown }),
    });
    download(await response.blob(), `heedful.${format}`);
  } catch (error) {
    studio.problem.value = error instanceof Error ? error.message : String(error);
  }
}

export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
