/** Photo: drop a picture, see its caption and where each word looked; paint over a part and caption again. */
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { t } from "../i18n";
import { positionAt, tickAt } from "../timeline";
import { findSite, stepWeights, type Ui } from "../ui";
import { photo } from "../views/photo";
import { send } from "./api";
import { wordGroups } from "./edits";
import { node } from "./node";
import type { Studio } from "./store";

const BRUSH = 0.07; // of the picture's longer side
const GRAY = "#808080";
const painting = signal(false);
const original = signal<Blob | null>(null); // the picture before it was painted over

export function picture(studio: Studio, ui: Ui | null): ComponentChildren {
  const trace = ui?.trace.source.image != null ? ui.trace : null;
  const take = (file: Blob | null | undefined): void => {
    if (file == null || !file.type.startsWith("image/")) return;
    original.value = null;
    painting.value = false;
    studio.setImage(file);
  };
  return (
    <>
      <section
        class="drop"
        aria-label={t("Picture")}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          take(event.dataTransfer?.files[0]);
        }}
        onPaste={(event) => take(event.clipboardData?.files[0])}
      >
        <label class="file" for="picture">
          <span class="file-title">
            {trace === null
              ? t("Drop a picture here, paste one, or choose a file")
              : t("Another picture: drop, paste or choose it")}
          </span>
          <input
            id="picture"
            type="file"
            accept="image/*"
            onChange={(event) => take(event.currentTarget.files?.[0])}
          />
        </label>
        <p class="letters">
          {t("The picture stays on this machine. The captioner knows people, dogs and sports best.")}
        </p>
      </section>
      {trace === null && !studio.busy.value && (
        <section class="empty">
          <p>
            {t("The model describes the picture, and shows for every word of its caption where it looked.")}
          </p>
          <button type="button" class="primary" id="sample-picture" onClick={() => void sample(studio)}>
            {t("Try it with a portrait")}
          </button>
        </section>
      )}
      {ui !== null && trace !== null && (
        <>
          <p class="output" id="output" aria-live="polite">
            {trace.target.text}
          </p>
          {panels(ui)}
          <Eraser studio={studio} uri={trace.source.image!.data_uri} />
          {node(photo(ui))}
        </>
      )}
    </>
  );
}

/** A picture that the server has. */
async function sample(studio: Studio): Promise<void> {
  try {
    studio.setImage(await (await send("/studio/sample.jpg")).blob());
  } catch (error) {
    studio.problem.value = String((error as Error).message);
  }
}

/** One small picture per word, bright where the word looked. */
function panels(ui: Ui): ComponentChildren {
  const { trace, state } = ui;
  const image = trace.source.image!;
  const record = findSite(trace, state.site);
  if (record === null) return null;
  const weights = stepWeights(ui, record);
  const { step } = positionAt(ui.timeline, state.tick);
  const [rows, columns] = image.grid;
  return (
    <div class="panels" role="group" aria-label={t("Words of the caption")}>
      {wordGroups(trace.target)
        .filter(({ special }) => !special)
        .map(({ text, positions }, i) => {
          const at = positions[0]!;
          const id = `panel-${i}`;
          ui.onPaint(id, (canvas) => shade(canvas, weights[at] ?? [], columns));
          return (
            <button
              type="button"
              class="panel"
              key={i}
              aria-pressed={positions.includes(step)}
              onClick={() => ui.setState({ tick: tickAt(ui.timeline, at, 1), position: null })}
            >
              <span class="frame" style={{ "aspect-ratio": `${image.width} / ${image.height}` }}>
                <canvas data-canvas={id} width={columns} height={rows} aria-hidden="true" />
              </span>
              {text}
            </button>
          );
        })}
    </div>
  );
}

function shade(canvas: HTMLCanvasElement, values: readonly number[], columns: number): void {
  const pen = canvas.getContext("2d");
  if (pen === null) return;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const largest = Math.max(...values) || 1;
  values.forEach((value, region) => {
    pen.fillStyle = `rgb(0 0 0 / ${(0.82 * (1 - value / largest)).toFixed(3)})`;
    pen.fillRect(region % columns, Math.floor(region / columns), 1, 1);
  });
}

