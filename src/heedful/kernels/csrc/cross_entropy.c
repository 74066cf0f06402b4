/* Cross-entropy with label smoothing, alone and with the R-Drop term, together with the gradient. */
#include "common.h"

/* One row: the logits x are replaced by the gradient of the loss; nll is the loss without smoothing. The loss is NaN, and
 * x is left as it is, if the target is outside the vocabulary, a logit is NaN or +inf, or all are -inf. */
static void cross_entropy_row(float *x, i64 target, i64 vocab, float smoothing, float *loss, float *nll) {
  *nll = *loss = bits_float(NAN_BITS);
  if (target < 0 || target >= vocab) return;
  float max = x[0], sum = 0.0f, sum_shifted = 0.0f;
  int32_t invalid = 0;
  for (i64 j = 0; j < vocab; j++) {
    max = x[j] > max ? x[j] : max;
    invalid |= is_nan(x[j]) | (float_bits(x[j]) == INF_BITS);
  }
  if (invalid || float_bits(max) == NEGATIVE_INF_BITS) return;
  const float target_logit = x[target] - max;
  for (i64 j = 0; j < vocab; j++) {
    float shifted = x[j] - max;
    sum_shifted += shifted;
    x[j] = exp_of_number(shifted);
    sum += x[j];
  }
  const float lse = logf(sum), share = smoothing / (float)vocab, scale = 1.0f / sum;
  for (i64 j = 0; j < vocab; j++) x[j] = x[j] * scale - share;
  x[target] -= 1.0f - smoothing;
  *nll = lse - target_logit;
  *loss = (1.0f - smoothing) * *nll;
  if (smoothing != 0.0f) *loss += share * ((float)vocab * lse - sum_shifted); /* the sum may be infinite */
}

/* Loss of each of n rows of logits x; in place, x becomes the gradient of the sum of the losses. */
void heed_cross_entropy(float *x, const i64 *targets, i64 n, i64 vocab, float smoothing, float *loss, float *nll) {
#pragma omp parallel for schedule(static)
  for (i64 i = 0; i < n; i++) cross_entropy_row(x + i * vocab, targets[i], vocab, smoothing, loss + i, nll + i);
}

/* Log-sum-exp of a row and the sum of -log p over the vocabulary; return 0 if a logit is NaN or +inf, or all are -inf. */
static int row_statistics(const float *x, i64 vocab, float *lse, float *sum_nll) {
  float max = x[0], sum = 0.0f, total = 0.0f;
  int32_t invalid = 0;
  for (i64 j = 0; j < vocab; j++) {
    max = x[j] > max ? x[j] : max;
    invalid |= is_nan(x[j]) | (float_bits(x[j]) == INF_BITS);
  }
  if (invalid || float_bits(max) == NEGATIVE_INF_BITS) return 0;
  for (i64 j = 0; j < vocab; j++) {
    total += x[j] - max;
    sum += exp_of_number(x[j] - max);
  }
  *lse = max + logf(sum);
  *sum_nll = (float)vocab * logf(sum) - total;
  return 1;
}

static void rdrop_row(float *x, float *y, i64 target, i64 vocab, float smoothing, float rdrop, float *loss,
                      float *nll) {
  *nll = *loss = bits_float(NAN_BITS);
  if (target < 0 || target >= vocab) return;
  float lse_x, lse_y, nll_x, nll_y, kl_pq = 0.0f, negative_kl_qp = 0.0f;
  if (!row_statistics(x, vocab, &lse_x, &nll_x) || !row_statistics(y, vocab, &lse_y, &nll_y)) return;
  for (i64 j = 0; j < vocab; j++) {
    const float log_p = x[j] - lse_x, log_q = y[j] - lse_y;
    kl_pq += exp_of_number(log_p) * (log_p - log_q);
    negative_kl_qp += exp_of_number(log_q) * (log_p - log_q);
  }
  const float share = smoothing / (float)vocab, weight = rdrop / 4.0f;
  const float mean_nll = (lse_x - x[target] + lse_y - y[target]) / 2.0f;
  for (i64 j = 0; j < vocab; j++) {
    const float log_p = x[j] - lse_x, log_q = y[j] - lse_y, p = exp_of_number(log_p), q = exp_of_number(log_q);
    x[j] = 0.5f * (p - share) + weight * (p * (log_p - log_q - kl_pq) + p - q);
    y[j] = 0.5f * (q - share) + weight * (q * (log_q - log_p + negative_kl_qp) + q - p);
  }
  x[target] -= 0.5f * (1.0f - smoothing);
  y[target] -= 0.5f * (1.0f - smoothing);
  *nll = mean_nll;
  *loss = (1.0f - smoothing) * mean_nll + share * (nll_x + nll_y) / 2.0f + weight * (kl_pq - negative_kl_qp);
}

/* R-Drop (Liang 2021): mean cross-entropy of two forward passes x and y over the same rows, plus rdrop / 4 times the
 * divergences KL(p|q) + KL(q|p). In place, x and y become their gradients. */
void heed_rdrop_cross_entropy(float *x, float *y, const i64 *targets, i64 n, i64 vocab, float smoothing, float rdrop,
                              float *loss, float *nll) {
#pragma omp parallel for schedule(static)
  for (i64 i = 0; i < n; i++)
    rdrop_row(x + i * vocab, y + i * vocab, targets[i], vocab, smoothing, rdrop, loss + i, nll + i);
}
