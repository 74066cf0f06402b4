/** Long lists and a long timeline: what is spoken of is in sight, and lists side by side stay so. */

const TOGETHER = '[data-grid="scores"],[data-grid="weights"],[data-grid="values"]';

/** Bring the chosen rows and the current word into their boxes; the page itself does not move. */
export function reveal(root: Element): void {
  for (const row of root.querySelectorAll<HTMLElement>(".lanes .list .chosen")) {
    const box = row.parentElement!;
    const top = row.offsetTop - box.offsetTop;
    if (top < box.scrollTop || top + row.offsetHeight > box.scrollTop + box.clientHeight) {
      box.scrollTop = top - box.clientHeight / 2;
    }
  }
  const mark = root.querySelector<HTMLElement>(".marks .current");
  const line = mark?.closest<HTMLElement>(".timeline");
  if (!mark || !line) return;
  const left = mark.offsetLeft - line.offsetLeft;
  if (left < line.scrollLeft || left + mark.offsetWidth > line.scrollLeft + line.clientWidth) {
    line.scrollLeft = left - line.clientWidth / 2;
  }
}

/** One list scrolls, and those beside it with it. */
export function together(root: Element): void {
  root.addEventListener(
    "scroll",
    ({ target }) => {
      if (!(target instanceof HTMLElement) || !target.matches(TOGETHER)) return;
      for (const other of root.querySelectorAll<HTMLElement>(TOGETHER)) other.scrollTop = target.scrollTop;
    },
    { capture: true, passive: true },
  );
}
