/* Pre-norm Transformers with int8 weights: a whole decoder step, and a whole encoder. */
#include "common.h"

/* The structs are mirrored by kernels/structs.py. */
typedef struct {
  const float *weight, *bias;
  double epsilon;
} LayerNorm;

typedef struct {
  LayerNorm self_norm, cross_norm, feed_forward_norm;
  Int8Matrix qkv, self_out, cross_query, cross_out, feed_forward_in, feed_forward_out;
} TransformerLayer;

typedef struct {
  i64 n_layers, width, heads, vocabulary;
  const float *embedding; /* [word][width], already scaled by sqrt(width) */
  const float *positions; /* [step][width] */
  const TransformerLayer *layers;
  LayerNorm final_norm;
  Int8Matrix output;
} Transformer;

static void norm_row(const LayerNorm *norm, const float *x, float *y, i64 width) {
  float mean = 0.0f, square = 0.0f;
  for (i64 j = 0; j < width; j++) mean += x[j];
  mean /= (float)width;
  for (i64 j = 0; j < width; j++) square += (x[j] - mean) * (x[j] - mean);
  const float scale = 1.0f / sqrtf(square / (float)width + (float)norm->epsilon);
  for (i64 j = 0; j < width; j++) y[j] = (x[j] - mean) * scale * norm->weight[j] + norm->bias[j];
}

static void norm_rows(const LayerNorm *norm, const float *x, float *y, i64 rows, i64 width) {
  for (i64 r = 0; r < rows; r++) norm_row(norm, x + r * width, y + r * width, width);
}

/* y += x */
static void add_in_place(const float *x, float *y, i64 count) {
  for (i64 i = 0; i < count; i++) y[i] += x[i];
}

