/** Highlights the sources of a number: while it is hovered or focused, everything it was computed from. */

let highlighted: Element[] = [];

export function clearHighlight(): void {
  for (const element of highlighted) element.removeAttribute("data-highlighted");
  highlighted = [];
}

function mark(elements: Iterable<Element>): void {
  for (const element of elements) {
    element.setAttribute("data-highlighted", "");
    highlighted.push(element);
  }
}

/** The element itself and those it refers to: by `data-from`, or in the same row and column. */
function related(root: Element, target: Element): Element[] {
  const from = target.getAttribute("data-from");
  if (from) {
    const ids = new Set(from.split(" "));
    const sources = Array.from(root.querySelectorAll("[data-id]"));
    return [target, ...sources.filter((source) => ids.has(source.getAttribute("data-id")!))];
  }
  const [row, column] = [target.getAttribute("data-row"), target.getAttribute("data-col")];
  const [inRow, inColumn] = [`[data-row="${row}"]`, `[data-col="${column}"]`];
  if (row !== null && column !== null) {
    const selector = `${inRow}${inColumn},${inRow}:not([data-col]),${inColumn}:not([data-row])`;
    return Array.from(root.querySelectorAll(selector));
  }
  return Array.from(root.querySelectorAll(row === null ? inColumn : inRow));
}

/** Highlight the hovered or focused element and everything related to it. */
export function highlight(root: Element, target: EventTarget | null): void {
  clearHighlight();
  const element = target instanceof Element ? target.closest("[data-from],[data-row],[data-col]") : null;
  if (element === null || !root.contains(element)) return;
  const linked = element.closest(".linked");
  mark(related(root, element));
  if (linked !== null) mark([linked]);
}