function Eraser({ studio, uri }: { readonly studio: Studio; readonly uri: string }) {
  if (!painting.value) {
    return (
      <p class="actions">
        <button
          type="button"
          id="paint-over"
          onClick={() => {
            painting.value = true;
          }}
        >
          {t("Paint over a part of the picture")}
        </button>
        {original.value !== null && (
          <button
            type="button"
            id="restore-picture"
            onClick={() => {
              studio.setImage(original.value!);
              original.value = null;
            }}
          >
            {t("Back to the original picture")}
          </button>
        )}
      </p>
    );
  }
  return (
    <section class="card" aria-label={t("Paint over a part of the picture")}>
      <div class="eraser-frame">
        <canvas
          class="eraser"
          id="eraser"
          aria-label={t("Picture to paint over; keyboard: arrow keys move the brush, Space paints")}
          tabIndex={0}
          ref={(canvas) => {
            if (canvas !== null && canvas.dataset.uri !== uri) load(canvas, uri);
          }}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            dab(event.currentTarget, event.offsetX, event.offsetY);
          }}
          onPointerMove={(event) => {
            if (event.buttons > 0) dab(event.currentTarget, event.offsetX, event.offsetY);
          }}
          onKeyDown={brushKey}
        />
        <span
          class="brush"
          aria-hidden="true"
          style={{ left: `${100 * brush.value.x}%`, top: `${100 * brush.value.y}%` }}
        />
      </div>
      <p class="actions">
        <button
          type="button"
          class="primary"
          id="caption-again"
          onClick={() => {
            const canvas = document.querySelector<HTMLCanvasElement>("#eraser");
            canvas?.toBlob((blob) => {
              if (blob === null) return;
              original.value ??= studio.image.value;
              painting.value = false;
              studio.setImage(blob);
            }, "image/png");
          }}
        >
          {t("Caption again")}
        </button>
        <button
          type="button"
          onClick={() => {
            painting.value = false;
          }}
        >
          {t("Cancel")}
        </button>
      </p>
    </section>
  );
}

function load(canvas: HTMLCanvasElement, uri: string): void {
  canvas.dataset.uri = uri;
  const image = new Image();
  image.onload = () => {
    canvas.width = image.naturalWidth;
    canvas.height = image.naturalHeight;
    canvas.getContext("2d")?.drawImage(image, 0, 0);
  };
  image.src = uri;
}

function dab(canvas: HTMLCanvasElement, x: number, y: number): void {
  const pen = canvas.getContext("2d");
  const scale = canvas.width / canvas.clientWidth;
  if (pen === null) return;
  pen.fillStyle = GRAY;
  pen.beginPath();
  pen.arc(x * scale, y * scale, BRUSH * Math.max(canvas.width, canvas.height), 0, 2 * Math.PI);
  pen.fill();
}

const brush = signal({ x: 0.5, y: 0.5 }); // shares of the width and height

function brushKey(event: KeyboardEvent & { currentTarget: HTMLCanvasElement }): void {
  const moves: Record<string, readonly [number, number]> = {
    ArrowLeft: [-BRUSH, 0],
    ArrowRight: [BRUSH, 0],
    ArrowUp: [0, -BRUSH],
    ArrowDown: [0, BRUSH],
  };
  const move = moves[event.key];
  const canvas = event.currentTarget;
  if (move === undefined && event.key !== " ") return;
  event.preventDefault();
  event.stopPropagation();
  if (move !== undefined) {
    const { x, y } = brush.value;
    brush.value = { x: Math.max(0, Math.min(1, x + move[0])), y: Math.max(0, Math.min(1, y + move[1])) };
  } else dab(canvas, brush.value.x * canvas.clientWidth, brush.value.y * canvas.clientHeight);
}
