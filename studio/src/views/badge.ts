/** Green or red: whether recomputed numbers agree with the recorded ones. */
import { t } from "../i18n";
import { isWithinTolerance } from "../check";
import { h, type VNode } from "../dom";
import { formatDifference } from "../format";

export function badge(error: number | null, fallback: string): VNode {
  if (error === null) return h("p", { class: "badge plain" }, fallback);
  const good = isWithinTolerance(error);
  return h(
    "p",
    { class: good ? "badge good" : "badge bad", "data-v": String(error) },
    h("span", { class: "sign", "aria-hidden": "true" }, good ? "✓" : "✗"),
    good
      ? ` ${t("recomputed: the same to {difference}", { difference: formatDifference(error) })}`
      : ` ${t("recomputed, does not agree: largest difference {difference}", { difference: formatDifference(error) })}`,
  );
}
