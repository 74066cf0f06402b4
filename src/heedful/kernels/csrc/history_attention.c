/* Attention over histories of items (He 2018, NAIS), with its loss and gradients.
 *
 * An entry is one history of n items and several targets that attend to it, each masking its own item. The keys of an
 * entry are loaded once: 16 side by side in the lanes of a vector, component by component. Targets are independent of
 * one another, so each runs forward and backward at once while its data is in the cache. Nothing is padded to another
 * entry's length; widths are padded to multiples of 16.
 */
#include "common.h"

#define LANES 16
#define MIN_WEIGHT 1e-18f /* too small to change any sum; products of smaller (denormal) numbers are slow */
#define MIN_SLOPE 1e-16f
typedef float vec __attribute__((vector_size(64)));
typedef int32_t vec_int __attribute__((vector_size(64)));

enum { PROD, CONCAT, DOT };

/* One call; mirrored by kernels/structs.py. Entry e has items[item_offsets[e]..item_offsets[e + 1]] and
 * targets[target_offsets[e]..target_offsets[e + 1]]. With p the target's vector (`queries`) and q an item's (`keys`),
 * the score is h' relu(W (p * q) + b) with w (hidden, width) for PROD, h' relu(W [p; q] + b) with w (hidden, 2 width)
 * for CONCAT, and scale * p . q without parameters for DOT. Without `labels` only logits are computed, without `dkeys`
 * no gradients. Gradients of the parameters are accumulated. */
typedef struct {
  i64 kind, width, hidden, entries;
  const i64 *items, *item_offsets, *targets, *target_offsets;
  const float *keys, *queries, *bias, *labels, *w, *b, *h;
  float *logits, *loss, *dlogits, *dkeys, *dqueries, *dw, *db, *dh;
  double beta, scale;
} HistoryAttention;

/* Padded parameters and their gradients; w2 is the half of CONCAT's matrix that multiplies the keys, w_transposed the
 * other half, transposed. */
typedef struct {
  float *w, *w2, *w_transposed, *b, *h, *dw, *dw2;
  vec *db, *dh;
} Parameters;

/* Workspace of one entry. Keys in lanes (x) and in rows; hidden layer z and v, its part that depends only on the keys;
 * a: the matrix times the target's vector p; per key: score f, product s = p . q, weight w, and in g first the softmax,
 * then the gradient of the score. */
typedef struct {
  vec *x, *dx, *z, *v, *dv;
  float *rows, *a, *p, *f, *s, *w, *g;
  int32_t *items;
} Workspace;

static void *alloc_zeros(i64 floats) {
  const size_t bytes = (size_t)((floats + LANES) / LANES) * 64;
  void *memory = aligned_alloc(64, bytes);
  if (memory) memset(memory, 0, bytes);
  return memory;
}

static inline float sum_lanes(const vec *x) {
  float sum = 0.0f;
  for (int j = 0; j < LANES; j++) sum += ((const float *)x)[j];
  return sum;
}

/* z[k] = b[k] + sum_d a[k][d] x[d] for 16 keys. */
static void matvec(const float *a, const float *b, const vec *x, vec *z, i64 d, i64 k) {
  for (i64 r = 0; r < k; r += 8) {
    const float *row = a + r * d;
    vec z0 = b[r] - (vec){0}, z1 = b[r + 1] - (vec){0}, z2 = b[r + 2] - (vec){0}, z3 = b[r + 3] - (vec){0};
    vec z4 = b[r + 4] - (vec){0}, z5 = b[r + 5] - (vec){0}, z6 = b[r + 6] - (vec){0}, z7 = b[r + 7] - (vec){0};
#pragma GCC unroll 4
    for (i64 j = 0; j < d; j++) {
      const vec here = x[j];
      z0 += row[j] * here;
      z1 += row[d + j] * here;
      z2 += row[2 * d + j] * here;
      z3 += row[3 * d + j] * here;
      z4 += row[4 * d + j] * here;
      z5 += row[5 * d + j] * here;
      z6 += row[6 * d + j] * here;
      z7 += row[7 * d + j] * here;
    }
    z[r] = z0, z[r + 1] = z1, z[r + 2] = z2, z[r + 3] = z3;
    z[r + 4] = z4, z[r + 5] = z5, z[r + 6] = z6, z[r + 7] = z7;
  }
}

