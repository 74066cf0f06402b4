// Code and tables that are wider than the page can be scrolled with the keyboard, too.
for (const element of document.querySelectorAll("pre, table.docutils, .formula")) {
  if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
}

// Shows the slides of a page one at a time; the arrow keys and two buttons move.
const deck = document.querySelector(".slides");
if (deck) {
  const slides = [...deck.querySelectorAll(".slide")];
  let at = 0;
  const bar = document.createElement("p");
  bar.className = "slides-bar";
  const count = document.createElement("span");
  count.setAttribute("aria-live", "polite");
  const button = (text, label, step) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = text;
    element.setAttribute("aria-label", label);
    element.addEventListener("click", () => show(at + step));
    return element;
  };
  const words = { vi: ["Trang trước", "Trang sau"], "zh-CN": ["上一页", "下一页"] }[document.documentElement.lang.replace("_", "-")]
    || ["Previous slide", "Next slide"];
  bar.append(button("←", words[0], -1), count, button("→", words[1], 1));
  deck.after(bar);
  deck.classList.add("one-at-a-time");
  function show(number) {
    at = Math.max(0, Math.min(slides.length - 1, number));
    slides.forEach((slide, n) => slide.classList.toggle("shown", n === at));
    count.textContent = `${at + 1} / ${slides.length}`;
  }
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select, iframe")) return;
    if (event.key === "ArrowRight") show(at + 1);
    else if (event.key === "ArrowLeft") show(at - 1);
  });
  show(0);
}
