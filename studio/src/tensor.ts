/** Arrays of a trace: base64 in C order, little endian. */
import type { Tensor, Trace } from "./trace";

export interface Numbers {
  readonly shape: readonly number[];
  readonly data: Float32Array | Uint8Array;
}

function bytesOf(text: string): Uint8Array {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export function unpack(tensor: Tensor): Numbers {
  const bytes = bytesOf(tensor.data);
  if (tensor.dtype === "u1") return { shape: tensor.shape, data: bytes };
  const view = new DataView(bytes.buffer);
  const data = new Float32Array(bytes.length / 4);
  for (let i = 0; i < data.length; i++) data[i] = view.getFloat32(4 * i, true);
  return { shape: tensor.shape, data };
}

/** The arrays of one trace, each unpacked when it is first asked for. */
export class Arrays {
  private readonly known = new Map<string, Numbers>();

  constructor(private readonly trace: Trace) {}

  get(name: string): Numbers {
    let found = this.known.get(name);
    if (found === undefined) {
      const tensor = this.trace.tensors[name];
      if (tensor === undefined) throw new Error(`the trace has no array "${name}"`);
      found = unpack(tensor);
      this.known.set(name, found);
    }
    return found;
  }

  /** Row `position` of head `head`: of a single head the axis may be missing. */
  row(name: string, position: number, head = 0): ArrayLike<number> {
    const { shape, data } = this.get(name);
    const wide = shape.at(-1) ?? 1;
    const heads = shape.length === 3 ? (shape[1] ?? 1) : 1;
    const start = (position * heads + (heads > 1 ? head : 0)) * wide;
    return data.subarray(start, start + wide);
  }

  has(name: string): boolean {
    return name in this.trace.tensors;
  }
}
