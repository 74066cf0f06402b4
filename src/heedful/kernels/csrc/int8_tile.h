/* Products of rows of bytes with a tile of packed weights, for one instruction set. Included once for each; the includer
 * defines
 *
 * NAME                      of the resulting function
 * TARGET                    function attribute that allows the instructions, or nothing
 * VECTOR                    of sums, as wide as one of weights
 * ROWS, PARTS               rows, and vectors of sums of each, that are computed at once
 * SINGLE_PARTS              the same for a row by itself
 * ZERO()                    vector of sums
 * INPUT                     four inputs of a row, in the form that MULTIPLY reads
 * BROADCAST(p)              INPUT of the four bytes at p
 * MULTIPLY(sums, input, p)  sums plus the products with the weights at p
 * STORE(p, sums)
 * PREFETCH                  how many bytes ahead of their use the weights are prefetched
 *
 * Bounds of loops over rows and parts are constants, so that they are unrolled and all sums stay in registers. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define BLOCK JOIN(NAME, _block)
#define UNROLL _Pragma("GCC unroll 8")

TARGET static inline __attribute__((always_inline)) void BLOCK(const uint8_t *x, const int8_t *w, i64 quads, i64 stride,
                                                                const int rows, const int parts, int32_t *acc,
                                                                i64 acc_stride) {
  VECTOR sums[ROWS][SINGLE_PARTS];
  UNROLL for (int r = 0; r < rows; r++)
    UNROLL for (int p = 0; p < parts; p++) sums[r][p] = ZERO();
  for (i64 c = 0; c < quads; c++, w += stride) {
    UNROLL for (int p = 0; p < parts; p++) __builtin_prefetch(w + p * sizeof(VECTOR) + PREFETCH);
    UNROLL for (int r = 0; r < rows; r++) {
      const INPUT input = BROADCAST(x + (r * quads + c) * 4);
      UNROLL for (int p = 0; p < parts; p++) sums[r][p] = MULTIPLY(sums[r][p], input, w + p * sizeof(VECTOR));
    }
  }
  UNROLL for (int r = 0; r < rows; r++)
    UNROLL for (int p = 0; p < parts; p++) STORE(acc + r * acc_stride + p * (sizeof(VECTOR) / 4), sums[r][p]);
}

/* A tile of `groups` groups of 16 outputs; acc is [row][group][16]. */
TARGET static void NAME(const uint8_t *x, const int8_t *w, i64 rows, i64 quads, i64 groups, int32_t *acc) {
  const i64 size = (i64)sizeof(VECTOR), parts = groups * 64 / size, stride = groups * 64, outputs = groups * 16;
  for (i64 r = 0; r < rows; r += ROWS) {
    const int block_rows = rows - r < ROWS ? (int)(rows - r) : ROWS, most = block_rows == 1 ? SINGLE_PARTS : PARTS;
    for (i64 p = 0; p < parts; p += most) {
      const uint8_t *block_x = x + r * quads * 4;
      const int8_t *block_w = w + p * size;
      int32_t *block_acc = acc + r * outputs + p * (size / 4);
      const int block_parts = parts - p < most ? (int)(parts - p) : most;
/* Blocks that cannot occur are compiled as the smallest one. */
#define BLOCK_OF(R, P)                                                                                       \
  case R * 16 + P: {                                                                                         \
    const int possible = R <= ROWS && P <= (R == 1 ? SINGLE_PARTS : PARTS);                                  \
    BLOCK(block_x, block_w, quads, stride, possible ? R : 1, possible ? P : 1, block_acc, outputs);          \
    break;                                                                                                   \
  }
#define BLOCKS_OF(R) BLOCK_OF(R, 1) BLOCK_OF(R, 2) BLOCK_OF(R, 3) BLOCK_OF(R, 4)
      switch (block_rows * 16 + block_parts) {
        BLOCKS_OF(1) BLOCK_OF(1, 5) BLOCK_OF(1, 6) BLOCK_OF(1, 7) BLOCK_OF(1, 8)
        BLOCKS_OF(2) BLOCKS_OF(3) BLOCKS_OF(4) BLOCKS_OF(5) BLOCKS_OF(6)
      }
#undef BLOCKS_OF
#undef BLOCK_OF
    }
  }
}

#undef JOIN_
#undef JOIN
#undef BLOCK
#undef UNROLL
#undef NAME
#undef TARGET
#undef VECTOR
#undef ROWS
#undef PARTS
#undef SINGLE_PARTS
#undef ZERO
#undef INPUT
#undef BROADCAST
#undef MULTIPLY
#undef STORE
#undef PREFETCH
