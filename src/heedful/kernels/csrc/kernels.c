/* C kernels for operations that torch runs slowly on a CPU: the loops between matrix products, each in one pass.
 *
 * Plain C called through ctypes. The Python modules of this package compute the same with torch, and the tests compare
 * the two. Loops are written so that the compiler vectorizes them; hatch_build.py compiles this file, which includes
 * all others, once per processor level, and loader.py loads the best build that this processor can run. Threads are
 * torch's own OpenMP threads, so torch.set_num_threads applies to them.
 */
#include "common.h"

/* What this processor supports: 4 (AVX-512 with VNNI), 3 (AVX2) or 0. The levels are those of hatch_build.py. */
int heed_cpu_level(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return 4;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return 3;
#endif
  return 0;
}

/* The first of `count` indices that is not in low..high - 1, or -1 if all are. */
i64 heed_find_out_of_range(const i64 *indices, i64 count, i64 low, i64 high) {
  for (i64 i = 0; i < count; i++)
    if (indices[i] < low || indices[i] >= high) return i;
  return -1;
}

/* Whether `count` offsets start at 0, never fall and end at `total`. */
i64 heed_are_offsets(const i64 *offsets, i64 count, i64 total) {
  if (count < 1 || offsets[0] != 0 || offsets[count - 1] != total) return 0;
  for (i64 i = 1; i < count; i++)
    if (offsets[i] < offsets[i - 1]) return 0;
  return 1;
}

#include "cross_entropy.c"
#include "dropout.c"
#include "attention.c"
#include "cells.c"
#include "int8.c"
#include "top_k.c"
#include "rnn_decoder.c"
#include "transformer.c"
#include "history_attention.c"
#include "alignment.c"

/* The sizes of the structs in the order of STRUCTS in kernels/structs.py, which compares them with its own; 0 behind the
 * last. */
i64 heed_struct_size(i64 index) {
  static const i64 sizes[] = {sizeof(Int8Matrix),       sizeof(RnnDecoder),  sizeof(LayerNorm),
                              sizeof(TransformerLayer), sizeof(Transformer), sizeof(HistoryAttention),
                              sizeof(AlignmentCorpus),  sizeof(AlignmentStep)};
  return index >= 0 && index < (i64)(sizeof(sizes) / sizeof(sizes[0])) ? sizes[index] : 0;
}
