/**
 * A plugin of Vite that makes the catalog small: texts become short ids, and a build gets the entries that it uses.
 * Texts without a space stay as they are, because the same string may also be a name. The page has all languages in its
 * script; the studio has English in its script, and a file per other language, which is loaded when it is chosen.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const CATALOG = fileURLToPath(new URL("./src/catalog.ts", import.meta.url));
const LANGUAGES = ["vi", "zh"]; // in the order of the catalog
const LITERAL = /"(?:[^"\\\n]|\\.)*"/g;

/** The entries of the catalog, in order. */
function readCatalog() {
  const source = readFileSync(CATALOG, "utf8");
  const body = source.slice(source.indexOf("{"), source.lastIndexOf("}") + 1);
  return Object.entries(new Function(`return (${body});`)());
}

export function smallCatalog(mode) {
  const entries = readCatalog();
  const ids = new Map(entries.map(([text], i) => [text, text.includes(" ") ? `~${i.toString(36)}` : text]));
  return {
    name: "small-catalog",
    enforce: "pre",
    apply: "build",
    transform(code, id) {
      if (id === CATALOG) return "export const CATALOG = __CATALOG__;";
      if (!id.includes("/src/") || !/\.tsx?$/.test(id)) return null;
      return code.replace(LITERAL, (literal) => {
        const text = ids.get(JSON.parse(literal));
        return text === undefined ? literal : JSON.stringify(text);
      });
    },
    renderChunk(code) {
      const used = entries.filter(([text]) => code.includes(JSON.stringify(ids.get(text))));
      const table = (value) =>
        JSON.stringify(Object.fromEntries(used.map(([text, parts]) => [ids.get(text), value(text, parts)])));
      const english = (text) => (text.includes(" ") ? text : "");
      if (mode === "page")
        return code.replace("__CATALOG__", () => table((text, [vi, zh]) => `${vi}|${zh}|${english(text)}`));
      LANGUAGES.forEach((language, i) =>
        this.emitFile({
          type: "asset",
          fileName: `studio.${language}.json`,
          source: table((_, parts) => parts[i]),
        }),
      );
      return code.replace("__CATALOG__", () => table(english));
    },
  };
}
