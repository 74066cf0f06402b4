// Written by types.mjs from docs/trace.schema.json: not to be edited.

/** Largest differences between what was recorded and what was computed again; None: not computed. */
export interface Checks {
  row_sum?: number | null;
  softmax?: number | null;
  context?: number | null;
  top_first?: boolean | null;
  moving?: boolean | null;
  score?: number | null;
  said?: number | null;
  output?: number | null;
}

/** A change to what the model did: `op` at a site, step, head and source position. */
export interface Edit {
  op: "set" | "onehot" | "zero" | "uniform" | "permute" | "gold" | "mask-head" | "source" | "prefix";
  site?: string | null;
  step?: number | null;
  head?: number | null;
  position?: number | null;
  value?: number | null;
  text?: string | null;
}

/** Word alignment known from elsewhere, (source word, target word) from 0; sure links are possible too. */
export interface Gold {
  sure: [number, number][];
  possible: [number, number][];
}

/** One site: names of its arrays in `tensors`. */
export interface Looks {
  site: string;
  kind: "cross" | "self" | "pool" | "history" | "tape";
  heads: number;
  mass: "one" | "at_most_one" | "free";
  asks: "target" | "source";
  reads: "target" | "source";
  weight: string;
  score?: string | null;
  query?: string | null;
  value?: string | null;
  context?: string | null;
  mask?: string | null;
  through?: string | null;
  extra: Record<string, string>;
}

export interface Maker {
  package: string;
  version: string;
}

/** Whose trace it is; `settings` is the recipe's [model] section, in the recipe's own words. */
export interface Model {
  name: string;
  task: string;
  settings: Record<string, unknown>;
  parameters?: number | null;
  sha256?: string | null;
}

/** A hypothesis of a beam: one token more than its parent's (-1: the beginning). */
export interface Node {
  id: number;
  parent: number;
  t: number;
  token: number;
  text: string;
  logp: number;
  total: number;
  state: "alive" | "dropped" | "done";
  score?: number | null;
}

/** A picture that was read: its tokens are regions of a grid (rows, columns), row by row. */
export interface Photo {
  href: string;
  width: number;
  height: number;
  grid: [number, number];
}

/** What was read, or written: tokens, the words they make, and the text as it is. */
export interface Side {
  text: string;
  tokens: Token[];
  words: string[];
  reference?: string | null;
  image?: Photo | null;
}

/** What was written at one step: the token before it, the choice, and what else was likely. */
export interface Step {
  logp: number;
  input?: number | null;
  forced: boolean;
  rank?: number | null;
  entropy?: number | null;
  top: Top[];
}

/** Numbers in C order, little endian, as base64: `f4` floats, `u1` truths. `dims` names the axes. */
export interface Tensor {
  dtype: "f4" | "u1";
  shape: number[];
  dims: string[];
  data: string;
}

/** One position: the piece as the vocabulary has it, and the word it belongs to (-1: none). */
export interface Token {
  text: string;
  word: number;
  role: "normal" | "start" | "end" | "unknown";
  id?: number | null;
}

/** A word that could have been written, and how likely it was. */
export interface Top {
  id?: number | null;
  text: string;
  logp: number;
}

/** All that a beam kept, and the weights of each: `weight` (node, head, key) of the alignment's site. */
export interface Tree {
  size: number;
  nodes: Node[];
  best: number[];
  weight?: string | null;
}

/** What would have been likely at a step if a source position had all weight, or none. */
export interface WhatIf {
  op: "onehot" | "zero";
  step: number;
  position: number;
  tvd: number;
  top: Top[];
}

/** One generation: what was read, what was written, and where each step looked. */
export interface Trace {
  schema: "attn-trace/1";
  id: string;
  parent?: string | null;
  created: string;
  detail: "weights" | "steps" | "full";
  generator: Maker;
  model: Model;
  decode: Record<string, unknown>;
  source: Side;
  target: Side;
  gold?: Gold | null;
  steps: Step[];
  sites: Looks[];
  alignment?: string | null;
  shift: number;
  tensors: Record<string, Tensor>;
  combine: Record<string, string>;
  beam?: Tree | null;
  edits: Edit[];
  whatif: WhatIf[];
  checks?: Checks | null;
  tests: Record<string, unknown>;
}
