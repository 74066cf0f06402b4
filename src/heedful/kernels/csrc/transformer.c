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
  for (i64 i = 0; i < count; i++) x[i] = propagate_nan(x[i], x[i] > 0.0f ? x[i] : 0.0f);
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
 * lies as far behind first_value as the key behind first_key. */
static void attend_head(const float *q, const float *const *keys, const float *first_key, const float *first_value,
                        i64 n_keys, i64 column, i64 inner, float *w, float *out) {
  const float scale = 1.0f / sqrtf((float)inner);
  float max = LOWEST, sum = 0.0f;
  int any_allowed = 0;
  for (i64 k = 0; k < n_keys; k++) {
    w[k] = keys[k] ? dot_product(q + column, keys[k] + column, inner) * scale : LOWEST;
    max = w[k] > max ? w[k] : max;
    any_allowed |= keys[k] != NULL;
  }
  for (i64 k = 0; k < n_keys; k++) {
    w[k] = keys[k] ? fast_exp(w[k] - max) : 0.0f;
    sum += w[k];
  }
  if (max == LOWEST) sum = bits_float(NAN_BITS); /* as in attention.c */
  for (i64 j = 0; j < inner; j++) out[column + j] = 0.0f;
  for (i64 k = 0; k < n_keys; k++) {
    w[k] = any_allowed && keys[k] ? w[k] / sum : 0.0f;
    if (keys[k] && float_bits(w[k])) /* by its bits: a NaN must not count as 0 */
      add_scaled(first_value + (keys[k] - first_key) + column, w[k], out + column, inner);
  }
}

/* One step of every row at position t; `words` are the previous words.
 *
 * The cache is [layer][step][row][key, value] with max_steps steps of cache_rows rows; origin[r][step] is the row of
 * the cache that holds the past step of row r, so that nothing is copied when beams are reordered. keys[layer] and
 * values[layer] are the projected source; row r attends to source sentence[r]. The cross-attention weights are written
 * as [layer][row][head][key], the self-attention weights, unless NULL, as [layer][row][head][step]. The k most likely
 * next words are returned, never banned_1 or banned_2. The workspace begins with, per row, a pointer per key and a weight
 * per step; TransformerEngine computes its size. */
void heed_transformer_decoder_step(const Transformer *m, i64 t, const i64 *words, float *cache, i64 cache_rows,
                                   i64 max_steps, const i64 *origin, const float *const *keys,
                                   const float *const *values, const uint8_t *keep, i64 n_keys, const i64 *sentence,
                                   float *cross_weights, float *self_weights, i64 rows, i64 k, i64 *top_words,
                                   float *top_logp, float *workspace, i64 banned_1, i64 banned_2) {
  const i64 width = m->width, inner = width / m->heads, feed_forward_width = m->layers[0].feed_forward_in.n;
  const i64 longest = n_keys > t + 1 ? n_keys : t + 1;
  const float **pointers = (const float **)workspace;
  float *step_weights = (float *)(pointers + rows * longest);
  float *x = step_weights + rows * (t + 1), *y = x + rows * width, *sublayer = y + rows * width, *qkv = sublayer + rows * width;
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
      const float **past = pointers + r * longest;
      float *w = step_weights + r * (t + 1);
      for (i64 s = 0; s < t; s++) past[s] = layer_cache + (s * cache_rows + origin[r * max_steps + s]) * 2 * width;
      past[t] = layer_cache + (t * cache_rows + r) * 2 * width;
      for (i64 head = 0; head < m->heads; head++)
        attend_head(qkv + r * 3 * width, past, layer_cache, layer_cache + width, t + 1, head * inner, inner,
                    self_weights ? self_weights + ((l * rows + r) * m->heads + head) * (t + 1) : w, y + r * width);
    }
    int8_linear(&layer->self_out, y, sublayer, bytes, rows);
    add_in_place(sublayer, x, rows * width);
    norm_rows(&layer->cross_norm, x, y, rows, width);
    int8_linear(&layer->cross_query, y, qkv, bytes, rows);
