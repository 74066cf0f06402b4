/* Linear layers with int8 weights, quantized per output row; inputs are quantized per row in each call. */
#include "int8_tiles.c"

#define TILE_GROUPS 4 /* groups of 16 outputs computed side by side */
#define TILE_ROWS 12  /* input rows computed at once: a multiple of the ROWS of every kernel */
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

/* Pack weights in the order in which products of four bytes read them: tile after tile,
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

/* Quantize a row to bytes of -127..127 plus an offset; return the scale, which is NaN for a row with a NaN or an
 * infinity. Magnitudes are compared by their bits, which have the same order. */
static float quantize_row(const float *x, uint8_t *q, i64 k, i64 padded, int32_t offset) {
  int32_t max_bits = 0;
  for (i64 j = 0; j < k; j++) {
    const int32_t magnitude = float_bits(x[j]) & 0x7FFFFFFF;
    max_bits = magnitude > max_bits ? magnitude : max_bits;
  }
  if (max_bits >= INF_BITS) {
    memset(q, offset, padded);
    return bits_float(NAN_BITS);
  }
  const float max = bits_float(max_bits), scale = max > MIN_MAGNITUDE ? max / 127.0f : 1.0f, inverse = 1.0f / scale;
  for (i64 j = 0; j < k; j++) q[j] = (uint8_t)((int32_t)__builtin_rintf(x[j] * inverse) + offset);
  for (i64 j = k; j < padded; j++) q[j] = (uint8_t)offset;
  return scale;
}

/* From integer sums to floats: remove the offset of the inputs, apply both scales, add the bias. */
static void dequantize_row(const int32_t *acc, int32_t offset, const int32_t *row_sums, const float *scales,
                           const float *bias, float x_scale, float *y, i64 count) {
  for (i64 j = 0; j < count; j++) {
    float value = (float)(acc[j] - offset * row_sums[j]) * x_scale * scales[j];
    y[j] = bias ? value + bias[j] : value;
  }
}

/* y = x W' + b. The workspace holds the quantized x: rows * (k + 7) bytes are enough. */
static void int8_linear(const Int8Matrix *m, const float *x, float *y, uint8_t *workspace, i64 rows) {
  const i64 n = m->n, k = m->k, quads = (k + 3) / 4, groups = (n + 15) / 16;
  const i64 tiles = (groups + TILE_GROUPS - 1) / TILE_GROUPS;
  const Int8Kernel *kernel = int8_kernel;
  float *x_scales = (float *)workspace;
  uint8_t *bytes = workspace + 4 * rows;
  for (i64 r = 0; r < rows; r++) x_scales[r] = quantize_row(x + r * k, bytes + r * quads * 4, k, quads * 4, kernel->offset);
#pragma omp parallel for schedule(static) if (rows * n * k > 500000)
  for (i64 t = 0; t < tiles; t++) {
    const i64 tile_groups = groups - t * TILE_GROUPS < TILE_GROUPS ? groups - t * TILE_GROUPS : TILE_GROUPS;
    const int8_t *w = m->packed + t * TILE_GROUPS * quads * 64;
    const i64 first = t * TILE_GROUPS * 16, count = n - first < tile_groups * 16 ? n - first : tile_groups * 16;
    int32_t acc[TILE_ROWS * TILE_GROUPS * 16];
    for (i64 r = 0; r < rows; r += TILE_ROWS) {
      const i64 tile_rows = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
      kernel->product(bytes + r * quads * 4, w, tile_rows, quads, tile_groups, acc);
      for (i64 i = 0; i < tile_rows; i++)
        dequantize_row(acc + i * tile_groups * 16, kernel->offset, m->row_sums + first, m->scales + first,
                       m->bias ? m->bias + first : NULL, x_scales[r + i], y + (r + i) * n + first, count);
    }
  }
}

void heed_int8_linear(const Int8Matrix *m, const float *x, float *y, uint8_t *workspace, i64 rows) {
  int8_linear(m, x, y, workspace, rows);
}
