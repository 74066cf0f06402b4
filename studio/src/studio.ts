/** The live studio: the same views as the page of a trace, asking a server. */
import { keepDrawn, openHelp } from "./frame";
import { language, loadLanguage, preferredLanguage } from "./i18n";
import { listen } from "./keys";
import { noticePointing } from "./live/guide";
import { frame } from "./live/shell";
import { Studio } from "./live/store";
import "./page.css";
import "./live/studio.css";
import { provideImage } from "./regions";

const root = document.getElementById("studio")!;
language.value = preferredLanguage();
void loadLanguage(language.value);
const studio = new Studio();
studio.start();
keepDrawn(
  root,
  () => studio.session.value,
  () => {
    const trace = studio.session.value?.trace.value;
    if (trace !== undefined) provideImage(root, trace.source);
    return frame(studio);
  },
);
listen({ root, session: () => studio.session.value, show: (view) => studio.show(view), help: openHelp });
for (const type of ["mouseover", "focusin", "click"] as const) root.addEventListener(type, noticePointing);
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  if (event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  if (event.shiftKey) studio.redo();
  else studio.undo();
});
