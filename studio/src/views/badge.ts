/** Green or red: does what the page computed agree with what was recorded? */
import { agrees } from "../check";
import { h, type Element } from "../dom";
import { difference } from "../format";

export function badge(value: number | null, otherwise: string): Element {
  if (value === null) return h("p", { class: "badge plain" }, otherwise);
  const good = agrees(value);
  return h(
    "p",
    { class: good ? "badge good" : "badge bad", "data-v": String(value) },
    h("span", { class: "sign", "aria-hidden": "true" }, good ? "✓" : "✗"),
    ` recomputed here, ${good ? "" : "does not agree: "}largest difference ${difference(value)}`,
  );
}