/* dx[d] += sum_k a[k][d] dz[k] for 16 keys. */
static void matvec_backward(const float *a, const vec *dz, vec *dx, i64 d, i64 k) {
  for (i64 first = 0; first < d; first += LANES) {
    vec sum[LANES];
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++) sum[j] = dx[first + j];
    for (i64 r = 0; r < k; r++) {
      const vec here = dz[r];
      const float *row = a + r * d + first;
#pragma GCC unroll 16
      for (int j = 0; j < LANES; j++) sum[j] += row[j] * here;
    }
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++) dx[first + j] = sum[j];
  }
}

/* sum[r] = sum_i dz[r][i] rows[i] over all n keys, for 16 rows of dz and 16 components of a key. */
static inline void outer_sums(const vec *dz, const float *rows, i64 n, i64 d, i64 k, vec *sums) {
  vec sum[LANES];
#pragma GCC unroll 16
  for (int r = 0; r < LANES; r++) sum[r] = (vec){0};
  for (i64 i = 0; i < n; i++) {
    const vec here = *(const vec *)(rows + i * d);
    const float *slope = (const float *)(dz + i / LANES * k) + i % LANES;
#pragma GCC unroll 16
    for (int r = 0; r < LANES; r++) sum[r] += slope[r * LANES] * here;
  }
#pragma GCC unroll 16
  for (int r = 0; r < LANES; r++) sums[r] = sum[r];
}

/* sum_i a[i] x[i] for a count that is a multiple of 16; four partial sums hide the latency of the additions. */
static inline vec weighted_vecs(const float *a, const vec *x, i64 stride, i64 count) {
  vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (i64 i = 0; i < count; i += 4, x += 4 * stride) {
    s0 += a[i] * x[0];
    s1 += a[i + 1] * x[stride];
    s2 += a[i + 2] * x[2 * stride];
    s3 += a[i + 3] * x[3 * stride];
  }
  return (s0 + s1) + (s2 + s3);
}

/* z = relu(z); f = h . z */
static void relu_dot(vec *z, const float *h, vec *f, i64 k) {
#pragma GCC unroll 16
  for (i64 r = 0; r < k; r++) z[r] = (vec)((vec_int)z[r] & (z[r] > 0.0f));
  *f = weighted_vecs(h, z, 1, k);
}

/* Backward pass of relu_dot for score gradients g: z is replaced by its gradient. */
static void relu_dot_backward(vec *z, const float *h, const float *g, vec *db, vec *dh, i64 k) {
  const vec slope = *(const vec *)g;
  for (i64 r = 0; r < k; r++) {
    const vec_int active = z[r] > 0.0f;
    dh[r] += slope * z[r];
    z[r] = (vec)((vec_int)(h[r] * slope) & active);
    db[r] += z[r];
  }
}

/* From scores f to weights w = exp(f - beta logsumexp f) and their softmax in g; return 0 if all items are masked. */
static int compute_weights(const float *f, const int32_t *items, int32_t own, float beta, float *w, float *g, i64 n) {
  float max = LOWEST, sum = 0.0f;
  int32_t invalid = 0;
  for (i64 i = 0; i < n; i++) {
    const float score = items[i] >= 0 && items[i] != own ? f[i] : LOWEST;
    max = score > max ? score : max;
    invalid |= is_nan(score);
  }
  if (max == LOWEST && !invalid) return 0;
  for (i64 i = 0; i < n; i++) {
    const float exp_score = fast_exp(f[i] - max);
    g[i] = items[i] >= 0 && items[i] != own && !(exp_score < MIN_WEIGHT) ? exp_score : 0.0f;
    sum += g[i];
  }
  if (invalid) sum = bits_float(NAN_BITS); /* the comparison with MIN_WEIGHT may have dropped it */
  const float scale = expf((1.0f - beta) * max - beta * logf(sum)), inverse = 1.0f / sum;
  for (i64 i = 0; i < n; i++) {
    w[i] = g[i] * scale;
    g[i] *= inverse;
  }
  return 1;
}

