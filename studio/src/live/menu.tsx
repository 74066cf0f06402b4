/** A button that opens a list of choices; closed by Escape, a choice, or a click elsewhere. */
import type { ComponentChildren } from "preact";

interface Choice {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly choose: () => void;
}

interface Menu {
  readonly id: string;
  readonly label: string;
  readonly items: readonly Choice[];
}

export function menu({ id, label, items }: Menu): ComponentChildren {
  return (
    <details
      class="menu"
      id={id}
      onKeyDown={(event) => {
        if (event.key === "Escape") close(event.currentTarget, true);
        else if (event.key === "ArrowDown" || event.key === "ArrowUp") move(event);
      }}
      onFocusOut={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null))
          close(event.currentTarget, false);
      }}
    >
      <summary>{label}</summary>
      <ul>
        {items.map(({ name, title, about, choose }) => (
          <li key={name}>
            <button
              type="button"
              data-choice={name}
              onClick={(event) => {
                close(event.currentTarget.closest("details")!, true);
                choose();
              }}
            >
              <b>{title}</b> <span>{about}</span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

function close(details: HTMLDetailsElement, focus: boolean): void {
  if (!details.open) return;
  details.open = false;
  if (focus) details.querySelector("summary")?.focus();
}

function move(event: KeyboardEvent & { currentTarget: HTMLDetailsElement }): void {
  event.preventDefault();
  event.stopPropagation();
  const details = event.currentTarget;
  details.open = true;
  const choices = Array.from(details.querySelectorAll<HTMLElement>("li button"));
  const at = choices.indexOf(document.activeElement as HTMLElement);
  const next = event.key === "ArrowDown" ? at + 1 : at < 0 ? choices.length - 1 : at - 1;
  choices[(next + choices.length) % choices.length]?.focus();
}
