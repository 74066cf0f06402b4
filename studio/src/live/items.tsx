/** History: search the catalog, add and remove items, and see what is recommended then. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { t } from "../i18n";
import type { Ui } from "../ui";
import { history } from "../views/history";
import { getJson } from "./api";
import { node } from "./node";
import type { Studio } from "./store";

interface Item {
  readonly id: string;
  readonly title: string;
}

const titles = signal<ReadonlyMap<string, string>>(new Map());
const found = signal<readonly Item[] | null>(null); // null: not asked yet
const query = signal("");
const SAMPLE_WORDS = ["Star Wars", "Matrix", "Toy Story"]; // of films that most people know
let request: AbortController | null = null;

export function items(studio: Studio, ui: Ui | null): ComponentChildren {
  const ids = studio.items.value;
  const title = (id: string, i: number): string =>
    titles.value.get(id) ??
    (ui?.trace.source.tokens.length === ids.length ? ui.trace.source.tokens[i]!.text : id);
  return (
    <>
      <section class="asked" aria-label={t("Items of the history")}>
        <input
          type="search"
          id="catalog"
          value={query.value}
          autocomplete="off"
          placeholder={t("Search the catalog and add items to the history")}
          aria-label={t("Search the catalog and add items to the history")}
          onInput={(event) => void search(studio, event.currentTarget.value)}
        />
        {query.value !== "" && found.value !== null && (
          <ul class="found" aria-label={t("Items found")}>
            {found.value.length === 0 && (
              <li class="letters">{t("The catalog has no such item; try a shorter name.")}</li>
            )}
            {found.value.map((item) => (
              <li key={item.id}>
                <button type="button" disabled={ids.includes(item.id)} onClick={() => add(studio, [item])}>
                  + {item.title}
                </button>
              </li>
            ))}
          </ul>
        )}
        {ids.length > 0 && (
          <ul class="chosen-items" aria-label={t("Items of the history")}>
            {ids.map((id, i) => (
              <li key={id}>
                <span dir="auto">{title(id, i)}</span>
                <button
                  type="button"
                  aria-label={t("Remove {item}", { item: title(id, i) })}
                  onClick={() => studio.setItems(ids.filter((one) => one !== id))}
                >
                  ×
                </button>
              </li>
            ))}
          </ul>
        )}
      </section>
      {ids.length === 0 && (
        <section class="empty">
          <h2>{t("What would you watch next?")}</h2>
          <p>
            {t(
              "Add a few items that you like. The model scores every other item, and shows which of yours it looked at.",
            )}
          </p>
          <button type="button" class="primary" id="sample-items" onClick={() => void addSamples(studio)}>
            {t("Start with three well-known ones")}
          </button>
        </section>
      )}
      {ui !== null && ids.length > 0 && node(history(ui))}
    </>
  );
}

function add(studio: Studio, more: readonly Item[]): void {
  const known = new Map(titles.value);
  for (const { id, title } of more) known.set(id, title);
  titles.value = known;
  studio.setItems([...new Set([...studio.items.value, ...more.map(({ id }) => id)])]);
}

const ask = async (studio: Studio, text: string, signal?: AbortSignal): Promise<readonly Item[]> => {
  const path = `/v1/catalog/${encodeURIComponent(studio.modelName.value)}?q=${encodeURIComponent(text)}`;
  return (await getJson<{ items: readonly Item[] }>(path, signal)).items;
};

/** Well-known films, or the first items of a catalog that has none of them. */
async function addSamples(studio: Studio): Promise<void> {
  try {
    const all = await Promise.all(SAMPLE_WORDS.map((word) => ask(studio, word)));
    const known = all.flatMap((some) => some.slice(0, 1));
    add(studio, known.length > 0 ? known : (await ask(studio, "")).slice(0, 3));
  } catch (error) {
    studio.problem.value = String((error as Error).message);
  }
}

async function search(studio: Studio, text: string): Promise<void> {
  query.value = text;
  request?.abort();
  const current = (request = new AbortController());
  if (text.trim() === "") {
    found.value = null;
    return;
  }
  try {
    found.value = await ask(studio, text, current.signal);
  } catch (error) {
    if (!current.signal.aborted) studio.problem.value = String((error as Error).message);
  }
}
