/** Tensors of a trace: base64 in C order, little endian. */
import type { PackedTensor, Trace } from "./trace";

export interface UnpackedTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array | Uint8Array;
}

function decodeBase64(text: string): Uint8Array {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export function unpack(tensor: PackedTensor): UnpackedTensor {
  const bytes = decodeBase64(tensor.data);
  if (tensor.dtype === "u1") return { shape: tensor.shape, data: bytes };
  const view = new DataView(bytes.buffer);
  const data = new Float32Array(bytes.length / 4);
  for (let i = 0; i < data.length; i++) data[i] = view.getFloat32(4 * i, true);
  return { shape: tensor.shape, data };
}

/** The tensors of one trace, each unpacked on first use. */
export class Arrays {
  private readonly cache = new Map<string, UnpackedTensor>();

  constructor(private readonly trace: Trace) {}

  get(name: string): UnpackedTensor {
    let unpacked = this.cache.get(name);
    if (unpacked === undefined) {
      const tensor = this.trace.tensors[name];
      if (tensor === undefined) throw new Error(`the trace has no tensor "${name}"`);
      unpacked = unpack(tensor);
      this.cache.set(name, unpacked);
    }
    return unpacked;
  }

  /** The vector of one position and head; a single head may be stored without an axis. */
  row(name: string, position: number, head = 0): ArrayLike<number> {
    const { shape, data } = this.get(name);
    const width = shape.at(-1) ?? 1;
    const heads = shape.length === 3 ? (shape[1] ?? 1) : 1;
    const start = (position * heads + (heads > 1 ? head : 0)) * width;
    return data.subarray(start, start + width);
  }

  has(name: string): boolean {
    return name in this.trace.tensors;
  }
}
