import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { generate, schema } from "../types.mjs";

test("the types agree with the published schema", () => {
  const written = readFileSync(new URL("../src/trace.ts", import.meta.url), "utf8");
  expect(written, "run `npm run types`").toBe(generate(schema()));
});
