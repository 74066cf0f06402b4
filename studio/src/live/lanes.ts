/** The lanes of Compare, as the address writes them: "en-fr~uniform". */
export const MECHANISMS = ["as-is", "uniform", "none"] as const;
export type Mechanism = (typeof MECHANISMS)[number];

export interface Lane {
  readonly model: string;
  readonly mechanism: Mechanism;
}

export const formatLane = ({ model, mechanism }: Lane): string => `${model}~${mechanism}`;

export function parseLane(text: string): Lane {
  const at = text.lastIndexOf("~");
  const mechanism = MECHANISMS.find((name) => name === text.slice(at + 1));
  return mechanism === undefined
    ? { model: text, mechanism: "as-is" }
    : { model: text.slice(0, at), mechanism };
}
