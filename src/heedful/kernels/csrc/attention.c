/* Attention with softmax weights over padded sources: additive scores and dot products. */
#include "common.h"

/* Softmax over the keys that `keep` allows; the others get 0, as does a row without any allowed key. It is undefined, and
 * therefore NaN, if the scores of all allowed keys are -inf. */
static void softmax_row(float *w, const uint8_t *keep, i64 keys) {
  float max = LOWEST, sum = 0.0f;
  uint8_t any_allowed = 0;
  for (i64 k = 0; k < keys; k++) {
    if (keep[k] && w[k] > max) max = w[k];
    any_allowed |= keep[k];
  }
  for (i64 k = 0; k < keys; k++) {
    w[k] = keep[k] ? fast_exp(w[k] - max) : 0.0f;
    sum += w[k];
  }
  if (max == LOWEST) sum = bits_float(NAN_BITS);
  if (any_allowed)
    for (i64 k = 0; k < keys; k++) w[k] = keep[k] ? w[k] / sum : 0.0f;
}

/* context = sum_k w[k] values[k], with rows of values `stride` floats apart. */
static void weighted_sum(const float *w, const float *values, float *context, i64 keys, i64 stride, i64 width) {
  for (i64 j = 0; j < width; j++) context[j] = 0.0f;
  for (i64 k = 0; k < keys; k++) {
    const float a = w[k], *row = values + k * stride;
    if (float_bits(a)) /* by its bits: a NaN must not count as 0 */
      for (i64 j = 0; j < width; j++) context[j] += a * row[j];
  }
}

/* ---- additive scores (Bahdanau 2015) ---------------------------------------------------------------------- */

/* v' tanh(q + k) */
static float additive_score(const float *q, const float *key, const float *v, i64 hidden) {
  float sum = 0.0f;
  for (i64 j = 0; j < hidden; j++) sum += v[j] * fast_tanh(q[j] + key[j]);
  return sum;
}

/* Row r of q attends to source sentence[r], or to source r if `sentence` is NULL. q is [row][hidden], keys
 * [source][key][hidden], values [source][key][width], keep [source][key]. */
void heed_additive_attention(const float *q, const float *keys, const float *v, const uint8_t *keep,
                             const float *values, float *weights, float *context, i64 rows, const i64 *sentence,
                             i64 n_keys, i64 hidden, i64 width) {
#pragma omp parallel for schedule(static) if (rows > 1)
  for (i64 r = 0; r < rows; r++) {
    const i64 b = sentence ? sentence[r] : r;
    float *w = weights + r * n_keys;
    for (i64 k = 0; k < n_keys; k++)
      w[k] = keep[b * n_keys + k] ? additive_score(q + r * hidden, keys + (b * n_keys + k) * hidden, v, hidden) : 0.0f;
    softmax_row(w, keep + b * n_keys, n_keys);
    weighted_sum(w, values + b * n_keys * width, context + r * width, n_keys, width, width);
  }
}

static void additive_score_backward(const float *q, const float *key, const float *v, float dscore, float *dq,
                                    float *dkey, float *dv, i64 hidden) {
  for (i64 j = 0; j < hidden; j++) {
    float t = fast_tanh(q[j] + key[j]);
    float slope = dscore * v[j] * (1.0f - t * t);
    dq[j] += slope;
    dkey[j] += slope;
    dv[j] += dscore * t;
  }
}

/* Backward pass of one step with one row per source. dkeys, dvalues and dv (one row per source) are accumulated;
 * dweights, where it is not NULL, is the gradient of the returned weights. The workspace has the shape of `weights`. */
void heed_additive_attention_backward(const float *q, const float *keys, const float *v, const uint8_t *keep,
                                      const float *values, const float *weights, const float *dcontext,
                                      const float *dweights, float *dq, float *dkeys, float *dvalues, float *dv,
                                      float *workspace, i64 rows, i64 n_keys, i64 hidden, i64 width) {
#pragma omp parallel for schedule(static)
  for (i64 r = 0; r < rows; r++) {
    const float *w = weights + r * n_keys, *g = dcontext + r * width;
    float *dq_row = dq + r * hidden, *dw = workspace + r * n_keys, mean = 0.0f;
    memset(dq_row, 0, sizeof(float) * hidden);
    for (i64 k = 0; k < n_keys; k++) {
      dw[k] = keep[r * n_keys + k] ? dot_product(g, values + (r * n_keys + k) * width, width) : 0.0f;
      if (dweights && keep[r * n_keys + k]) dw[k] += dweights[r * n_keys + k];
      mean += w[k] * dw[k];
    }
    for (i64 k = 0; k < n_keys; k++) {
      if (!keep[r * n_keys + k]) continue;
      add_scaled(g, w[k], dvalues + (r * n_keys + k) * width, width);
      additive_score_backward(q + r * hidden, keys + (r * n_keys + k) * hidden, v, w[k] * (dw[k] - mean), dq_row,
                              dkeys + (r * n_keys + k) * hidden, dv + r * hidden, hidden);
    }
  }
}

/* ---- dot products (Luong 2015, Vaswani 2017) -------------------------------------------------------------- */

/* q is [batch][query][head][inner], keys and values [batch][key][head][...], allowed [batch][query][key]; the
 * weights are written as [batch][query][head][key]. */
void heed_dot_attention(const float *q, const float *keys, const float *values, const uint8_t *allowed, float scale,
                        float *weights, float *context, i64 batch, i64 queries, i64 heads, i64 n_keys, i64 inner,
                        i64 width) {
#pragma omp parallel for schedule(static) if (batch * queries > 1)
  for (i64 row = 0; row < batch * queries; row++) {
    const i64 b = row / queries;
    const uint8_t *keep = allowed + row * n_keys;
    for (i64 head = 0; head < heads; head++) {
      const float *query = q + (row * heads + head) * inner;
      float *w = weights + (row * heads + head) * n_keys;
      for (i64 k = 0; k < n_keys; k++)
        w[k] = keep[k] ? scale * dot_product(query, keys + ((b * n_keys + k) * heads + head) * inner, inner) : 0.0f;
      softmax_row(w, keep, n_keys);
      weighted_sum(w, values + (b * n_keys * heads + head) * width, context + (row * heads + head) * width, n_keys,
                   heads * width, width);
    }
  }
}
