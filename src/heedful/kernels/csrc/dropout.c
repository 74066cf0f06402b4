/* Dropout whose mask is a hash of element index and seed: no mask is stored, the backward pass hashes again. */
#include "common.h"

static inline uint32_t hash(uint32_t i, uint32_t seed) {
  uint32_t h = i * 0x9E3779B9u + seed;
  h ^= h >> 16;
  h *= 0x7FEB352Du;
  h ^= h >> 15;
  h *= 0x846CA68Bu;
  h ^= h >> 16;
  return h;
}

static void dropout_range(const float *x, float *y, i64 begin, i64 end, uint32_t limit, float scale, uint32_t seed) {
  for (i64 i = begin; i < end; i++) y[i] = hash((uint32_t)i, seed) < limit ? x[i] * scale : 0.0f;
}

/* y[i] = scale * x[i] where the hash of i falls below `limit`, else 0. */
void heed_dropout(const float *x, float *y, i64 n, uint32_t limit, float scale, uint32_t seed) {
  const i64 block = 16384;
#pragma omp parallel for schedule(static) if (n > block)
  for (i64 b = 0; b < (n + block - 1) / block; b++) {
    i64 end = (b + 1) * block;
    dropout_range(x, y, b * block, end < n ? end : n, limit, scale, seed);
  }
}