/* Load the keys of an entry into rows and lanes; for CONCAT also multiply them with their half of the matrix. */
static void load_keys(const HistoryAttention *call, const Parameters *params, Workspace *ws, i64 first, i64 n, i64 d,
                      i64 k) {
  const i64 blocks = (n + LANES - 1) / LANES;
  memset(ws->x, 0, sizeof(vec) * blocks * d);
  for (i64 i = 0; i < n; i++) {
    const float *key = call->keys + (first + i) * call->width;
    float *lane = (float *)(ws->x + i / LANES * d) + i % LANES;
    for (i64 j = 0; j < call->width; j++) ws->rows[i * d + j] = lane[j * LANES] = key[j];
    ws->items[i] = (int32_t)call->items[first + i];
  }
  for (i64 i = n; i < blocks * LANES; i++) ws->items[i] = -1;
  if (call->dkeys) memset(ws->dx, 0, sizeof(vec) * blocks * d);
  if (call->kind != CONCAT) return;
  for (i64 c = 0; c < blocks; c++) matvec(params->w2, params->b, ws->x + c * d, ws->v + c * k, d, k);
  if (call->dkeys) memset(ws->dv, 0, sizeof(vec) * blocks * k);
}

/* Compute the scores f of all keys and s = p . q; z keeps the output of the relu. */
static void compute_scores(const HistoryAttention *call, const Parameters *params, Workspace *ws, i64 blocks, i64 d,
                           i64 k) {
  if (call->kind == CONCAT) {
    for (i64 r = 0; r < k; r++) ws->a[r] = 0.0f;
    for (i64 j = 0; j < d; j++)
      for (i64 r = 0; r < k; r++) ws->a[r] += ws->p[j] * params->w_transposed[j * k + r];
  } else {
    for (i64 r = 0; r < k; r++)
      for (i64 j = 0; j < d; j++) ws->a[r * d + j] = params->w[r * d + j] * ws->p[j];
  }
  for (i64 c = 0; c < blocks; c++) {
    vec *z = ws->z + c * k, *f = (vec *)(ws->f + c * LANES), *s = (vec *)(ws->s + c * LANES);
    *s = weighted_vecs(ws->p, ws->x + c * d, 1, d);
    if (call->kind == DOT) {
      *f = (float)call->scale * *s;
      continue;
    }
    if (call->kind == CONCAT)
      for (i64 r = 0; r < k; r++) z[r] = ws->v[c * k + r] + ws->a[r];
    else
      matvec(ws->a, params->b, ws->x + c * d, z, d, k);
    relu_dot(z, params->h, f, k);
  }
}

/* Backward pass of one target, given the gradient `slope` of its logit: into its own vector, the parameters, and the
 * keys of the entry (ws->dx, ws->dv). */
