/* One step of a GRU decoder with additive attention and int8 weights as one function, and a GRU encoder. */
#include "common.h"

/* Order of the operations of a step (see fused/decoder_steps.py), and kind of the read-out (see layers/readout.py);
 * inference/gru_engine.py lists the same names in the same order. */
enum { ATTEND_FIRST, FEED_CONTEXT, FEED_ATTENTIONAL, CONDITIONAL, FEED_NOTHING };
enum { LINEAR, AFFINE, TANH, DEEP };

/* Mirrored by kernels/structs.py. A matrix that the mode does not use has n = 0. */
typedef struct {
  i64 mode, readout;
  i64 hidden, attention_hidden, context_width, feed_width, feature_width, embedding_width, vocabulary;
  const float *input_gates; /* [word][3 hidden]: W_i emb(word) + b_i, computed once */
  const float *embedding;   /* [word][embedding_width], for the deep read-out */
  const float *v;           /* of the additive score */
  Int8Matrix w_hidden, w_query, w_feed, w_hidden2, w_readout, w_output; /* CONDITIONAL: w_feed, w_hidden2 are GRU 2 */
} RnnDecoder;

static void tanh_in_place(float *x, i64 n) {
  for (i64 i = 0; i < n; i++) x[i] = fast_tanh(x[i]);
}

/* Copy the rows of `part` into the columns from `column` on of a matrix with rows of `stride` floats. */
static void copy_columns(float *out, i64 stride, i64 column, const float *part, i64 width, i64 rows) {
  for (i64 r = 0; r < rows; r++) memcpy(out + r * stride + column, part + r * width, sizeof(float) * width);
}

/* One step for every row. `words` are the previous words; h and feed (the context or attentional vector of
 * the step before) are updated in place; row r attends to source
 * sentence[r] of n_keys positions and writes its weights; the k most likely next words are returned, never `banned_1`
 * or `banned_2`. GruEngine (inference/gru_engine.py) computes the size of the workspace. */
void heed_rnn_decoder_step(const RnnDecoder *d, const i64 *words, float *h, float *feed, const float *keys,
                           const float *values, const uint8_t *keep, i64 n_keys, const i64 *sentence, float *weights,
                           i64 rows, i64 k, i64 *top_words, float *top_logp, float *workspace, i64 banned_1,
                           i64 banned_2) {
  const i64 n = d->hidden;
  float *gi = workspace, *gh = gi + rows * 3 * n, *gates = gh + rows * 3 * n, *new_h = gates + rows * 3 * n;
  float *query = new_h + rows * n, *context = query + rows * d->attention_hidden;
  float *joined = context + rows * d->context_width;
  float *features = joined + rows * (n + d->context_width + d->embedding_width);
  float *logits = features + rows * d->feature_width;
  uint8_t *bytes = (uint8_t *)(logits + rows * d->vocabulary);
  float *state = h;
  for (i64 r = 0; r < rows; r++) memcpy(gi + r * 3 * n, d->input_gates + words[r] * 3 * n, sizeof(float) * 3 * n);
  if (d->mode == ATTEND_FIRST) {
    int8_linear(&d->w_query, h, query, bytes, rows);
    heed_additive_attention(query, keys, d->v, keep, values, weights, context, rows, sentence, n_keys,
                            d->attention_hidden, d->context_width);
    int8_linear(&d->w_feed, context, gh, bytes, rows);
    for (i64 i = 0; i < rows * 3 * n; i++) gi[i] += gh[i];
  } else if (d->mode == FEED_CONTEXT || d->mode == FEED_ATTENTIONAL) {
    int8_linear(&d->w_feed, feed, gh, bytes, rows);
    for (i64 i = 0; i < rows * 3 * n; i++) gi[i] += gh[i];
  }
  int8_linear(&d->w_hidden, h, gh, bytes, rows);
  heed_gru_cell(gi, gh, h, new_h, gates, rows, n);
  state = new_h;
  if (d->mode != ATTEND_FIRST) {
    int8_linear(&d->w_query, state, query, bytes, rows);
    heed_additive_attention(query, keys, d->v, keep, values, weights, context, rows, sentence, n_keys,
                            d->attention_hidden, d->context_width);
  }
  if (d->mode == CONDITIONAL) {
    int8_linear(&d->w_feed, context, gi, bytes, rows);
    int8_linear(&d->w_hidden2, state, gh, bytes, rows);
    heed_gru_cell(gi, gh, state, h, gates, rows, n);
    state = h;
  }
  const i64 joined_width = n + d->context_width + (d->readout == DEEP ? d->embedding_width : 0);
  copy_columns(joined, joined_width, 0, state, n, rows);
  copy_columns(joined, joined_width, n, context, d->context_width, rows);
  if (d->readout == DEEP)
    for (i64 r = 0; r < rows; r++)
      memcpy(joined + r * joined_width + n + d->context_width, d->embedding + words[r] * d->embedding_width,
             sizeof(float) * d->embedding_width);
  if (d->readout == LINEAR) {
    features = joined;
  } else {
    int8_linear(&d->w_readout, joined, features, bytes, rows);
    if (d->readout != AFFINE) tanh_in_place(features, rows * d->feature_width);
  }
  if (d->mode == FEED_ATTENTIONAL) memcpy(feed, features, sizeof(float) * rows * d->feature_width);
  if (d->mode == FEED_CONTEXT) memcpy(feed, context, sizeof(float) * rows * d->context_width);
  if (state != h) memcpy(h, state, sizeof(float) * rows * n);
  int8_linear(&d->w_output, features, logits, bytes, rows);
  ban_word(logits, rows, d->vocabulary, banned_1);
  ban_word(logits, rows, d->vocabulary, banned_2);
  heed_top_k(logits, rows, d->vocabulary, k, top_words, top_logp);
}

