/** What survives a reload: the model and what was typed for each task. */
interface Stored {
  readonly model: string;
  readonly texts: Readonly<Record<string, string>>;
}

const NAME = "heedful-studio";

export function load(): Stored {
  try {
    const stored = JSON.parse(localStorage.getItem(NAME) ?? "null") as Partial<Stored> | null;
    const texts = Object.entries(stored?.texts ?? {}).filter(([, text]) => typeof text === "string");
    return { model: String(stored?.model ?? ""), texts: Object.fromEntries(texts) };
  } catch {
    return { model: "", texts: {} };
  }
}

export function save(model: string, texts: Stored["texts"]): void {
  try {
    if (model !== "") localStorage.setItem(NAME, JSON.stringify({ model, texts }));
  } catch {
    // without storage, the address has what is typed
  }
}