static void target_backward(const HistoryAttention *call, const Parameters *params, Workspace *ws, i64 row, i64 n,
                            i64 d, i64 k, float slope) {
  const i64 blocks = (n + LANES - 1) / LANES;
  float mean = 0.0f;
  for (i64 i = 0; i < blocks * LANES; i++) mean += ws->w[i] * ws->s[i];
  for (i64 i = 0; i < blocks * LANES; i++) {
    ws->g[i] = slope * (ws->w[i] * ws->s[i] - (float)call->beta * ws->g[i] * mean);
    ws->w[i] *= slope; /* from here on: the factor of p in the gradient of a key */
    if (call->kind == DOT) ws->w[i] += (float)call->scale * ws->g[i];
  }
  for (i64 c = 0; c < blocks; c++) {
    vec *z = ws->z + c * k, *dx = ws->dx + c * d;
    const vec factor = *(vec *)(ws->w + c * LANES);
    for (i64 j = 0; j < d; j++) dx[j] += ws->p[j] * factor;
    if (call->kind == DOT) continue;
    relu_dot_backward(z, params->h, ws->g + c * LANES, params->db, params->dh, k);
    if (call->kind == CONCAT)
      for (i64 r = 0; r < k; r++) ws->dv[c * k + r] += z[r];
    else
      matvec_backward(ws->a, z, dx, d, k);
  }
  for (i64 first = 0; first < d; first += LANES) {
    const vec p = *(vec *)(ws->p + first);
    vec dp = weighted_vecs(ws->w, (const vec *)(ws->rows + first), d / LANES, blocks * LANES), sums[LANES];
    for (i64 r = 0; r < k; r++) {
      vec *dw = (vec *)(params->dw + r * d + first);
      const vec w = *(const vec *)(params->w + r * d + first);
      if (call->kind == CONCAT) {
        vec total = {0};
        for (i64 c = 0; c < blocks; c++) total += ws->z[c * k + r];
        const float sum = sum_lanes(&total);
        *dw += sum * p;
        dp += sum * w;
      } else {
        if (r % LANES == 0) outer_sums(ws->z + r, ws->rows + first, n, d, k, sums);
        *dw += sums[r % LANES] * p;
        dp += sums[r % LANES] * w;
      }
    }
    for (i64 j = first; j < first + LANES && j < call->width; j++)
      call->dqueries[row * call->width + j] = ((float *)&dp)[j - first];
  }
}

/* Write the gradients of the keys of an entry, accumulated over its targets. */
static void keys_backward(const HistoryAttention *call, const Parameters *params, Workspace *ws, i64 offset, i64 n,
                          i64 d, i64 k) {
  const i64 blocks = (n + LANES - 1) / LANES;
  if (call->kind == CONCAT) {
    for (i64 c = 0; c < blocks; c++) matvec_backward(params->w2, ws->dv + c * k, ws->dx + c * d, d, k);
    for (i64 first = 0; first < d; first += LANES)
      for (i64 r = 0; r < k; r += LANES) {
        vec sums[LANES];
        outer_sums(ws->dv + r, ws->rows + first, n, d, k, sums);
        for (int j = 0; j < LANES; j++) *(vec *)(params->dw2 + (r + j) * d + first) += sums[j];
      }
  }
  for (i64 i = 0; i < n; i++) {
    const float *lane = (const float *)(ws->dx + i / LANES * d) + i % LANES;
    for (i64 j = 0; j < call->width; j++) call->dkeys[(offset + i) * call->width + j] = lane[j * LANES];
  }
}

/* Forward and, if dkeys is set, backward pass of one entry. */
static void run_entry(const HistoryAttention *call, const Parameters *params, Workspace *ws, i64 e, i64 d, i64 k) {
  const i64 offset = call->item_offsets[e], n = call->item_offsets[e + 1] - offset, blocks = (n + LANES - 1) / LANES;
  load_keys(call, params, ws, offset, n, d, k);
  for (i64 row = call->target_offsets[e]; row < call->target_offsets[e + 1]; row++) {
    memcpy(ws->p, call->queries + row * call->width, sizeof(float) * call->width);
    compute_scores(call, params, ws, blocks, d, k);
    const int any_allowed = compute_weights(ws->f, ws->items, (int32_t)call->targets[row], (float)call->beta, ws->w,
                                            ws->g, blocks * LANES);
    float y = call->bias[row];
    if (any_allowed) {
      float product = 0.0f; /* p . sum_i w_i q_i */
      for (i64 i = 0; i < blocks * LANES; i++) product += ws->w[i] * ws->s[i];
      y += product;
    }
    call->logits[row] = y;
    if (!call->labels) continue;
    const float magnitude = y > 0.0f ? y : -y;
    call->loss[row] = (y > 0.0f ? y : 0.0f) - call->labels[row] * y + log1pf(fast_exp(-magnitude));
    if (!call->dkeys) continue;
    const float slope = fast_sigmoid(y) - call->labels[row];
    call->dlogits[row] = slope;
    if (any_allowed && !(slope < MIN_SLOPE && slope > -MIN_SLOPE))
      target_backward(call, params, ws, row, n, d, k, slope);
    else
      memset(call->dqueries + row * call->width, 0, sizeof(float) * call->width);
  }
  if (call->dkeys) keys_backward(call, params, ws, offset, n, d, k);
}

