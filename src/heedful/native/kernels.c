/* The loops where torch spends its time between matrix products, each in one pass.
 *
 * Plain C, called through ctypes; `kernels.py` says the same in torch, and the tests hold the two equal.
 * Loops are written for the compiler to vectorise; this file is built once for each kind of processor, and
 * loader.py takes the right build. Threads are torch's own, so its thread count rules.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

typedef int64_t i64;

/* What this processor can do: 4 (AVX-512 with byte products), 3 (AVX2) or 0. Only the plainest build asks. */
int heed_level(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return 4;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return 3;
#endif
  return 0;
}

/* The compiler is told that numbers are finite, or it would not vectorise; NaN goes through as bits. */
static inline int32_t bits_of(float x) {
  int32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

static inline float of_bits(int32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

static inline int32_t is_nan(float x) { return (bits_of(x) & 0x7FFFFFFF) > 0x7F800000; }

/* y, or NaN where x is. */
static inline float nan_of(float x, float y) { return of_bits(bits_of(y) | (is_nan(x) ? 0x7FC00000 : 0)); }

/* e^x to 1 unit in the last place or two; the clamps keep the exponent's bits sound. */
static inline float fast_exp(float given) {
  float x = given;
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  float n = __builtin_rintf(x * 1.44269504f);
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return nan_of(given, p * of_bits(((int32_t)n + 127) << 23));
}

static inline float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

/* tanh by a ratio of polynomials (the one Eigen uses), within 3e-7 everywhere. */
static inline float fast_tanh(float given) {
  float x = given;
  x = x < -7.90531110763549805f ? -7.90531110763549805f : x;
  x = x > 7.90531110763549805f ? 7.90531110763549805f : x;
  float s = x * x;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return nan_of(given, x * p / q);
}

/* ---- cross-entropy ------------------------------------------------------------------------------------ */

static void entropy_row(float *x, i64 gold, i64 v, float smoothing, float *loss, float *plain) {
  float top = x[0], sum = 0.0f, all = 0.0f;
  int32_t bad = 0;
  for (i64 j = 0; j < v; j++) {
    top = x[j] > top ? x[j] : top;
    bad |= is_nan(x[j]) | (bits_of(x[j]) == 0x7F800000);
  }
  const float right = x[gold] - top;
  for (i64 j = 0; j < v; j++) {
    float shifted = x[j] - top;
    all += shifted;
    x[j] = fast_exp(shifted);
    sum += x[j];
  }
  const float lse = logf(sum), share = smoothing / (float)v, scale = 1.0f / sum;
  for (i64 j = 0; j < v; j++) x[j] = x[j] * scale - share;
  x[gold] -= 1.0f - smoothing;
  *plain = lse - right;
  *loss = (1.0f - smoothing) * (lse - right) + share * ((float)v * lse - all);
  if (bad) *plain = *loss = of_bits(0x7FC00000);
}

/* Each row of scores becomes the gradient of its own loss; `plain` is the loss without smoothing. */
void heed_entropy(float *x, const i64 *gold, i64 n, i64 v, float smoothing, float *loss, float *plain) {
#pragma omp parallel for schedule(static)
  for (i64 i = 0; i < n; i++) entropy_row(x + i * v, gold[i], v, smoothing, loss + i, plain + i);
}

/* What makes a row a distribution: log of the summed exponentials, the sum of all -log p, is any of them no number? */
static void measured_row(const float *x, i64 v, float *lse, float *all, int32_t *bad) {
  float top = x[0], sum = 0.0f, total = 0.0f;
  int32_t wrong = 0;
  for (i64 j = 0; j < v; j++) {
    top = x[j] > top ? x[j] : top;
    wrong |= is_nan(x[j]) | (bits_of(x[j]) == 0x7F800000);
  }
  for (i64 j = 0; j < v; j++) {
    total += x[j] - top;
    sum += fast_exp(x[j] - top);
  }
  *lse = top + logf(sum);
  *all = (float)v * logf(sum) - total;
  *bad |= wrong;
}

static void agreed_row(float *x, float *y, i64 gold, i64 v, float smoothing, float price, float *loss, float *plain) {
  float lx, ly, all_x, all_y, gone = 0.0f, back = 0.0f;
  int32_t bad = 0;
  measured_row(x, v, &lx, &all_x, &bad);
  measured_row(y, v, &ly, &all_y, &bad);
  for (i64 j = 0; j < v; j++) {
    const float a = x[j] - lx, b = y[j] - ly;
    gone += fast_exp(a) * (a - b);
    back += fast_exp(b) * (a - b);
  }
  const float share = smoothing / (float)v, part = price / 4.0f;
  const float right = (lx - x[gold] + ly - y[gold]) / 2.0f;
  for (i64 j = 0; j < v; j++) {
    const float a = x[j] - lx, b = y[j] - ly, p = fast_exp(a), q = fast_exp(b);
    x[j] = 0.5f * (p - share) + part * (p * (a - b - gone) + p - q);
    y[j] = 0.5f * (q - share) + part * (q * (b - a + back) + q - p);
  }
  x[gold] -= 0.5f * (1.0f - smoothing);
  y[gold] -= 0.5f * (1.0f - smoothing);
  *plain = right;
  *loss = (1.0f - smoothing) * right + share * (all_x + all_y) / 2.0f + part * (gone - back);
  if (bad) *plain = *loss = of_bits(0x7FC00000);
}

/* Two readings of the same rows: the mean of their losses and the price of their difference (R-Drop); each row of
   scores becomes its gradient. */
void heed_agreed(float *x, float *y, const i64 *gold, i64 n, i64 v, float smoothing, float price, float *loss,
                 float *plain) {
#pragma omp parallel for schedule(static)
  for (i64 i = 0; i < n; i++)
    agreed_row(x + i * v, y + i * v, gold[i], v, smoothing, price, loss + i, plain + i);
}

/* ---- dropout ------------------------------------------------------------------------------------------- */

/* Whether element i stays is a hash of i and the seed: nothing is stored, the way back asks again. */
static inline uint32_t mixed(uint32_t i, uint32_t seed) {
  uint32_t h = i * 0x9E3779B9u + seed;
  h ^= h >> 16;
  h *= 0x7FEB352Du;
  h ^= h >> 15;
  h *= 0x846CA68Bu;
  h ^= h >> 16;
  return h;
}

static void dropout_part(const float *x, float *y, i64 first, i64 last, uint32_t limit, float scale, uint32_t seed) {
  for (i64 i = first; i < last; i++) y[i] = mixed((uint32_t)i, seed) < limit ? x[i] * scale : 0.0f;
}

void heed_dropout(const float *x, float *y, i64 n, uint32_t limit, float scale, uint32_t seed) {
  const i64 block = 16384;
#pragma omp parallel for schedule(static) if (n > block)
  for (i64 b = 0; b < (n + block - 1) / block; b++) {
    i64 last = (b + 1) * block;
    dropout_part(x, y, b * block, last < n ? last : n, limit, scale, seed);
  }
}

/* ---- additive attention -------------------------------------------------------------------------------- */

static float additive_one(const float *q, const float *p, const float *v, i64 h) {
  float sum = 0.0f;
  for (i64 j = 0; j < h; j++) sum += v[j] * fast_tanh(q[j] + p[j]);
  return sum;
}

static void weigh(const float *w, const float *values, float *context, i64 count, i64 stride, i64 d) {
  for (i64 j = 0; j < d; j++) context[j] = 0.0f;
  for (i64 k = 0; k < count; k++) {
    const float a = w[k], *row = values + k * stride;
    if (a != 0.0f)
      for (i64 j = 0; j < d; j++) context[j] += a * row[j];
  }
}

static void softmax_row(float *w, const uint8_t *keep, i64 s) {
  float top = -3.0e38f, sum = 0.0f;
  for (i64 k = 0; k < s; k++)
    if (keep[k] && w[k] > top) top = w[k];
  for (i64 k = 0; k < s; k++) {
    w[k] = keep[k] ? fast_exp(w[k] - top) : 0.0f;
    sum += w[k];
  }
  if (sum > 0.0f)
    for (i64 k = 0; k < s; k++) w[k] /= sum;
}

/* Row r of q belongs to sentence[r] (without them to sentence r): scores, softmax over what may be read, and what is read. */
void heed_additive(const float *q, const float *keys, const float *v, const uint8_t *keep, const float *values,
                   float *weights, float *context, i64 rows, const i64 *sentence, i64 s, i64 h, i64 d) {
#pragma omp parallel for schedule(static) if (rows > 1)
  for (i64 r = 0; r < rows; r++) {
    const i64 b = sentence ? sentence[r] : r;
    float *w = weights + r * s;
    for (i64 k = 0; k < s; k++)
      w[k] = keep[b * s + k] ? additive_one(q + r * h, keys + (b * s + k) * h, v, h) : 0.0f;
    softmax_row(w, keep + b * s, s);
    weigh(w, values + b * s * d, context + r * d, s, d, d);
  }
}

static float dot(const float *a, const float *b, i64 n) {
  float sum = 0.0f;
  for (i64 j = 0; j < n; j++) sum += a[j] * b[j];
  return sum;
}

static void additive_one_back(const float *q, const float *p, const float *v, float g, float *dq, float *dp, float *dv,
                              i64 h) {
  for (i64 j = 0; j < h; j++) {
    float t = fast_tanh(q[j] + p[j]);
    float slope = g * v[j] * (1.0f - t * t);
    dq[j] += slope;
    dp[j] += slope;
    dv[j] += g * t;
  }
}

static void add_scaled(const float *x, float a, float *y, i64 n) {
  for (i64 j = 0; j < n; j++) y[j] += a * x[j];
}

/* The way back of one step, one row a sentence. dkeys, dvalues and dv (a row for each sentence) are added to. */
void heed_additive_back(const float *q, const float *keys, const float *v, const uint8_t *keep, const float *values,
                        const float *weights, const float *dcontext, const float *dweights, float *dq, float *dkeys,
                        float *dvalues, float *dv, i64 rows, i64 s, i64 h, i64 d) {
#pragma omp parallel for schedule(static)
  for (i64 r = 0; r < rows; r++) {
    const float *w = weights + r * s, *g = dcontext + r * d;
    float *mine = dq + r * h, mean = 0.0f;
    float slopes[s > 0 ? s : 1];
    memset(mine, 0, sizeof(float) * h);
    for (i64 k = 0; k < s; k++) {
      slopes[k] = keep[r * s + k] ? dot(g, values + (r * s + k) * d, d) : 0.0f;
      if (dweights && keep[r * s + k]) slopes[k] += dweights[r * s + k];
      mean += w[k] * slopes[k];
    }
    for (i64 k = 0; k < s; k++) {
      if (!keep[r * s + k]) continue;
      add_scaled(g, w[k], dvalues + (r * s + k) * d, d);
      additive_one_back(q + r * h, keys + (r * s + k) * h, v, w[k] * (slopes[k] - mean), mine,
                        dkeys + (r * s + k) * h, dv + r * h, h);
    }
  }
}

/* ---- GRU cells ------------------------------------------------------------------------------------------ */

static void gru_row(const float *gi, const float *gh, const float *h, float *restrict out, float *restrict r,
                    float *restrict z, float *restrict c, i64 n) {
  for (i64 j = 0; j < n; j++) {
    r[j] = fast_sigmoid(gi[j] + gh[j]);
    z[j] = fast_sigmoid(gi[n + j] + gh[n + j]);
    c[j] = fast_tanh(gi[2 * n + j] + r[j] * gh[2 * n + j]);
    out[j] = c[j] + z[j] * (h[j] - c[j]);
  }
}

/* gi = W_i x + b_i and gh = W_h h + b_h, gates side by side as torch lays them: reset, update, new.
 * `kept` holds the opened gates for the way back. */
void heed_gru(const float *gi, const float *gh, const float *h, float *out, float *kept, i64 rows, i64 n) {
#pragma omp parallel for schedule(static) if (rows * n > 8192)
  for (i64 i = 0; i < rows; i++)
    gru_row(gi + i * 3 * n, gh + i * 3 * n, h + i * n, out + i * n, kept + i * 3 * n, kept + i * 3 * n + n,
            kept + i * 3 * n + 2 * n, n);
}

static void gru_row_back(const float *kept, const float *hn, const float *h, const float *g, float *restrict dgi,
                         float *dgh, float *restrict dh, i64 n) {
#pragma GCC ivdep
  for (i64 j = 0; j < n; j++) {
    float r = kept[j], z = kept[n + j], c = kept[2 * n + j];
    float dc = g[j] * (1.0f - z) * (1.0f - c * c);
    float dz = g[j] * (h[j] - c) * z * (1.0f - z);
    float dr = dc * hn[j] * r * (1.0f - r);
    dgi[j] = dr;
    dgi[n + j] = dz;
    dgi[2 * n + j] = dc;
    dgh[j] = dr;
    dgh[n + j] = dz;
    dgh[2 * n + j] = dc * r;
    dh[j] = g[j] * z;
  }
}

/* `hn` is gh's last third, with rows `hn_stride` apart. dh is what reaches h past the gates. dgh may be `kept`. */
void heed_gru_back(const float *kept, const float *hn, i64 hn_stride, const float *h, const float *g, float *dgi,
                   float *dgh, float *dh, i64 rows, i64 n) {
#pragma omp parallel for schedule(static) if (rows * n > 8192)
  for (i64 i = 0; i < rows; i++)
    gru_row_back(kept + i * 3 * n, hn + i * hn_stride, h + i * n, g + i * n, dgi + i * 3 * n, dgh + i * 3 * n,
                 dh + i * n, n);
}

/* ---- LSTM cells ----------------------------------------------------------------------------------------- */

static void lstm_row(float *restrict in, float *restrict forget, float *restrict new, float *restrict open,
                     const float *c, float *restrict out, float *restrict cell, float *restrict shown, i64 n) {
  for (i64 j = 0; j < n; j++) {
    in[j] = fast_sigmoid(in[j]);
    forget[j] = fast_sigmoid(forget[j]);
    new[j] = fast_tanh(new[j]);
    open[j] = fast_sigmoid(open[j]);
    cell[j] = forget[j] * c[j] + in[j] * new[j];
    shown[j] = fast_tanh(cell[j]);
    out[j] = open[j] * shown[j];
  }
}

/* `gates` are W_i x + b_i + W_h h + b_h, side by side as torch lays them: in, forget, new, out; they are opened in
 * place. `shown` is the tanh of the new cell, for the way back. */
void heed_lstm(float *gates, const float *c, float *out, float *cell, float *shown, i64 rows, i64 n) {
#pragma omp parallel for schedule(static) if (rows * n > 8192)
  for (i64 i = 0; i < rows; i++) {
    float *g = gates + i * 4 * n;
    lstm_row(g, g + n, g + 2 * n, g + 3 * n, c + i * n, out + i * n, cell + i * n, shown + i * n, n);
  }
}

static void lstm_row_back(float *restrict in, float *restrict forget, float *restrict new, float *restrict open,
                          const float *c, const float *shown, const float *dh, float *restrict dc, i64 n) {
  for (i64 j = 0; j < n; j++) {
    float i = in[j], f = forget[j], g = new[j], o = open[j], t = shown[j];
    float d = dc[j] + dh[j] * o * (1.0f - t * t);
    in[j] = d * g * i * (1.0f - i);
    forget[j] = d * c[j] * f * (1.0f - f);
    new[j] = d * i * (1.0f - g * g);
    open[j] = dh[j] * t * o * (1.0f - o);
    dc[j] = d * f;
  }
}

/* The opened gates become the gradients of the gates; `dc`, which reaches the new cell, that of the old one. */
void heed_lstm_back(float *gates, const float *c, const float *shown, const float *dh, float *dc, i64 rows, i64 n) {
#pragma omp parallel for schedule(static) if (rows * n > 8192)
  for (i64 i = 0; i < rows; i++) {
    float *g = gates + i * 4 * n;
    lstm_row_back(g, g + n, g + 2 * n, g + 3 * n, c + i * n, shown + i * n, dh + i * n, dc + i * n, n);
  }
}

/* ---- products with int8 weights -------------------------------------------------------------------------- */

#define BLOCK 4 /* groups of 16 outputs side by side */
#define TALL 6  /* rows at once */

/* Weights are packed for the processor's four-byte products, in the order in which they are read: block after block,
 * [k / 4][groups of the block][16][4], padded with zeros. */
void heed_pack(const int8_t *w, i64 n, i64 k, int8_t *packed) {
  const i64 groups = (n + 15) / 16, quads = (k + 3) / 4;
  memset(packed, 0, groups * quads * 64);
  for (i64 row = 0; row < n; row++) {
    const i64 group = row / 16, first = group / BLOCK * BLOCK, wide = groups - first < BLOCK ? groups - first : BLOCK;
    int8_t *to = packed + (first * quads + group - first) * 64 + row % 16 * 4;
    for (i64 c = 0; c < k; c++) to[c / 4 * wide * 64 + c % 4] = w[row * k + c];
  }
}

static float quantise_row(const float *x, uint8_t *q, i64 k, i64 padded) {
  float top = 0.0f;
  for (i64 j = 0; j < k; j++) {
    float a = x[j] < 0.0f ? -x[j] : x[j];
    top = a > top ? a : top;
  }
  const float step = top > 0.0f ? top / 127.0f : 1.0f, scale = 1.0f / step;
  for (i64 j = 0; j < k; j++) q[j] = (uint8_t)((int32_t)__builtin_rintf(x[j] * scale) + 128);
  for (i64 j = k; j < padded; j++) q[j] = 128;
  return step;
}

#ifdef __AVX512VNNI__
#define AHEAD 4096 /* bytes of weights that are called for before they are needed */
typedef int32_t __attribute__((may_alias, aligned(1))) loose;

/* Sums live in registers only if each is a variable of its own, so rows are spelt out. */
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
  _mm_prefetch((const char *)w + (c * groups + g) * 64 + AHEAD, _MM_HINT_T0);
#define MULTIPLY(r, g) s##r##g = _mm512_dpbusd_epi32(s##r##g, x##r, w##g);
#define TILE(ROWS, GROUPS)                                                                                     \
  static void tile_##ROWS##_##GROUPS(const uint8_t *x, const int8_t *w, i64 quads, int32_t *acc) {             \
    const int groups = GROUPS;                                                                                 \
    EACH_##ROWS(ZERO_##GROUPS) for (i64 c = 0; c < quads; c++) {                                               \
      GROUP_##GROUPS(LOAD, 0) EACH_##ROWS(ROW_##GROUPS)                                                        \
    }                                                                                                          \
    EACH_##ROWS(STORE_##GROUPS)                                                                                \
  }
