/** The frame of the studio: model, input, views, and what the server is doing. */
import type { ComponentChildren } from "preact";
import { helpButton, languageSelect, skipLink, VIEW_LABELS } from "../frame";
import type { Children } from "../dom";
import { formatCount } from "../format";
import { t, type Text } from "../i18n";
import type { View } from "../link";
import type { Ui } from "../ui";
import { alignment } from "../views/alignment";
import { beam } from "../views/beam";
import { footer } from "../views/footer";
import { heads } from "../views/heads";
import { help } from "../views/help";
import { walk } from "../views/walk";
import { node } from "./node";
import { compare } from "./compare";
import { guide, openGuide } from "./guide";
import { classify } from "./classify";
import { items } from "./items";
import { lesson } from "./lesson";
import { picture } from "./picture";
import { read } from "./read";
import { saveMenu } from "./save";
import { SAMPLES, type Studio } from "./store";
import { strip } from "./strip";
import { train } from "./train";
import { whatIf } from "./what_if";
import { write } from "./write";

/** The views of the page that need no model. */
const RECORDED: Partial<Record<View, (ui: Ui) => Children>> = { walk, alignment, heads, beam };
/** Views that ask the model. */
const LIVE: Partial<Record<View, (studio: Studio, ui: Ui) => ComponentChildren>> = {
  write,
  "what-if": whatIf,
  compare,
  classify,
  read,
  photo: picture,
  history: items,
  lesson,
};
/** Views that take no text. */
const WITHOUT_INPUT: readonly View[] = ["train"];

const KEYS: readonly (readonly [string, Text])[] = [
  ["E, C, I, L, R", "go to Write, Compare, What-if, Lesson, Train"],
  ["Ctrl + Z", "take a change back; with Shift, do it again"],
  ["← →, Home, End", "on a bar: change the weight by 0.05, set it to 0 or 1"],
];
const TASKS: Readonly<Record<string, Text>> = {
  translate: "Translate",
  summarize: "Summarize",
  reply: "Reply",
  transduce: "Transduce",
  caption: "Caption pictures",
  classify: "Classify texts",
  read: "Read and predict",
  recommend: "Recommend",
};
const PROMPTS: Readonly<Record<string, Text>> = {
  classify: "Type a text to classify",
  read: "Type a text to read",
};

export function frame(studio: Studio): Children {
  const session = studio.session.value;
  const ui: Ui | null = session === null ? null : { ...session.ui(), force: studio.force };
  const view = studio.view.value;
  return (
    <>
      {skipLink()}
      <Top studio={studio} ui={ui} />
      {!WITHOUT_INPUT.includes(view) && <Asked studio={studio} />}
      <Tabs studio={studio} ui={ui} />
      <main id="main" tabIndex={-1} data-view={view} aria-busy={studio.busy.value}>
        <Status studio={studio} />
        {guide(studio, view)}
        <div class={`view ${view}`} key={view}>
          {node(content(studio, ui, view))}
        </div>
        {ui !== null && view !== "train" && view !== "lesson" && strip(studio, ui)}
      </main>
      {ui !== null && view !== "train" && footer(ui)}
      {help({ keys: KEYS, again: { label: t("Show the first steps again"), run: openGuide } })}
    </>
  ) as Children;
}

function content(studio: Studio, ui: Ui | null, view: View): Children {
  if (view === "train") return train(studio) as Children;
  const task = studio.task.value;
  if (ui === null) {
    if (task === "caption") return picture(studio, null) as Children;
    if (task === "recommend") return items(studio, null) as Children;
    if (studio.text.value.trim() === "" && studio.models.value !== null)
      return (<p class="empty">{t("Type something above, or take one of the examples.")}</p>) as Children;
    return null;
  }
  return (LIVE[view]?.(studio, ui) ?? RECORDED[view]?.(ui)) as Children;
}

