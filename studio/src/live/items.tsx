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

const chosen = signal<readonly Item[]>([]);
const found = signal<readonly Item[]>([]);
const query = signal("");
let request: AbortController | null = null;

export function items(studio: Studio, ui: Ui | null): ComponentChildren {
  const choose = (all: readonly Item[]): void => {
    chosen.value = all;
    if (all.length > 0) studio.setHistory({ items: all.map(({ id }) => `id:${id}`) });
  };
  return (
    <>
      <section class="asked" aria-label={t("Items of the history")}>
        <input
          type="search"
          id="catalog"
          value={query.value}
          placeholder={t("Search the catalog and add items to the history")}
          aria-label={t("Search the catalog and add items to the history")}
          onInput={(event) => void search(studio, event.currentTarget.value)}
        />
        {query.value !== "" && (
          <ul class="found">
            {found.value.map((item) => (
              <li key={item.id}>
                <button
                  type="button"
                  disabled={chosen.value.some(({ id }) => id === item.id)}
                  onClick={() => choose([...chosen.value, item])}
                >
                  + {item.title}
                </button>
              </li>
            ))}
          </ul>
        )}
        <ul class="chosen-items">
          {chosen.value.map((item) => (
            <li key={item.id}>
              {item.title}
              <button
                type="button"
                aria-label={t("Remove {item}", { item: item.title })}
                onClick={() => choose(chosen.value.filter(({ id }) => id !== item.id))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      </section>
      {ui !== null && chosen.value.length > 0 && node(history(ui))}
    </>
  );
}

async function search(studio: Studio, text: string): Promise<void> {
  query.value = text;
  request?.abort();
  request = new AbortController();
  if (text.trim() === "") return;
  try {
    const path = `/v1/catalog/${encodeURIComponent(studio.modelName.value)}?q=${encodeURIComponent(text)}`;
    found.value = (await getJson<{ items: readonly Item[] }>(path, request.signal)).items;
  } catch (error) {
    if (!request.signal.aborted) studio.problem.value = String((error as Error).message);
  }
}