/* Copy the parameters into padded memory. */
static void load_parameters(const HistoryAttention *call, Parameters *params, i64 d, i64 k) {
  const i64 columns = call->kind == CONCAT ? 2 * call->width : call->width;
  for (i64 r = 0; r < call->hidden; r++) {
    params->b[r] = call->b[r], params->h[r] = call->h[r];
    for (i64 j = 0; j < columns; j++) /* relu would turn a NaN into 0, so it is propagated through h */
      params->h[r] = propagate_nan(call->w[r * columns + j] + call->b[r], params->h[r]);
    for (i64 j = 0; j < call->width; j++) {
      params->w[r * d + j] = call->w[r * columns + j];
      if (call->kind != CONCAT) continue;
      params->w_transposed[j * k + r] = call->w[r * columns + j];
      params->w2[r * d + j] = call->w[r * columns + call->width + j];
    }
  }
}

/* Add the padded gradients of the parameters to the caller's. */
static void store_parameter_gradients(const HistoryAttention *call, const Parameters *params, i64 d) {
  const i64 columns = call->kind == CONCAT ? 2 * call->width : call->width;
  for (i64 r = 0; r < call->hidden; r++) {
    call->db[r] += sum_lanes(params->db + r), call->dh[r] += sum_lanes(params->dh + r);
    for (i64 j = 0; j < call->width; j++) {
      call->dw[r * columns + j] += params->dw[r * d + j];
      if (call->kind == CONCAT) call->dw[r * columns + call->width + j] += params->dw2[r * d + j];
    }
  }
}

/* Compute the logits of all targets; with labels the log loss of each; with dkeys the gradients of the summed loss.
 * Return 0 if memory cannot be allocated. */
i64 heed_history_attention(const HistoryAttention *call) {
  const i64 d = (call->width + LANES - 1) / LANES * LANES, k = (call->hidden + LANES - 1) / LANES * LANES;
  i64 longest = LANES;
  for (i64 e = 0; e < call->entries; e++) {
    const i64 n = call->item_offsets[e + 1] - call->item_offsets[e];
    longest = n > longest ? n : longest;
  }
  const i64 n = (longest + LANES - 1) / LANES * LANES, matrix = d * k;
  const i64 v_size = call->kind == CONCAT ? n * k : 0;
  const i64 floats = 5 * matrix + (2 + 2 * LANES) * k + n * (3 * d + k + 4) + 2 * v_size + matrix + d + n + k;
  float *memory = alloc_zeros(floats), *next = memory;
  if (!memory) return 0;
  Parameters params;
  Workspace ws;
#define TAKE(place, type, count) place = (type *)next, next += (count)
  TAKE(params.w, float, matrix); TAKE(params.w2, float, matrix); TAKE(params.w_transposed, float, matrix);
  TAKE(params.dw, float, matrix); TAKE(params.dw2, float, matrix); TAKE(params.b, float, k); TAKE(params.h, float, k);
  TAKE(params.db, vec, LANES * k); TAKE(params.dh, vec, LANES * k);
  TAKE(ws.x, vec, n * d); TAKE(ws.dx, vec, n * d); TAKE(ws.rows, float, n * d); TAKE(ws.z, vec, n * k);
  TAKE(ws.v, vec, v_size); TAKE(ws.dv, vec, v_size); TAKE(ws.a, float, matrix); TAKE(ws.p, float, d);
  TAKE(ws.f, float, n); TAKE(ws.s, float, n); TAKE(ws.w, float, n); TAKE(ws.g, float, n);
  TAKE(ws.items, int32_t, n);
#undef TAKE
  load_parameters(call, &params, d, k);
  for (i64 e = 0; e < call->entries; e++) run_entry(call, &params, &ws, e, d, k);
  if (call->dkeys) store_parameter_gradients(call, &params, d);
  free(memory);
  return 1;
}
