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

/** The picture of Photo, which does not fit into the storage for texts. */
const PICTURES = "heedful-pictures";

function pictures(mode: IDBTransactionMode): Promise<IDBObjectStore> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(PICTURES, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(PICTURES);
    request.onsuccess = () => resolve(request.result.transaction(PICTURES, mode).objectStore(PICTURES));
    request.onerror = () => reject(request.error);
  });
}

export function savePicture(picture: Blob): void {
  void pictures("readwrite").then(
    (store) => store.put(picture, "last"),
    () => undefined, // without storage, the picture is there until the page is closed
  );
}

export async function loadPicture(): Promise<Blob | null> {
  try {
    const request = (await pictures("readonly")).get("last");
    await new Promise((resolve, reject) => {
      request.onsuccess = resolve;
      request.onerror = reject;
    });
    return request.result instanceof Blob ? request.result : null;
  } catch {
    return null;
  }
}

/** A switch that is remembered. */
export function isOn(name: string): boolean {
  try {
    return localStorage.getItem(`${NAME}-${name}`) === "on";
  } catch {
    return false;
  }
}

export function turn(name: string, on: boolean): void {
  try {
    if (on) localStorage.setItem(`${NAME}-${name}`, "on");
    else localStorage.removeItem(`${NAME}-${name}`);
  } catch {
    // remembered until the page is closed
  }
}
