/** Pointing at a number, or going to it by key, lights what it was made from and what belongs to it. */

let lit: Element[] = [];

export function dark(): void {
  for (const element of lit) element.removeAttribute("data-lit");
  lit = [];
}

function on(elements: Iterable<Element>): void {
  for (const element of elements) {
    element.setAttribute("data-lit", "");
    lit.push(element);
  }
}

function within(root: Element, target: Element): Element[] {
  const from = target.getAttribute("data-from");
  if (from) {
    const names = new Set(from.split(" "));
    return [
      target,
      ...Array.from(root.querySelectorAll("[data-id]")).filter((one) =>
        names.has(one.getAttribute("data-id")!),
      ),
    ];
  }
  const [row, column] = [target.getAttribute("data-row"), target.getAttribute("data-col")];
  const [rows, columns] = [`[data-row="${row}"]`, `[data-col="${column}"]`];
  if (row !== null && column !== null) {
    const wanted = `${rows}${columns},${rows}:not([data-col]),${columns}:not([data-row])`;
    return Array.from(root.querySelectorAll(wanted));
  }
  return Array.from(root.querySelectorAll(row === null ? columns : rows));
}

/** Light what belongs to the element under the pointer or the focus; nothing, where there is none. */
export function light(root: Element, target: EventTarget | null): void {
  dark();
  const found = target instanceof Element ? target.closest("[data-from],[data-row],[data-col]") : null;
  if (found === null || !root.contains(found)) return;
  const holder = found.closest(".linked");
  on(within(root, found));
  if (holder !== null) on([holder]);
}
