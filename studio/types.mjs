// Writes src/trace.ts from docs/trace.schema.json; a test checks that the two agree.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const SCHEMA = new URL("../docs/trace.schema.json", import.meta.url);
const TYPES = new URL("./src/trace.ts", import.meta.url);

/** The TypeScript type of one schema. */
function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
  if (schema.type === "array") {
    const inner = typeOf(schema.items);
    return inner.includes("|") ? `(${inner})[]` : `${inner}[]`;
  }
  if (schema.type === "object") {
    const values = schema.additionalProperties;
    return `Record<string, ${values && values !== true ? typeOf(values) : "unknown"}>`;
  }
  return { integer: "number", number: "number", string: "string", boolean: "boolean", null: "null" }[
    schema.type
  ];
}

/** Fields that may be null are left out of files when they are; all others are always written. */
function field([name, schema]) {
  const optional = schema.anyOf?.some((part) => part.type === "null");
  return `  ${name}${optional ? "?" : ""}: ${typeOf(schema)};`;
}

function block(name, schema) {
  const comment = schema.description ? `/** ${schema.description.split("\n")[0]} */\n` : "";
  const fields = Object.entries(schema.properties).map(field);
  return `${comment}export interface ${name} {\n${fields.join("\n")}\n}\n`;
}

export function generate(schema) {
  const named = { ...schema.$defs, Trace: schema };
  const blocks = Object.entries(named).map(([name, part]) => block(name, part));
  return ["// Written by types.mjs from docs/trace.schema.json: do not edit.\n", ...blocks].join("\n");
}

export const schema = () => JSON.parse(readFileSync(SCHEMA, "utf8"));

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  writeFileSync(fileURLToPath(TYPES), generate(schema()));
}