function Top({ studio, ui }: { readonly studio: Studio; readonly ui: Ui | null }) {
  const models = studio.models.value ?? [];
  const tasks = [...new Set(models.map(({ task }) => task))];
  const model = studio.model.value;
  return (
    <header class="topbar">
      <h1 class="brand">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path class="mark-a" d="M5 7C14 7 18 25 27 25" />
          <path class="mark-b" d="M5 16C14 16 18 7 27 7" />
          <path class="mark-c" d="M5 25C14 25 18 16 27 16" />
        </svg>
        heedful <span>studio</span>
      </h1>
      <label class="select model" for="model">
        <span>{t("Model")}</span>
        <select
          id="model"
          value={studio.modelName.value}
          onChange={(event) => studio.chooseModel(event.currentTarget.value)}
        >
          {tasks.map((task) => (
            <optgroup label={TASKS[task] === undefined ? task : t(TASKS[task])} key={task}>
              {models
                .filter((one) => one.task === task)
                .map(({ name }) => (
                  <option value={name} key={name}>
                    {name}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      </label>
      {model !== null && (
        <p class="about">
          {model.about}
          {model.parameters != null && ` · ${t("{n} parameters", { n: formatCount(model.parameters) })}`}
        </p>
      )}
      <span class="topbar-end">
        {ui !== null && studio.view.value !== "train" && saveMenu(studio, ui)}
        {languageSelect()}
        {helpButton()}
      </span>
    </header>
  );
}

function Asked({ studio }: { readonly studio: Studio }) {
  const task = studio.task.value;
  if (task === "caption" || task === "recommend") return null;
  const prompt = t(PROMPTS[task] ?? "Type a sentence");
  const text = studio.text.value;
  return (
    <section class="asked" aria-label={t("Input")}>
      <textarea
        id="input"
        rows={Math.min(6, Math.max(1, Math.ceil(text.length / 90)))}
        value={text}
        placeholder={prompt}
        aria-label={prompt}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => studio.setText(event.currentTarget.value)}
      />
      <p class="samples">
        <span>{t("Try:")}</span>
        {(SAMPLES[task] ?? [])
          .filter((sample) => sample !== text)
          .map((sample) => (
            <button type="button" class="sample" key={sample} onClick={() => studio.setText(sample)}>
              {sample}
            </button>
          ))}
      </p>
    </section>
  );
}

function Tabs({ studio, ui }: { readonly studio: Studio; readonly ui: Ui | null }) {
  const view = studio.view.value;
  return (
    <nav class="tabs" aria-label={t("Views")}>
      {studio.views(ui?.trace ?? null).map((one) => (
        <a
          key={one}
          href={studio.address(`#/${one}`)}
          aria-current={one === view ? "page" : undefined}
          data-tab={one}
          onClick={(event) => {
            event.preventDefault();
            studio.show(one);
          }}
        >
          {t(VIEW_LABELS[one])}
        </a>
      ))}
      <span class="tabs-end">
        <Activity studio={studio} />
      </span>
    </nav>
  );
}

/** Whether the server works, and how long the last answer took. */
function Activity({ studio }: { readonly studio: Studio }) {
  const latency = studio.latency.value;
  if (studio.busy.value) {
    return (
      <span class="activity busy" id="activity" data-state="busy" role="status">
        {t("Working …")}
      </span>
    );
  }
  return (
    <span class="activity" id="activity" data-state="idle" data-v={latency ?? undefined}>
      {latency !== null &&
        studio.view.value === "write" &&
        t("{n} ms after the last key", { n: Math.round(latency) })}
    </span>
  );
}

function Status({ studio }: { readonly studio: Studio }) {
  if (!studio.online.value) {
    return (
      <p class="status bad" id="offline" role="alert">
        {t("The server does not answer. Nothing is lost: this page goes on as soon as it is back.")}
      </p>
    );
  }
  const { problem } = studio;
  if (problem.value === null && studio.session.value === null && studio.busy.value)
    return <p class="note">{t("The model is being opened: a few seconds the first time.")}</p>;
  if (problem.value === null) return null;
  return (
    <p class="status bad" id="problem" role="alert">
      {problem.value}
    </p>
  );
}
