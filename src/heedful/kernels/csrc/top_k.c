/* The k most likely words of each row of logits. */
#include "common.h"

/* NaN if a logit is NaN or +inf, or all are -inf. */
static float log_sum_exp(const float *x, i64 vocab) {
  float max = x[0], sum = 0.0f;
  int32_t invalid = 0;
  for (i64 j = 0; j < vocab; j++) {
    max = x[j] > max ? x[j] : max;
    invalid |= is_nan(x[j]) | (float_bits(x[j]) == INF_BITS);
  }
  if (invalid || float_bits(max) == NEGATIVE_INF_BITS) return bits_float(NAN_BITS);
  for (i64 j = 0; j < vocab; j++) sum += exp_of_number(x[j] - max);
  return max + logf(sum);
}

static float maximum(const float *x, i64 count) {
  float max = x[0];
  for (i64 j = 1; j < count; j++) max = x[j] > max ? x[j] : max;
  return max;
}

/* Exclude a word from every row of logits. */
static void ban_word(float *logits, i64 rows, i64 vocab, i64 word) {
  if (word < 0 || word >= vocab) return;
  for (i64 r = 0; r < rows; r++) logits[r * vocab + word] = -1e30f;
}

/* Write the k most likely words of each row and their log-probabilities, most likely first; of equal logits the lower
 * index comes first. Beyond the size of the vocabulary, words are -1. Blocks without a candidate are skipped by their
 * maximum, which vectorizes. */
void heed_top_k(const float *x, i64 rows, i64 vocab, i64 k, i64 *words, float *logp) {
  const i64 block = 64;
  if (k <= 0) return;
#pragma omp parallel for schedule(static) if (rows * vocab > 100000)
  for (i64 r = 0; r < rows; r++) {
    const float *row = x + r * vocab;
    i64 *best_words = words + r * k, count_found = 0;
    float *best = logp + r * k;
    for (i64 first = 0; first < vocab; first += block) {
      const i64 count = vocab - first < block ? vocab - first : block;
      if (count_found == k && !(maximum(row + first, count) > best[k - 1])) continue;
      for (i64 j = first; j < first + count; j++) {
        if (count_found == k && !(row[j] > best[k - 1])) continue;
        i64 place = count_found < k ? count_found++ : k - 1;
        while (place > 0 && row[j] > best[place - 1]) {
          best[place] = best[place - 1];
          best_words[place] = best_words[place - 1];
          place--;
        }
        best[place] = row[j];
        best_words[place] = j;
      }
    }
    const float lse = vocab > 0 ? log_sum_exp(row, vocab) : 0.0f;
    for (i64 i = 0; i < count_found; i++) best[i] -= lse;
    for (i64 i = count_found; i < k; i++) {
      best_words[i] = -1;
      best[i] = LOWEST;
    }
  }
}
