// Written by types.mjs from docs/trace.schema.json: do not edit.

/** A hypothesis of a beam search: that of its parent node (-1: the empty hypothesis), and one more token. */
export interface BeamNode {
  id: number;
  parent: number;
  step: number;
  token: number;
  text: string;
  logp: number;
  total_logp: number;
  state: "active" | "pruned" | "finished";
  score?: number | null;
}

/** Every hypothesis a beam search kept; `weights` (node, head, key) are those of the alignment site. */
export interface BeamTree {
  beam_size: number;
  nodes: BeamNode[];
  best: number[];
  weights?: string | null;
}

/** A token that could have been generated, and its log-probability. */
export interface Candidate {
  id?: number | null;
  text: string;
  logp: number;
}

/** Largest absolute differences between recorded and recomputed numbers; None: not recomputed. */
export interface Checks {
  row_sum?: number | null;
  weights?: number | null;
  context?: number | null;
  greedy_is_argmax?: boolean | null;
  weights_vary?: boolean | null;
  scores?: number | null;
  features?: number | null;
  output?: number | null;
}

/** The output distribution of a step if a source position had all of the weight, or none. */
export interface Counterfactual {
  op: "onehot" | "zero";
  step: number;
  position: number;
  tvd: number;
  top: Candidate[];
}

/** A change to a generation: an operation at a site, step, head and source position. */
export interface Edit {
  op: "set" | "onehot" | "zero" | "uniform" | "permute" | "gold" | "mask-head" | "source" | "prefix";
  site?: string | null;
  step?: number | null;
  head?: number | null;
  position?: number | null;
  value?: number | null;
  text?: string | null;
}

/** The package that wrote the trace. */
export interface Generator {
  package: string;
  version: string;
}

/** A reference word alignment: (source word, target word), counted from 0. Sure links are also possible. */
export interface Gold {
  sure: [number, number][];
  possible: [number, number][];
}

/** The traced model; `settings` is the [model] section of its recipe. */
export interface ModelInfo {
  name: string;
  task: string;
  settings: Record<string, unknown>;
  parameters?: number | null;
  sha256?: string | null;
}

/** Numbers in C order, little endian, as base64: `f4` is float32, `u1` is boolean. `dims` names the axes. */
export interface PackedTensor {
  dtype: "f4" | "u1";
  shape: number[];
  dims: string[];
  data: string;
}

/** The input or the output: its text, its tokens, and the words they belong to. */
export interface Side {
  text: string;
  tokens: Token[];
  words: string[];
  reference?: string | null;
  image?: SourceImage | null;
}

/** The attention of one site. Arrays are given by their names in `tensors`. */
export interface SiteRecord {
  site: string;
  kind: "cross" | "self" | "pool" | "history" | "tape";
  heads: number;
  mass: "one" | "at_most_one" | "free";
  query_side: "target" | "source";
  key_side: "target" | "source";
  weights: string;
  scores?: string | null;
  query?: string | null;
  values?: string | null;
  context?: string | null;
  keep?: string | null;
  keys_from?: string | null;
  extras: Record<string, string>;
}

/** The input image. Its tokens are the regions of a grid (rows, columns), row by row. */
export interface SourceImage {
  data_uri: string;
  width: number;
  height: number;
  grid: [number, number];
}

/** One decoding step: the input token, the log-probability of the output token, and likely candidates. */
export interface Step {
  logp: number;
  input?: number | null;
  forced: boolean;
  rank?: number | null;
  entropy?: number | null;
  top: Candidate[];
}

/** One position: the token as the vocabulary writes it, and the index of its word (-1: none). */
export interface Token {
  text: string;
  word: number;
  role: "normal" | "start" | "end" | "unknown";
  id?: number | null;
}

/** One generation: its input, its output, and the attention of every step. */
export interface Trace {
  schema: "attn-trace/2";
  id: string;
  parent?: string | null;
  created: string;
  detail: "weights" | "steps" | "full";
  generator: Generator;
  model: ModelInfo;
  decoding: Record<string, unknown>;
  source: Side;
  target: Side;
  gold?: Gold | null;
  steps: Step[];
  sites: SiteRecord[];
  alignment_site?: string | null;
  shift: number;
  tensors: Record<string, PackedTensor>;
  intermediates: Record<string, string>;
  beam?: BeamTree | null;
  edits: Edit[];
  counterfactuals: Counterfactual[];
  checks?: Checks | null;
  attributions: Record<string, string>;
}
