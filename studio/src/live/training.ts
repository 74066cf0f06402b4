/** The training that is shown: its state and its messages, which the server keeps. */
import { computed, signal } from "@preact/signals-core";
import type { Trace } from "../trace";
import { getJson, postJson } from "./api";

export interface Validation {
  readonly event: "validation";
  readonly step: number;
  readonly seconds: number;
  readonly train_loss: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly entropy: number;
  readonly aer: number | null;
  readonly traces?: readonly Trace[];
}
type Message =
  | Validation
  | { readonly event: "start"; readonly total: number; readonly done: number }
  | { readonly event: "step"; readonly step: number; readonly loss: number }
  | { readonly event: "log"; readonly text: string }
  | { readonly event: "failed"; readonly detail: string }
  | { readonly event: "done"; readonly model: string }
  | { readonly event: "state"; readonly state: string };

export type State = "none" | "running" | "stopped" | "done" | "failed";

export const job = signal<string | null>(null);
export const state = signal<State>("none");
export const progress = signal<{ step: number; total: number; loss: number | null }>({
  step: 0,
  total: 0,
  loss: null,
});
export const validations = signal<readonly Validation[]>([]);
export const frame = signal<number | null>(null); // of the film; null: the last one
export const sentence = signal(0);
export const problem = signal<string | null>(null);
export const result = signal<string | null>(null); // the trained model
export const shownFrame = computed(() => {
  const last = validations.value.length - 1;
  return Math.min(frame.value ?? last, last);
});
let source: EventSource | null = null;
let asked = false;

/** Show a training that the server already has, after a reload. */
export async function attach(): Promise<void> {
  if (asked) return;
  asked = true;
  try {
    const { trainings } = await getJson<{ trainings: { id: string; messages: number }[] }>("/v1/train");
    const last = trainings.at(-1);
    if (last === undefined || last.messages === 0 || job.value !== null) return;
    job.value = last.id;
    follow();
  } catch {
    asked = false; // the server is away: asked again when the view is opened again
  }
}

export async function begin(body: Readonly<Record<string, unknown>>): Promise<void> {
  problem.value = null;
  try {
    const { id } = await postJson<{ id: string }>("/v1/train", body);
    job.value = id;
    follow();
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
}

export async function act(action: "stop" | "resume"): Promise<void> {
  try {
    await postJson(`/v1/train/${job.value}/${action}`, {});
    if (action === "resume") follow();
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
}

/** Read all messages again: those of before a stop, then new ones. */
function follow(): void {
  source?.close();
  state.value = "running";
  const seen: Validation[] = [];
  source = new EventSource(`/v1/train/${job.value}/events`);
  source.onmessage = ({ data: text }: MessageEvent<string>) => {
    const message = JSON.parse(text) as Message;
    if (message.event === "validation") {
      const known = seen.findIndex(({ step }) => step >= message.step);
      if (known >= 0) seen.splice(known);
      seen.push(message);
      validations.value = [...seen];
    } else if (message.event === "start") {
      state.value = "running";
      progress.value = { step: message.done, total: message.total, loss: null };
    } else if (message.event === "step")
      progress.value = { ...progress.value, step: message.step, loss: message.loss };
    else if (message.event === "failed") problem.value = message.detail;
    else if (message.event === "done") result.value = message.model;
    else if (message.event === "state" && message.state !== "running") state.value = message.state as State;
  };
  source.onerror = () => {
    if (state.value !== "running") source?.close();
  };
}

export function reset(): void {
  source?.close();
  state.value = "none";
  validations.value = [];
  frame.value = result.value = job.value = problem.value = null;
  progress.value = { step: 0, total: 0, loss: null };
}
