/* Types and fast elementary functions shared by all kernels. */
#ifndef HEED_COMMON_H
#define HEED_COMMON_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

/* Memory whose size depends on the input is passed in as a workspace or allocated on the heap, never on the stack: the
 * build refuses variable-length arrays. The callers (kernels/gate.py) check sizes, strides and ranges of indices; a
 * kernel that is given an index out of range all the same reads and writes nothing there. */

#define LOWEST -3.0e38f /* stands for -inf: -ffast-math lets the compiler assume that no infinity occurs */

/* -ffast-math also lets the compiler assume that no NaN occurs, so NaN is detected and produced through the bits. */
static inline int32_t float_bits(float x) {
  int32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

static inline float bits_float(int32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

#define NAN_BITS 0x7FC00000
#define INF_BITS 0x7F800000
#define NEGATIVE_INF_BITS (-0x00800000) /* 0xFF800000 */

static inline int32_t is_nan(float x) { return (float_bits(x) & 0x7FFFFFFF) > INF_BITS; }

/* y, or NaN where x is NaN. */
static inline float propagate_nan(float x, float y) { return bits_float(float_bits(y) | (is_nan(x) ? NAN_BITS : 0)); }

/* x, or 0 where x is NaN: what is converted to an integer must be a number. */
static inline float nan_to_zero(float x) { return bits_float(float_bits(x) & (is_nan(x) ? 0 : -1)); }

/* e^x within 1 or 2 units in the last place, for any x but NaN; the clamps keep the exponent's bits valid. */
static inline float exp_of_number(float x) {
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
  return p * bits_float(((int32_t)n + 127) << 23);
}

static inline float fast_exp(float x) { return propagate_nan(x, exp_of_number(nan_to_zero(x))); }

static inline float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

/* tanh as a ratio of polynomials (Eigen's coefficients), absolute error below 3e-7. */
static inline float fast_tanh(float input) {
  float x = input;
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
  return propagate_nan(input, x * p / q);
}

static float dot_product(const float *a, const float *b, i64 n) {
  float sum = 0.0f;
  for (i64 j = 0; j < n; j++) sum += a[j] * b[j];
  return sum;
}

/* y += a x */
static void add_scaled(const float *x, float a, float *y, i64 n) {
  for (i64 j = 0; j < n; j++) y[j] += a * x[j];
}

#endif
