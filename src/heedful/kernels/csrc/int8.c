/* Linear layers with int8 weights, quantized per output row; inputs are quantized per row in each call. */
#include "common.h"

#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

#define TILE_GROUPS 4 /* groups of 16 outputs computed side by side */
#define TILE_ROWS 6   /* input rows computed at once */
#define MIN_MAGNITUDE 1e-30f /* rows of smaller numbers count as zeros: the inverse of their scale may be infinite */

/* An (n, k) weight matrix: W[i][j] = scales[i] * q[i][j] with q in -127..127, see heed_pack_int8. `row_sums` are the
 * sums of the rows of q, `bias` may be NULL. Mirrored by kernels/structs.py. */
typedef struct {
  const int8_t *packed;
  const int32_t *row_sums;
  const float *scales;
  const float *bias;
  i64 n, k;
} Int8Matrix;

/* Pack weights in the order in which the four-byte products of VNNI read them: tile after tile,
 * [k / 4][groups of the tile][16 outputs][4 inputs], padded with zeros. */
void heed_pack_int8(const int8_t *w, i64 n, i64 k, int8_t *packed) {
  const i64 groups = (n + 15) / 16, quads = (k + 3) / 4;
  memset(packed, 0, groups * quads * 64);
  for (i64 row = 0; row < n; row++) {
    const i64 group = row / 16, first = group / TILE_GROUPS * TILE_GROUPS;
    const i64 tile_groups = groups - first < TILE_GROUPS ? groups - first : TILE_GROUPS;
    int8_t *to = packed + (first * quads + group - first) * 64 + row % 16 * 4;
    for (i64 c = 0; c < k; c++) to[c / 4 * tile_groups * 64 + c % 4] = w[row * k + c];
  }
}

/* Quantize a row to 8 bits, stored with an offset of 128 because VNNI multiplies unsigned with signed bytes; return
 * the scale, which is NaN for a row with a NaN or an infinity. Magnitudes are compared by their bits, which have the
 * same order. */
static float quantize_row(const float *x, uint8_t *q, i64 k, i64 padded) {
  int32_t max_bits = 0;
  for (i64 j = 0; j < k; j++) {
    const int32_t magnitude = float_bits(x[j]) & 0x7FFFFFFF;
    max_bits = magnitude > max_bits ? magnitude : max_bits;
  }
  if (max_bits >= INF_BITS) {
    memset(q, 128, padded);
    return bits_float(NAN_BITS);
  }
  const float max = bits_float(max_bits), scale = max > MIN_MAGNITUDE ? max / 127.0f : 1.0f, inverse = 1.0f / scale;
  for (i64 j = 0; j < k; j++) q[j] = (uint8_t)((int32_t)__builtin_rintf(x[j] * inverse) + 128);
  for (i64 j = k; j < padded; j++) q[j] = 128;
  return scale;
}

#ifdef __AVX512VNNI__
#define PREFETCH 4096 /* bytes: how far ahead of their use the weights are prefetched */
typedef int32_t __attribute__((may_alias, aligned(1))) unaligned_int;

/* tile_R_G multiplies R rows of x with G groups of 16 outputs. The compiler keeps the accumulators in registers only if
 * each is a variable of its own, hence the macros that spell out rows and groups. */
#define EACH_1(X) X(0)
#define EACH_2(X) EACH_1(X) X(1)
#define EACH_3(X) EACH_2(X) X(2)
#define EACH_4(X) EACH_3(X) X(3)
#define EACH_5(X) EACH_4(X) X(4)
#define EACH_6(X) EACH_5(X) X(5)
#define GROUP_1(X, r) X(r, 0)
#define GROUP_2(X, r) GROUP_1(X, r) X(r, 1)
#define GROUP_3(X, r) GROUP_2(X, r) X(r, 2)
#define GROUP_4(X, r) GROUP_3(X, r) X(r, 3)
#define ZERO(r, g) __m512i s##r##g = _mm512_setzero_si512();
#define LOAD(r, g)                                                       \
  const __m512i w##g = _mm512_loadu_si512(w + (c * groups + g) * 64);    \
  _mm_prefetch((const char *)w + (c * groups + g) * 64 + PREFETCH, _MM_HINT_T0);
#define MULTIPLY(r, g) s##r##g = _mm512_dpbusd_epi32(s##r##g, x##r, w##g);
#define TILE(ROWS, GROUPS)                                                                                     \
  static void tile_##ROWS##_##GROUPS(const uint8_t *x, const int8_t *w, i64 quads, int32_t *acc) {             \
    const int groups = GROUPS;                                                                                 \
    EACH_##ROWS(ZERO_##GROUPS) for (i64 c = 0; c < quads; c++) {                                               \
      GROUP_##GROUPS(LOAD, 0) EACH_##ROWS(ROW_##GROUPS)                                                        \
    }                                                                                                          \
    EACH_##ROWS(STORE_##GROUPS)                                                                                \
  }