/* Greedy output of one sentence, until the word `end` or max_steps words; return the number of words. A further call
 * with the last word as `first` continues it. The weights of a step lie `weights_stride` floats after those of the step
 * before; with 0 they overwrite one another. */
i64 heed_rnn_decoder_greedy(const RnnDecoder *d, i64 first, i64 end, i64 max_steps, float *h, float *feed,
                            const float *keys, const float *values, const uint8_t *keep, i64 n_keys, float *weights,
                            i64 weights_stride, i64 *words, float *logp, float *workspace, i64 banned_1, i64 banned_2) {
  const i64 sentence = 0;
  for (i64 t = 0; t < max_steps; t++) {
    heed_rnn_decoder_step(d, t ? words + t - 1 : &first, h, feed, keys, values, keep, n_keys, &sentence,
                          weights + t * weights_stride, 1, 1, words + t, logp + t, workspace, banned_1, banned_2);
    if (words[t] == end) return t + 1;
  }
  return max_steps;
}

/* All states of a GRU over packed sentences, laid out as in fused/packed_gru.py: sizes[t] sentences have a step t. The
 * workspace holds one state and two rows of gates per sentence of the widest step, then the bytes of int8_linear. */
void heed_gru_sequence(const Int8Matrix *hidden, const float *gi, const i64 *sizes, i64 steps, i64 reverse, float *out,
                       float *workspace, i64 widest, i64 n) {
  float *h = workspace, *gh = h + widest * n, *gates = gh + widest * 3 * n;
  uint8_t *bytes = (uint8_t *)(gates + widest * 3 * n);
  i64 start = 0, previous_start = 0, previous_rows = 0; /* start: the first row of the step */
  if (reverse)
    for (i64 t = 0; t < steps; t++) start += sizes[t];
  for (i64 i = 0; i < steps; i++) {
    const i64 rows = sizes[reverse ? steps - 1 - i : i], continued = previous_rows < rows ? previous_rows : rows;
    if (reverse) start -= rows;
    if (continued) memcpy(h, out + previous_start * n, sizeof(float) * continued * n);
    memset(h + continued * n, 0, sizeof(float) * (rows - continued) * n);
    int8_linear(hidden, h, gh, bytes, rows);
    heed_gru_cell(gi + start * 3 * n, gh, h, out + start * n, gates, rows, n);
    previous_start = start;
    previous_rows = rows;
    if (!reverse) start += rows;
  }
}