#pragma omp parallel for schedule(static) if (rows > 16)
    for (i64 r = 0; r < rows; r++) {
      const i64 b = sentence[r];
      const float **source = pointers + r * longest, *first_key = keys[l] + b * n_keys * width;
      for (i64 s = 0; s < n_keys; s++) source[s] = keep[b * n_keys + s] ? first_key + s * width : NULL;
      for (i64 head = 0; head < m->heads; head++)
        attend_head(qkv + r * width, source, keys[l], values[l], n_keys, head * inner, inner,
                    cross_weights + ((l * rows + r) * m->heads + head) * n_keys, y + r * width);
    }
    int8_linear(&layer->cross_out, y, sublayer, bytes, rows);
    add_in_place(sublayer, x, rows * width);
    feed_forward(layer, x, y, sublayer, feed_forward_inner, bytes, rows);
  }
  norm_rows(&m->final_norm, x, y, rows, width);
  int8_linear(&m->output, y, logits, bytes, rows);
  ban_word(logits, rows, m->vocabulary, banned_1);
  ban_word(logits, rows, m->vocabulary, banned_2);
  heed_top_k(logits, rows, m->vocabulary, k, top_words, top_logp);
}

/* The steps from `start` on of the greedy output of one sentence, until the word `end` or step max_steps; return the
 * number of words so far. The cache has one row for each of cache_steps steps and `origin` is all zeros; words and logp
 * are those of all steps, and `first` is the word before step 0. The cross-attention weights of `start` come first and
 * lie as in heed_rnn_decoder_greedy; the self-attention weights are those of all steps: step t has t + 1 columns. */
i64 heed_transformer_greedy(const Transformer *m, i64 first, i64 end, i64 start, i64 max_steps, i64 cache_steps,
                            float *cache, const i64 *origin, const float *const *keys, const float *const *values, const uint8_t *keep, i64 n_keys,
                            float *cross_weights, i64 weights_stride, float *self_weights, i64 *words, float *logp,
                            float *workspace, i64 banned_1, i64 banned_2) {
  const i64 sentence = 0;
  for (i64 t = start; t < max_steps; t++) {
    heed_transformer_decoder_step(m, t, t ? words + t - 1 : &first, cache, 1, cache_steps, origin, keys, values, keep,
                                  n_keys, &sentence, cross_weights + (t - start) * weights_stride,
                                  self_weights ? self_weights + m->n_layers * m->heads * t * (t + 1) / 2 : NULL, 1, 1,
                                  words + t, logp + t, workspace, banned_1, banned_2);
    if (words[t] == end) return t + 1;
  }
  return max_steps;
}

/* Encode packed sentences: the rows of sentence i are x[offsets[i]] .. x[offsets[i + 1]], positions already added; x is
 * overwritten. Weights, unless NULL, are written as [layer][sentence][query][head][key], padded to `widest`. The
 * workspace begins with a pointer and a weight per row; CEncoder computes its size. */
void heed_transformer_encoder(const Transformer *m, float *x, const i64 *offsets, i64 sentences, float *weights,
                              i64 widest, float *out, float *workspace) {
  const i64 width = m->width, inner = width / m->heads, rows = offsets[sentences];
  const i64 feed_forward_width = m->layers[0].feed_forward_in.n;
  const float **pointers = (const float **)workspace;
  float *row_weights = (float *)(pointers + rows);
  float *y = row_weights + rows, *sublayer = y + rows * width, *qkv = sublayer + rows * width;
  float *feed_forward_inner = qkv + rows * 3 * width;
  uint8_t *bytes = (uint8_t *)(feed_forward_inner + rows * feed_forward_width);
  for (i64 l = 0; l < m->n_layers; l++) {
    const TransformerLayer *layer = m->layers + l;
    norm_rows(&layer->self_norm, x, y, rows, width);
    int8_linear(&layer->qkv, y, qkv, bytes, rows);
#pragma omp parallel for schedule(static) if (sentences > 1)
    for (i64 i = 0; i < sentences; i++) {
      const i64 first = offsets[i], count = offsets[i + 1] - first;
      const float **keys = pointers + first;
      for (i64 s = 0; s < count; s++) keys[s] = qkv + (first + s) * 3 * width + width;
      for (i64 q = 0; q < count; q++)
        for (i64 head = 0; head < m->heads; head++)
          attend_head(qkv + (first + q) * 3 * width, keys, qkv + width, qkv + 2 * width, count, head * inner, inner,
                      weights ? weights + (((l * sentences + i) * widest + q) * m->heads + head) * widest
                              : row_weights + first,
                      y + (first + q) * width);
    }
    int8_linear(&layer->self_out, y, sublayer, bytes, rows);
    add_in_place(sublayer, x, rows * width);
    feed_forward(layer, x, y, sublayer, feed_forward_inner, bytes, rows);
  }
  norm_rows(&m->final_norm, x, out, rows, width);
}
