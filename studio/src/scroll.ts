/** Scrolling: the chosen row and the current word stay visible, and lists side by side scroll together. */

const SYNCED = '[data-grid="scores"],[data-grid="weights"],[data-grid="values"]';

/** Scroll chosen rows and the current word into view inside their boxes, not the page. */
export function reveal(root: Element): void {
  for (const row of root.querySelectorAll<HTMLElement>(".lanes .list .chosen")) {
    const box = row.parentElement!;
    const top = row.offsetTop - box.offsetTop;
    if (top < box.scrollTop || top + row.offsetHeight > box.scrollTop + box.clientHeight) {
      box.scrollTop = top - box.clientHeight / 2;
    }
  }
  showInside(root.querySelector<HTMLElement>(".marks .current"), ".timeline");
  showInside(root.querySelector<HTMLElement>(".tabs [aria-current]"), ".tabs");
}

/** Scroll a line sideways until one of its parts is seen. */
function showInside(mark: HTMLElement | null, box: string): void {
  const line = mark?.closest<HTMLElement>(box);
  if (!mark || !line) return;
  const left = mark.offsetLeft - line.offsetLeft;
  if (left < line.scrollLeft || left + mark.offsetWidth > line.scrollLeft + line.clientWidth) {
    line.scrollLeft = left - line.clientWidth / 2;
  }
}

/** Scroll the lists of scores, weights and values together. */
export function syncScroll(root: Element): void {
  root.addEventListener(
    "scroll",
    ({ target }) => {
      if (!(target instanceof HTMLElement) || !target.matches(SYNCED)) return;
      for (const other of root.querySelectorAll<HTMLElement>(SYNCED)) other.scrollTop = target.scrollTop;
    },
    { capture: true, passive: true },
  );
}
