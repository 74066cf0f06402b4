/** The page of one trace: its frame, drawn again whenever a signal changes. */
import { h, type Children, type VNode } from "./dom";
import {
  helpButton,
  keepDrawn,
  languageSelect,
  openHelp,
  skipLink,
  VIEW_LABELS,
  writeAddress,
} from "./frame";
import { language, preferredLanguage, t } from "./i18n";
import { listen } from "./keys";
import { availableViews, formatLink, type View } from "./link";
import { provideImage } from "./regions";
import { Session } from "./session";
import type { Trace } from "./trace";
import type { Ui } from "./ui";
import { alignment } from "./views/alignment";
import { beam } from "./views/beam";
import { counterfactuals } from "./views/counterfactuals";
import { header } from "./views/header";
import { footer } from "./views/footer";
import { heads } from "./views/heads";
import { help } from "./views/help";
import { history } from "./views/history";
import { photo } from "./views/photo";
import { walk } from "./views/walk";

export const VIEW_FUNCTIONS: Partial<Record<View, (ui: Ui) => Children>> = {
  walk,
  alignment,
  heads,
  beam,
  "what-if": counterfactuals,
  photo,
  history,
};

export class App {
  private readonly session: Session;

  constructor(
    private readonly root: HTMLElement,
    trace: Trace,
  ) {
    language.value = preferredLanguage();
    this.session = new Session(trace, location.hash || (root.dataset.start ?? ""), writeAddress);
  }

  start(): void {
    const { root, session } = this;
    provideImage(root, session.trace.value.source);
    keepDrawn(
      root,
      () => session,
      () => this.frame(session.ui()),
    );
    addEventListener("hashchange", () => session.open(location.hash));
    listen({ root, session: () => session, show: this.show, help: openHelp });
    void session.recompute();
  }

  private readonly show = (view: View): void => {
    this.session.play(false);
    this.session.setState({ view });
  };

  private frame(ui: Ui): Children {
    return [
      skipLink(),
      header(ui),
      tabs(ui, availableViews(ui.trace), this.show),
      h(
        "main",
        { id: "main", tabindex: -1, "data-view": ui.state.view },
        h("div", { class: `view ${ui.state.view}` }, VIEW_FUNCTIONS[ui.state.view]?.(ui)),
      ),
      footer(ui),
      help(),
    ];
  }
}

function tabs(ui: Ui, views: readonly View[], show: (view: View) => void): VNode {
  return h(
    "nav",
    { class: "tabs", "aria-label": t("Views") },
    views.map((view) =>
      h(
        "a",
        {
          href: formatLink({ ...ui.state, view }),
          "aria-current": view === ui.state.view ? "page" : null,
          onclick: (event: Event) => {
            event.preventDefault();
            show(view);
          },
        },
        t(VIEW_LABELS[view]),
      ),
    ),
    h("span", { class: "tabs-end" }, languageSelect(), helpButton()),
  );
}
