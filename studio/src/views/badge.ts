/** Green or red: whether recomputed numbers agree with the recorded ones. */
import { isWithinTolerance } from "../check";
import { h, type Element } from "../dom";
import { difference } from "../format";

export function badge(error: number | null, fallback: string): Element {
  if (error === null) return h("p", { class: "badge plain" }, fallback);
  const good = isWithinTolerance(error);
  return h(
    "p",
    { class: good ? "badge good" : "badge bad", "data-v": String(error) },
    h("span", { class: "sign", "aria-hidden": "true" }, good ? "✓" : "✗"),
    ` recomputed, ${good ? "" : "does not agree: "}largest difference ${difference(error)}`,
  );
}