static void relu_in_place(float *x, i64 count) {
  for (i64 i = 0; i < count; i++) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

/* x += W_out relu(W_in norm(x)); y, sublayer and inner are workspace. */
static void feed_forward(const TransformerLayer *layer, float *x, float *y, float *sublayer, float *inner,
                         uint8_t *bytes, i64 rows) {
  const i64 width = layer->feed_forward_out.n;
  norm_rows(&layer->feed_forward_norm, x, y, rows, width);
  int8_linear(&layer->feed_forward_in, y, inner, bytes, rows);
  relu_in_place(inner, rows * layer->feed_forward_in.n);
  int8_linear(&layer->feed_forward_out, inner, sublayer, bytes, rows);
  add_in_place(sublayer, x, rows * width);
}

/* One head of one query, its columns starting at `column`. keys[k] points to a key, NULL if it is masked; its value
 * lies value_offset floats after it. */
static void attend_head(const float *q, const float *const *keys, i64 value_offset, i64 n_keys, i64 column, i64 inner,
                        float *w, float *out) {
  const float scale = 1.0f / sqrtf((float)inner);
  float max = LOWEST, sum = 0.0f;
  for (i64 k = 0; k < n_keys; k++) {
    w[k] = keys[k] ? dot_product(q + column, keys[k] + column, inner) * scale : LOWEST;
    max = w[k] > max ? w[k] : max;
  }
  for (i64 k = 0; k < n_keys; k++) {
    w[k] = keys[k] ? fast_exp(w[k] - max) : 0.0f;
    sum += w[k];
  }
  for (i64 j = 0; j < inner; j++) out[column + j] = 0.0f;
  for (i64 k = 0; k < n_keys; k++) {
    w[k] = sum > 0.0f ? w[k] / sum : 0.0f;
    if (keys[k] && w[k] != 0.0f) add_scaled(keys[k] + value_offset + column, w[k], out + column, inner);
  }
}

/* One step of every row at position t; `words` are the previous words.
 *
 * The cache is [layer][step][row][key, value] with max_steps steps of cache_rows rows; origin[r][step] is the row of
 * the cache that holds the past step of row r, so that nothing is copied when beams are reordered. keys[layer] and
 * values[layer] are the projected source; row r attends to source sentence[r]. The cross-attention weights are written
 * as [layer][row][head][key], the self-attention weights, unless NULL, as [layer][row][head][step]. The k most likely
 * next words are returned, never banned_1 or banned_2. TransformerEngine computes the size of the workspace. */
void heed_transformer_decoder_step(const Transformer *m, i64 t, const i64 *words, float *cache, i64 cache_rows,
                                   i64 max_steps, const i64 *origin, const float *const *keys,
                                   const float *const *values, const uint8_t *keep, i64 n_keys, const i64 *sentence,
                                   float *cross_weights, float *self_weights, i64 rows, i64 k, i64 *top_words,
                                   float *top_logp, float *workspace, i64 banned_1, i64 banned_2) {
  const i64 width = m->width, inner = width / m->heads, feed_forward_width = m->layers[0].feed_forward_in.n;
  float *x = workspace, *y = x + rows * width, *sublayer = y + rows * width, *qkv = sublayer + rows * width;
  float *feed_forward_inner = qkv + rows * 3 * width, *logits = feed_forward_inner + rows * feed_forward_width;
  uint8_t *bytes = (uint8_t *)(logits + rows * m->vocabulary);
  for (i64 r = 0; r < rows; r++)
    for (i64 j = 0; j < width; j++)
      x[r * width + j] = m->embedding[words[r] * width + j] + m->positions[t * width + j];
  for (i64 l = 0; l < m->n_layers; l++) {
    const TransformerLayer *layer = m->layers + l;
    float *layer_cache = cache + l * max_steps * cache_rows * 2 * width;
    norm_rows(&layer->self_norm, x, y, rows, width);
    int8_linear(&layer->qkv, y, qkv, bytes, rows);
    for (i64 r = 0; r < rows; r++)
      memcpy(layer_cache + (t * cache_rows + r) * 2 * width, qkv + r * 3 * width + width, sizeof(float) * 2 * width);
#pragma omp parallel for schedule(static) if (rows > 16)
    for (i64 r = 0; r < rows; r++) {
      const float *past[t + 1];
      float w[t + 1];
      for (i64 s = 0; s < t; s++) past[s] = layer_cache + (s * cache_rows + origin[r * max_steps + s]) * 2 * width;
      past[t] = layer_cache + (t * cache_rows + r) * 2 * width;
      for (i64 head = 0; head < m->heads; head++)
        attend_head(qkv + r * 3 * width, past, width, t + 1, head * inner, inner,
                    self_weights ? self_weights + ((l * rows + r) * m->heads + head) * (t + 1) : w, y + r * width);
    }
    int8_linear(&layer->self_out, y, sublayer, bytes, rows);
    add_in_place(sublayer, x, rows * width);
    norm_rows(&layer->cross_norm, x, y, rows, width);
    int8_linear(&layer->cross_query, y, qkv, bytes, rows);
#pragma omp parallel for schedule(static) if (rows > 16)
    for (i64 r = 0; r < rows; r++) {
      const i64 b = sentence[r], value_offset = values[l] - keys[l];
      const float *source[n_keys > 0 ? n_keys : 1], *first_key = keys[l] + b * n_keys * width;
      for (i64 s = 0; s < n_keys; s++) source[s] = keep[b * n_keys + s] ? first_key + s * width : NULL;
      for (i64 head = 0; head < m->heads; head++)
        attend_head(qkv + r * width, source, value_offset, n_keys, head * inner, inner,
                    cross_weights + ((l * rows + r) * m->heads + head) * n_keys, y + r * width);
    }
    int8_linear(&layer->cross_out, y, sublayer, bytes, rows);
    add_in_place(sublayer, x, rows * width);
    feed_forward(layer, x, y, sublayer, feed_forward_inner, bytes, rows);
  }
  norm_rows(&m->final_norm, x, y, rows, width);
  int8_linear(&m->output, y, logits, bytes, rows);
  for (i64 r = 0; r < rows; r++) logits[r * m->vocabulary + banned_1] = logits[r * m->vocabulary + banned_2] = -1e30f;
  heed_top_k(logits, rows, m->vocabulary, k, top_words, top_logp);
}

/* Greedy output of one sentence, as heed_rnn_decoder_greedy. The cache has one row per step and `origin` is all zeros;
 * the self-attention weights of step t have t + 1 columns and follow one another. */
i64 heed_transformer_greedy(const Transformer *m, i64 first, i64 end, i64 max_length, float *cache, const i64 *origin,
                            const float *const *keys, const float *const *values, const uint8_t *keep, i64 n_keys,
                            float *cross_weights, i64 weights_stride, float *self_weights, i64 *words, float *logp,
                            float *workspace, i64 banned_1, i64 banned_2) {
  const i64 sentence = 0;
  for (i64 t = 0; t < max_length; t++) {
    heed_transformer_decoder_step(m, t, t ? words + t - 1 : &first, cache, 1, max_length, origin, keys, values, keep,
                                  n_keys, &sentence, cross_weights + t * weights_stride, self_weights, 1, 1, words + t,
                                  logp + t, workspace, banned_1, banned_2);
    if (self_weights) self_weights += m->n_layers * m->heads * (t + 1);
    if (words[t] == end) return t + 1;
  }
  return max_length;
}

/* Encode packed sentences: the rows of sentence i are x[offsets[i]] .. x[offsets[i + 1]], positions already added; x is
 * overwritten. Weights, unless NULL, are written as [layer][sentence][query][head][key], padded to `widest`. */
void heed_transformer_encoder(const Transformer *m, float *x, const i64 *offsets, i64 sentences, float *weights,
                              i64 widest, float *out, float *workspace) {
  const i64 width = m->width, inner = width / m->heads, rows = offsets[sentences];
  const i64 feed_forward_width = m->layers[0].feed_forward_in.n;
  float *y = workspace, *sublayer = y + rows * width, *qkv = sublayer + rows * width;
  float *feed_forward_inner = qkv + rows * 3 * width;
  uint8_t *bytes = (uint8_t *)(feed_forward_inner + rows * feed_forward_width);
  for (i64 l = 0; l < m->n_layers; l++) {
    const TransformerLayer *layer = m->layers + l;
    norm_rows(&layer->self_norm, x, y, rows, width);
    int8_linear(&layer->qkv, y, qkv, bytes, rows);
#pragma omp parallel for schedule(static) if (sentences > 1)
    for (i64 i = 0; i < sentences; i++) {
      const i64 first = offsets[i], count = offsets[i + 1] - first;
      const float *keys[count > 0 ? count : 1];
      float w[count > 0 ? count : 1];
      for (i64 s = 0; s < count; s++) keys[s] = qkv + (first + s) * 3 * width + width;
      for (i64 q = 0; q < count; q++)
        for (i64 head = 0; head < m->heads; head++)
          attend_head(qkv + (first + q) * 3 * width, keys, width, count, head * inner, inner,
                      weights ? weights + (((l * sentences + i) * widest + q) * m->heads + head) * widest : w,
                      y + (first + q) * width);
    }
    int8_linear(&layer->self_out, y, sublayer, bytes, rows);
    add_in_place(sublayer, x, rows * width);
    feed_forward(layer, x, y, sublayer, feed_forward_inner, bytes, rows);
  }
  norm_rows(&m->final_norm, x, out, rows, width);
}
