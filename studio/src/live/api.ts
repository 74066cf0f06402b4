/** Requests to the server that this page comes from: cancellable, with problems as sentences. */
import type { Edit, Trace } from "../trace";

export interface ModelInfo {
  readonly name: string;
  readonly task: string;
  readonly verb: string;
  readonly about: string;
  readonly languages?: readonly string[];
  readonly parameters?: number | null;
}

export interface History {
  readonly user?: number | string;
  readonly items?: readonly (number | string)[];
}

/** What a model is asked about. */
export interface Subject {
  readonly model: string;
  readonly input: string | History | Blob;
}

export interface Change {
  readonly edits: readonly Edit[];
  readonly prefix: readonly number[];
}

export interface WhatIf {
  readonly before: Trace;
  readonly after: Trace;
  readonly changed: boolean;
}

/** What the server answered with instead of a result. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly retryAfter: number | null,
  ) {
    super(message);
  }
}

/** The server could not be reached. */
export class Offline extends Error {}

export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...init });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Offline(String(error));
  }
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as { detail?: string; title?: string };
  const retry = Number(response.headers.get("Retry-After"));
  throw new Problem(
    problem.detail ?? problem.title ?? response.statusText,
    response.status,
    response.status === 429 || response.status === 503 ? retry || 1 : null,
  );
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send(path, signal ? { signal } : {})).json()) as T;
}

export async function postJson<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  };
  return (await (await send(path, init)).json()) as T;
}

/** A picture goes beside the fields of the request, everything else in them. */
async function ask<T>(
  path: string,
  { model, input }: Subject,
  fields: Record<string, unknown>,
  signal: AbortSignal,
): Promise<T> {
  if (!(input instanceof Blob)) return postJson<T>(path, { model, input, ...fields }, signal);
  const form = new FormData();
  form.set("request", JSON.stringify({ model, ...fields }));
  form.set("file", input, "picture");
  return (await (await send(path, { method: "POST", body: form, signal })).json()) as T;
}

export type TraceDetail = "weights" | "steps" | "full";

export const requestTrace = (
  subject: Subject,
  fields: {
    readonly detail: TraceDetail;
    readonly prefix?: readonly number[];
    readonly edits?: readonly Edit[];
    readonly what_if?: boolean | null; // null: if the input is short
  },
  signal: AbortSignal,
): Promise<Trace> => ask("/v1/trace", subject, { what_if: false, ...fields }, signal);

export const requestWhatIf = (
  subject: Subject,
  { edits, prefix }: Change,
  detail: TraceDetail,
  signal: AbortSignal,
): Promise<WhatIf> => ask("/v1/whatif", subject, { edits, prefix, detail }, signal);