#define BROADCAST(r) const __m512i x##r = _mm512_set1_epi32(*(const unaligned_int *)(x + (r * quads + c) * 4));
#define STORE(r, g) _mm512_storeu_si512(acc + (r * groups + g) * 16, s##r##g);
#define ZERO_1(r) GROUP_1(ZERO, r)
#define ZERO_2(r) GROUP_2(ZERO, r)
#define ZERO_3(r) GROUP_3(ZERO, r)
#define ZERO_4(r) GROUP_4(ZERO, r)
#define ROW_1(r) BROADCAST(r) GROUP_1(MULTIPLY, r)
#define ROW_2(r) BROADCAST(r) GROUP_2(MULTIPLY, r)
#define ROW_3(r) BROADCAST(r) GROUP_3(MULTIPLY, r)
#define ROW_4(r) BROADCAST(r) GROUP_4(MULTIPLY, r)
#define STORE_1(r) GROUP_1(STORE, r)
#define STORE_2(r) GROUP_2(STORE, r)
#define STORE_3(r) GROUP_3(STORE, r)
#define STORE_4(r) GROUP_4(STORE, r)
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1)
TILE(1, 2) TILE(2, 2) TILE(3, 2) TILE(4, 2) TILE(5, 2) TILE(6, 2)
TILE(1, 3) TILE(2, 3) TILE(3, 3) TILE(4, 3) TILE(5, 3) TILE(6, 3)
TILE(1, 4) TILE(2, 4) TILE(3, 4) TILE(4, 4) TILE(5, 4) TILE(6, 4)
typedef void (*Tile)(const uint8_t *, const int8_t *, i64, int32_t *);
static const Tile TILES[TILE_ROWS][TILE_GROUPS] = {
    {tile_1_1, tile_1_2, tile_1_3, tile_1_4}, {tile_2_1, tile_2_2, tile_2_3, tile_2_4},
    {tile_3_1, tile_3_2, tile_3_3, tile_3_4}, {tile_4_1, tile_4_2, tile_4_3, tile_4_4},
    {tile_5_1, tile_5_2, tile_5_3, tile_5_4}, {tile_6_1, tile_6_2, tile_6_3, tile_6_4}};
#else
/* The same for processors without VNNI. */
static void int8_product(const uint8_t *x, const int8_t *w, i64 rows, i64 quads, i64 groups, int32_t *acc) {
  for (i64 r = 0; r < rows; r++)
    for (i64 g = 0; g < groups; g++)
      for (i64 lane = 0; lane < 16; lane++) {
        int32_t sum = 0;
        for (i64 c = 0; c < quads; c++)
          for (i64 b = 0; b < 4; b++)
            sum += (int32_t)x[r * quads * 4 + c * 4 + b] * w[(c * groups + g) * 64 + lane * 4 + b];
        acc[(r * groups + g) * 16 + lane] = sum;
      }
}
#endif

/* From integer sums to floats: remove the offset of 128, apply both scales, add the bias. */
static void dequantize_row(const int32_t *acc, const int32_t *row_sums, const float *scales, const float *bias,
                           float x_scale, float *y, i64 count) {
  for (i64 j = 0; j < count; j++) {
    float value = (float)(acc[j] - 128 * row_sums[j]) * x_scale * scales[j];
    y[j] = bias ? value + bias[j] : value;
  }
}

/* y = x W' + b. The workspace holds the quantized x: rows * (k + 7) bytes are enough. */
static void int8_linear(const Int8Matrix *m, const float *x, float *y, uint8_t *workspace, i64 rows) {
  const i64 n = m->n, k = m->k, quads = (k + 3) / 4, groups = (n + 15) / 16;
  const i64 tiles = (groups + TILE_GROUPS - 1) / TILE_GROUPS;
  float *x_scales = (float *)workspace;
  uint8_t *bytes = workspace + 4 * rows;
  for (i64 r = 0; r < rows; r++) x_scales[r] = quantize_row(x + r * k, bytes + r * quads * 4, k, quads * 4);
#pragma omp parallel for schedule(static) if (rows * n * k > 500000)
  for (i64 t = 0; t < tiles; t++) {
    const i64 tile_groups = groups - t * TILE_GROUPS < TILE_GROUPS ? groups - t * TILE_GROUPS : TILE_GROUPS;
    const int8_t *w = m->packed + t * TILE_GROUPS * quads * 64;
    const i64 first = t * TILE_GROUPS * 16, count = n - first < tile_groups * 16 ? n - first : tile_groups * 16;
    int32_t acc[TILE_ROWS * TILE_GROUPS * 16];
    for (i64 r = 0; r < rows; r += TILE_ROWS) {
      const i64 tile_rows = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
#ifdef __AVX512VNNI__
      TILES[tile_rows - 1][tile_groups - 1](bytes + r * quads * 4, w, quads, acc);
#else
      int8_product(bytes + r * quads * 4, w, tile_rows, quads, tile_groups, acc);
#endif
      for (i64 i = 0; i < tile_rows; i++)
        dequantize_row(acc + i * tile_groups * 16, m->row_sums + first, m->scales + first,
                       m->bias ? m->bias + first : NULL, x_scales[r + i], y + (r + i) * n + first, count);
    }
  }
}

void heed_int8_linear(const Int8Matrix *m, const float *x, float *y, uint8_t *workspace, i64 rows) {
  int8_linear(m, x, y, workspace, rows);
}