#define BROADCAST(r) const __m512i x##r = _mm512_set1_epi32(*(const loose *)(x + (r * quads + c) * 4));
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
static const Tile TILES[TALL][BLOCK] = {
    {tile_1_1, tile_1_2, tile_1_3, tile_1_4}, {tile_2_1, tile_2_2, tile_2_3, tile_2_4},
    {tile_3_1, tile_3_2, tile_3_3, tile_3_4}, {tile_4_1, tile_4_2, tile_4_3, tile_4_4},
    {tile_5_1, tile_5_2, tile_5_3, tile_5_4}, {tile_6_1, tile_6_2, tile_6_3, tile_6_4}};
#else
static void product_plain(const uint8_t *x, const int8_t *w, i64 rows, i64 quads, i64 groups, int32_t *acc) {
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

static void scale_row(const int32_t *acc, const int32_t *sums, const float *steps, const float *bias, float step,
                      float *y, i64 count) {
  for (i64 j = 0; j < count; j++) {
    float value = (float)(acc[j] - 128 * sums[j]) * step * steps[j];
    y[j] = bias ? value + bias[j] : value;
  }
}

/* A matrix in bytes: `sums` are its rows summed, `steps` their scales. */
typedef struct {
  const int8_t *packed;
  const int32_t *sums;
  const float *steps;
  const float *bias;
  i64 n, k;
} Matrix;

/* y = x W' + b: x is quantised row by row. `room` holds that: rows * (k + 7) bytes are enough. */
static void multiply(const Matrix *m, const float *x, float *y, uint8_t *room, i64 rows) {
  const i64 n = m->n, k = m->k, quads = (k + 3) / 4, groups = (n + 15) / 16, blocks = (groups + BLOCK - 1) / BLOCK;
  float *scales = (float *)room;
  uint8_t *bytes = room + 4 * rows;
  for (i64 r = 0; r < rows; r++) scales[r] = quantise_row(x + r * k, bytes + r * quads * 4, k, quads * 4);
#pragma omp parallel for schedule(static) if (rows * n * k > 500000)
  for (i64 b = 0; b < blocks; b++) {
    const i64 wide = groups - b * BLOCK < BLOCK ? groups - b * BLOCK : BLOCK;
    const int8_t *w = m->packed + b * BLOCK * quads * 64;
    const i64 first = b * BLOCK * 16, count = n - first < wide * 16 ? n - first : wide * 16;
    int32_t acc[TALL * BLOCK * 16];
    for (i64 r = 0; r < rows; r += TALL) {
      const i64 tall = rows - r < TALL ? rows - r : TALL;
#ifdef __AVX512VNNI__
      TILES[tall - 1][wide - 1](bytes + r * quads * 4, w, quads, acc);
#else
      product_plain(bytes + r * quads * 4, w, tall, quads, wide, acc);
#endif
      for (i64 i = 0; i < tall; i++)
        scale_row(acc + i * wide * 16, m->sums + first, m->steps + first, m->bias ? m->bias + first : NULL,
                  scales[r + i], y + (r + i) * n + first, count);
    }
  }
}

void heed_int8(const Matrix *m, const float *x, float *y, uint8_t *room, i64 rows) { multiply(m, x, y, room, rows); }

/* ---- the likeliest words ---------------------------------------------------------------------------------- */

static float log_sum(const float *x, i64 v) {
  float top = x[0], sum = 0.0f;
  for (i64 j = 1; j < v; j++) top = x[j] > top ? x[j] : top;
  for (i64 j = 0; j < v; j++) sum += fast_exp(x[j] - top);
  return top + logf(sum);
}

static float largest(const float *x, i64 count) {
  float top = x[0];
  for (i64 j = 1; j < count; j++) top = x[j] > top ? x[j] : top;
  return top;
}

/* The `best` likeliest words of each row with their log-probabilities, likeliest first, ties to the first. */
void heed_top(const float *x, i64 rows, i64 v, i64 best, i64 *words, float *logp) {
  const i64 block = 64;
#pragma omp parallel for schedule(static) if (rows * v > 100000)
  for (i64 r = 0; r < rows; r++) {
    const float *row = x + r * v;
    i64 *at = words + r * best, held = 0;
    float *top = logp + r * best;
    for (i64 first = 0; first < v; first += block) {
      const i64 count = v - first < block ? v - first : block;
      if (held == best && !(largest(row + first, count) > top[best - 1])) continue;
      for (i64 j = first; j < first + count; j++) {
        if (held == best && !(row[j] > top[best - 1])) continue;
        i64 place = held < best ? held++ : best - 1;
        while (place > 0 && row[j] > top[place - 1]) {
          top[place] = top[place - 1];
          at[place] = at[place - 1];
          place--;
        }
        top[place] = row[j];
        at[place] = j;
      }
    }
    const float total = log_sum(row, v);
    for (i64 i = 0; i < best; i++) top[i] -= total;
  }
}

/* ---- a GRU decoder's whole step ------------------------------------------------------------------------------ */

/* `mode` and `said` as in engine.py. A matrix that a mode does not know has n = 0. */
typedef struct {
  i64 mode, said, hidden, score, width, fed_width, said_width, word, vocabulary;
  const float *bring;   /* what each word brings to the gates, a row a word */
  const float *vectors; /* word vectors, for the deep read-out */
  const float *v;
  Matrix hidden_m, ask, fed_m, hidden2_m, mix, output;
} Decoder;

enum { LOOK_FIRST, FEED_CONTEXT, FEED_VECTOR, CONDITIONAL, FEED_NOTHING };
enum { LINEAR, AFFINE, TANH, DEEP };

static void tanh_all(float *x, i64 n) {
  for (i64 i = 0; i < n; i++) x[i] = fast_tanh(x[i]);
}

static void beside(float *out, i64 stride, i64 at, const float *part, i64 width, i64 rows) {
  for (i64 r = 0; r < rows; r++) memcpy(out + r * stride + at, part + r * width, sizeof(float) * width);
}

/* One step of every row: h and fed are moved on, weights say where it looked, the `best` likeliest words are found.
 * `room` holds rows * decoder_room floats and the quantised rows. */
void heed_decoder(const Decoder *d, const i64 *words, float *h, float *fed, const float *keys, const float *values,
                  const uint8_t *keep, i64 s, const i64 *sentence, float *weights, i64 rows, i64 best, i64 *top_words,
                  float *top_logp, float *room, i64 never_1, i64 never_2) {
  const i64 n = d->hidden;
  float *gi = room, *gh = gi + rows * 3 * n, *kept = gh + rows * 3 * n, *moved = kept + rows * 3 * n;
  float *query = moved + rows * n, *context = query + rows * d->score, *joined = context + rows * d->width;
  float *said = joined + rows * (n + d->width + d->word), *logits = said + rows * d->said_width;
  uint8_t *bytes = (uint8_t *)(logits + rows * d->vocabulary);
  float *state = h;
  for (i64 r = 0; r < rows; r++) memcpy(gi + r * 3 * n, d->bring + words[r] * 3 * n, sizeof(float) * 3 * n);
  if (d->mode == LOOK_FIRST) {
    multiply(&d->ask, h, query, bytes, rows);
    heed_additive(query, keys, d->v, keep, values, weights, context, rows, sentence, s, d->score, d->width);
    multiply(&d->fed_m, context, gh, bytes, rows);
    for (i64 i = 0; i < rows * 3 * n; i++) gi[i] += gh[i];
  } else if (d->mode == FEED_CONTEXT || d->mode == FEED_VECTOR) {
    multiply(&d->fed_m, fed, gh, bytes, rows);
    for (i64 i = 0; i < rows * 3 * n; i++) gi[i] += gh[i];
  }
  multiply(&d->hidden_m, h, gh, bytes, rows);
  heed_gru(gi, gh, h, moved, kept, rows, n);
  state = moved;
  if (d->mode != LOOK_FIRST) {
    multiply(&d->ask, state, query, bytes, rows);
    heed_additive(query, keys, d->v, keep, values, weights, context, rows, sentence, s, d->score, d->width);
  }
  if (d->mode == CONDITIONAL) {
    multiply(&d->fed_m, context, gi, bytes, rows);
    multiply(&d->hidden2_m, state, gh, bytes, rows);
    heed_gru(gi, gh, state, h, kept, rows, n);
    state = h;
  }
  const i64 wide = n + d->width + (d->said == DEEP ? d->word : 0);
  beside(joined, wide, 0, state, n, rows);
  beside(joined, wide, n, context, d->width, rows);
  if (d->said == DEEP)
    for (i64 r = 0; r < rows; r++)
      memcpy(joined + r * wide + n + d->width, d->vectors + words[r] * d->word, sizeof(float) * d->word);
  if (d->said == LINEAR) {
    said = joined;
  } else {
    multiply(&d->mix, joined, said, bytes, rows);
    if (d->said != AFFINE) tanh_all(said, rows * d->said_width);
  }
  if (d->mode == FEED_VECTOR) memcpy(fed, said, sizeof(float) * rows * d->said_width);
  if (d->mode == FEED_CONTEXT) memcpy(fed, context, sizeof(float) * rows * d->width);
  if (state != h) memcpy(h, state, sizeof(float) * rows * n);
  multiply(&d->output, said, logits, bytes, rows);
  for (i64 r = 0; r < rows; r++) logits[r * d->vocabulary + never_1] = logits[r * d->vocabulary + never_2] = -1e30f;
  heed_top(logits, rows, d->vocabulary, best, top_words, top_logp);
}

/* A whole output of one sentence, each time the likeliest word, until `end` or `most` words; gives how many.
 * Weights of a step lie `apart` from those of the step before; 0 keeps the last ones only. */
i64 heed_decoder_alone(const Decoder *d, i64 first, i64 end, i64 most, float *h, float *fed, const float *keys,
                       const float *values, const uint8_t *keep, i64 s, float *weights, i64 apart, i64 *words,
                       float *logp, float *room, i64 never_1, i64 never_2) {
  const i64 only = 0;
  for (i64 t = 0; t < most; t++) {
    heed_decoder(d, t ? words + t - 1 : &first, h, fed, keys, values, keep, s, &only, weights + t * apart, 1, 1, words + t,
                 logp + t, room, never_1, never_2);
    if (words[t] == end) return t + 1;
  }
  return most;
}

/* A GRU over packed sentences, the way `gru_packed.py` lays them out. `room` holds, for the widest step, a state and
 * two rows of gates in floats, then the bytes of `multiply`. */
void heed_gru_read(const Matrix *hidden, const float *gi, const i64 *sizes, i64 steps, i64 reverse, float *out,
                   float *room, i64 widest, i64 n) {
  float *h = room, *gh = h + widest * n, *kept = gh + widest * 3 * n;
  uint8_t *bytes = (uint8_t *)(kept + widest * 3 * n);
  i64 begins[steps + 1];
  begins[0] = 0;
  for (i64 t = 0; t < steps; t++) begins[t + 1] = begins[t] + sizes[t];
  for (i64 i = 0; i < steps; i++) {
    const i64 t = reverse ? steps - 1 - i : i, other = reverse ? t + 1 : t - 1, rows = sizes[t];
    const i64 old = i == 0 ? 0 : (sizes[other] < rows ? sizes[other] : rows);
    if (old) memcpy(h, out + begins[other] * n, sizeof(float) * old * n);
    memset(h + old * n, 0, sizeof(float) * (rows - old) * n);
    multiply(hidden, h, gh, bytes, rows);
    heed_gru(gi + begins[t] * 3 * n, gh, h, out + begins[t] * n, kept, rows, n);
  }
}

/* ---- a Transformer decoder's whole step --------------------------------------------------------------------- */

typedef struct {
  const float *gain, *shift;
  double epsilon;
} Norm;

typedef struct {
  Norm self_norm, cross_norm, feed_norm;
  Matrix qkv, self_out, cross_query, cross_out, feed_in, feed_out;
} Layer;

typedef struct {
  i64 layers, width, heads, vocabulary;
  const float *vectors;   /* word vectors, scaled */
  const float *positions; /* a row a step */
  const Layer *layer;
  Norm last;
  Matrix output;
} Transformer;

static void norm_row(const Norm *norm, const float *x, float *y, i64 d) {
  float mean = 0.0f, square = 0.0f;
  for (i64 j = 0; j < d; j++) mean += x[j];
  mean /= (float)d;
  for (i64 j = 0; j < d; j++) square += (x[j] - mean) * (x[j] - mean);
  const float scale = 1.0f / sqrtf(square / (float)d + (float)norm->epsilon);
  for (i64 j = 0; j < d; j++) y[j] = (x[j] - mean) * scale * norm->gain[j] + norm->shift[j];
}

static void norm_rows(const Norm *norm, const float *x, float *y, i64 rows, i64 d) {
  for (i64 r = 0; r < rows; r++) norm_row(norm, x + r * d, y + r * d, d);
}

static void add_rows(const float *x, float *y, i64 count) {
  for (i64 i = 0; i < count; i++) y[i] += x[i];
}

static void relu_rows(float *x, i64 count) {
  for (i64 i = 0; i < count; i++) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

/* x += W_out relu(W_in norm(x)); y, part and feed are room. */
static void feed_forward(const Layer *layer, float *x, float *y, float *part, float *feed, uint8_t *bytes, i64 rows) {
  const i64 d = layer->feed_out.n;
  norm_rows(&layer->feed_norm, x, y, rows, d);
  multiply(&layer->feed_in, y, feed, bytes, rows);
  relu_rows(feed, rows * layer->feed_in.n);
  multiply(&layer->feed_out, feed, part, bytes, rows);
  add_rows(part, x, rows * d);
}

/* One head of one row: `at[k]` are the places of its keys, and its values lie `apart` behind them. */
static void attend(const float *q, const float *const *at, i64 apart, i64 count, i64 from, i64 wide, float *w, float *out) {
  const float scale = 1.0f / sqrtf((float)wide);
  float top = -3.0e38f, sum = 0.0f;
  for (i64 k = 0; k < count; k++) {
    w[k] = at[k] ? dot(q + from, at[k] + from, wide) * scale : -3.0e38f;
    top = w[k] > top ? w[k] : top;
  }
  for (i64 k = 0; k < count; k++) {
    w[k] = at[k] ? fast_exp(w[k] - top) : 0.0f;
    sum += w[k];
  }
  for (i64 j = 0; j < wide; j++) out[from + j] = 0.0f;
  for (i64 k = 0; k < count; k++) {
    w[k] = sum > 0.0f ? w[k] / sum : 0.0f;
    if (at[k] && w[k] != 0.0f) add_scaled(at[k] + apart + from, w[k], out + from, wide);
  }
}

/* Looks by dot products: q is [batch][query][head][wide], keys and values [batch][key][head][...], `allowed`
 * [batch][query][key]. Weights come out as [batch][query][head][key]; nothing to read gives zeros. */
void heed_dots(const float *q, const float *keys, const float *values, const uint8_t *allowed, float scale, float *weights,
               float *context, i64 batch, i64 queries, i64 heads, i64 s, i64 wide, i64 d) {
#pragma omp parallel for schedule(static) if (batch * queries > 1)
  for (i64 row = 0; row < batch * queries; row++) {
    const i64 b = row / queries;
    const uint8_t *open = allowed + row * s;
    for (i64 head = 0; head < heads; head++) {
      const float *mine = q + (row * heads + head) * wide;
      float *w = weights + (row * heads + head) * s;
      for (i64 k = 0; k < s; k++) w[k] = open[k] ? scale * dot(mine, keys + ((b * s + k) * heads + head) * wide, wide) : 0.0f;
      softmax_row(w, open, s);
      weigh(w, values + (b * s * heads + head) * d, context + (row * heads + head) * d, s, heads * d, d);
    }
  }
}

/* One step of every row at position `t`. The cache is [layer][step][row][key, value]; `origin` says, for each row and
 * each earlier step, in which row of the cache it was written: rows are never copied when beams part. `keys` and
 * `values` are the source's, of each layer; row r reads those of sentence[r]. Weights are those of these looks,
 * [layer][row][head][key]; `own`, where it is wanted, those of the looks at what was written. */
void heed_transformer(const Transformer *m, i64 t, const i64 *words, float *cache, i64 cache_rows, i64 most,
                      const i64 *origin, const float *const *keys, const float *const *values, const uint8_t *keep,
                      i64 s, const i64 *sentence, float *weights, float *own, i64 rows, i64 best, i64 *top_words, float *top_logp,
                      float *room, i64 never_1, i64 never_2) {
  const i64 d = m->width, wide = d / m->heads;
  const i64 inner = m->layer[0].feed_in.n;
  float *x = room, *y = x + rows * d, *part = y + rows * d, *qkv = part + rows * d, *feed = qkv + rows * 3 * d;
  float *logits = feed + rows * inner;
  uint8_t *bytes = (uint8_t *)(logits + rows * m->vocabulary);
  for (i64 r = 0; r < rows; r++)
    for (i64 j = 0; j < d; j++) x[r * d + j] = m->vectors[words[r] * d + j] + m->positions[t * d + j];
  for (i64 l = 0; l < m->layers; l++) {
    const Layer *layer = m->layer + l;
    float *mine = cache + l * most * cache_rows * 2 * d;
    norm_rows(&layer->self_norm, x, y, rows, d);
    multiply(&layer->qkv, y, qkv, bytes, rows);
    for (i64 r = 0; r < rows; r++)
      memcpy(mine + (t * cache_rows + r) * 2 * d, qkv + r * 3 * d + d, sizeof(float) * 2 * d);
#pragma omp parallel for schedule(static) if (rows > 16)
    for (i64 r = 0; r < rows; r++) {
      const float *at[t + 1];
      float w[t + 1];
      for (i64 k = 0; k < t; k++) at[k] = mine + (k * cache_rows + origin[r * most + k]) * 2 * d;
      at[t] = mine + (t * cache_rows + r) * 2 * d;
      for (i64 head = 0; head < m->heads; head++)
        attend(qkv + r * 3 * d, at, d, t + 1, head * wide, wide,
               own ? own + ((l * rows + r) * m->heads + head) * (t + 1) : w, y + r * d);
    }
    multiply(&layer->self_out, y, part, bytes, rows);
    add_rows(part, x, rows * d);
    norm_rows(&layer->cross_norm, x, y, rows, d);
    multiply(&layer->cross_query, y, qkv, bytes, rows);
#pragma omp parallel for schedule(static) if (rows > 16)
    for (i64 r = 0; r < rows; r++) {
      const i64 b = sentence[r], apart = values[l] - keys[l];
      const float *at[s > 0 ? s : 1], *source = keys[l] + b * s * d;
      for (i64 k = 0; k < s; k++) at[k] = keep[b * s + k] ? source + k * d : NULL;
      for (i64 head = 0; head < m->heads; head++)
        attend(qkv + r * d, at, apart, s, head * wide, wide, weights + ((l * rows + r) * m->heads + head) * s, y + r * d);
    }
    multiply(&layer->cross_out, y, part, bytes, rows);
    add_rows(part, x, rows * d);
    feed_forward(layer, x, y, part, feed, bytes, rows);
  }
  norm_rows(&m->last, x, y, rows, d);
  multiply(&m->output, y, logits, bytes, rows);
  for (i64 r = 0; r < rows; r++) logits[r * m->vocabulary + never_1] = logits[r * m->vocabulary + never_2] = -1e30f;
  heed_top(logits, rows, m->vocabulary, best, top_words, top_logp);
}

/* As `heed_decoder_alone`. The cache has a row a step; `origin` is zeros; `own` has a longer row each step. */
i64 heed_transformer_alone(const Transformer *m, i64 first, i64 end, i64 most, float *cache, const i64 *origin,
                           const float *const *keys, const float *const *values, const uint8_t *keep, i64 s,
                           float *weights, i64 apart, float *own, i64 *words, float *logp, float *room, i64 never_1,
                           i64 never_2) {
  const i64 only = 0;
  for (i64 t = 0; t < most; t++) {
    heed_transformer(m, t, t ? words + t - 1 : &first, cache, 1, most, origin, keys, values, keep, s, &only,
                     weights + t * apart, own, 1, 1, words + t, logp + t, room, never_1, never_2);
    if (own) own += m->layers * m->heads * (t + 1);
    if (words[t] == end) return t + 1;
  }
  return most;
}

/* A Transformer reads packed sentences: rows one after another, those of sentence i from begins[i] on, already with
 * their positions; `x` is used up. Weights, where they are wanted, are [layer][sentence][query][head][key]. */
void heed_reader(const Transformer *m, float *x, const i64 *begins, i64 sentences, float *weights, i64 widest, float *out,
                 float *room) {
  const i64 d = m->width, wide = d / m->heads, rows = begins[sentences], inner = m->layer[0].feed_in.n;
  float *y = room, *part = y + rows * d, *qkv = part + rows * d, *feed = qkv + rows * 3 * d;
  uint8_t *bytes = (uint8_t *)(feed + rows * inner);
  for (i64 l = 0; l < m->layers; l++) {
    const Layer *layer = m->layer + l;
    norm_rows(&layer->self_norm, x, y, rows, d);
    multiply(&layer->qkv, y, qkv, bytes, rows);
#pragma omp parallel for schedule(static) if (sentences > 1)
    for (i64 i = 0; i < sentences; i++) {
      const i64 first = begins[i], count = begins[i + 1] - first;
      const float *at[count > 0 ? count : 1];
      float w[count > 0 ? count : 1];
      for (i64 k = 0; k < count; k++) at[k] = qkv + (first + k) * 3 * d + d;
      for (i64 q = 0; q < count; q++)
        for (i64 head = 0; head < m->heads; head++)
          attend(qkv + (first + q) * 3 * d, at, d, count, head * wide, wide,
                 weights ? weights + (((l * sentences + i) * widest + q) * m->heads + head) * widest : w,
                 y + (first + q) * d);
    }
    multiply(&layer->self_out, y, part, bytes, rows);
    add_rows(part, x, rows * d);
    feed_forward(layer, x, y, part, feed, bytes, rows);
  }
  norm_rows(&m->last, x, out, rows, d);
}

/* ---- looks over histories ------------------------------------------------------------------------------- */

#include "histories.c"
