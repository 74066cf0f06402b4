/* Looks over histories (He 2018, NAIS), included by kernels.c.
 *
 * An entry is a history and targets that all read it, each without its own item. Keys are laid out once an entry:
 * sixteen side by side, number by number. What a target learns needs no other target, so it goes forth and back at
 * once, while all of it is at hand; nothing is padded to another entry's length. Widths are padded to sixteens.
 */

#define SIDE 16
#define NO_WEIGHT 1e-18f /* less than any sum notices; products of smaller numbers are slow */
#define NO_SLOPE 1e-16f
typedef float wide __attribute__((vector_size(64)));
typedef int32_t wide_int __attribute__((vector_size(64)));

enum { PROD, CONCAT, DOT };

/* As loader.py has it. `w` is (hidden, width) for products, (hidden, 2 width) for target and key side by side; dot
 * products, times `scale`, have no parameters. Without `dkeys` there is no way back. Gradients of the parameters are
 * added to. */
typedef struct {
  i64 kind, width, hidden, entries;
  const i64 *ids, *bounds, *targets, *cuts;
  const float *keys, *queries, *bias, *labels, *w, *b, *h;
  float *logits, *loss, *dlogits, *dkeys, *dqueries, *dw, *db, *dh;
  double beta, scale;
} History;

/* Parameters and their gradients, padded; w2 is the keys' half of a concatenation. */
typedef struct {
  float *w, *w2, *turned, *b, *h, *dw, *dw2;
  wide *db, *dh;
} Padded;

/* One entry's room: keys in lanes and in rows, what became of them, and a number for each key. */
typedef struct {
  wide *x, *dx, *z, *v, *dv;
  float *rows, *a, *p, *f, *s, *w, *g;
  int32_t *ids;
} Room;

static void *zeros(i64 floats) {
  void *found = aligned_alloc(64, (size_t)((floats + SIDE) / SIDE) * 64);
  if (found) memset(found, 0, (size_t)((floats + SIDE) / SIDE) * 64);
  return found;
}

static inline float lanes_sum(const wide *x) {
  float sum = 0.0f;
  for (int j = 0; j < SIDE; j++) sum += ((const float *)x)[j];
  return sum;
}

/* z[k] = b[k] + sum_d a[k][d] x[d] for sixteen keys. */
static void product(const float *a, const float *b, const wide *x, wide *z, i64 d, i64 k) {
  for (i64 r = 0; r < k; r += 8) {
    const float *row = a + r * d;
    wide z0 = b[r] - (wide){0}, z1 = b[r + 1] - (wide){0}, z2 = b[r + 2] - (wide){0}, z3 = b[r + 3] - (wide){0};
    wide z4 = b[r + 4] - (wide){0}, z5 = b[r + 5] - (wide){0}, z6 = b[r + 6] - (wide){0}, z7 = b[r + 7] - (wide){0};
#pragma GCC unroll 4
    for (i64 j = 0; j < d; j++) {
      const wide here = x[j];
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

/* dx[d] += sum_k a[k][d] dz[k] for sixteen keys. */
static void product_back(const float *a, const wide *dz, wide *dx, i64 d, i64 k) {
  for (i64 first = 0; first < d; first += SIDE) {
    wide sum[SIDE];
#pragma GCC unroll 16
    for (int j = 0; j < SIDE; j++) sum[j] = dx[first + j];
    for (i64 r = 0; r < k; r++) {
      const wide here = dz[r];
      const float *row = a + r * d + first;
#pragma GCC unroll 16
      for (int j = 0; j < SIDE; j++) sum[j] += row[j] * here;
    }
#pragma GCC unroll 16
    for (int j = 0; j < SIDE; j++) dx[first + j] = sum[j];
  }
}

/* sum[r] = sum_i dz[r][i] rows[i] over all n keys, for sixteen rows of dz and sixteen numbers of a key. */
static inline void outer(const wide *dz, const float *rows, i64 n, i64 d, i64 k, wide *sums) {
  wide sum[SIDE];
#pragma GCC unroll 16
  for (int r = 0; r < SIDE; r++) sum[r] = (wide){0};
  for (i64 i = 0; i < n; i++) {
    const wide here = *(const wide *)(rows + i * d);
    const float *slope = (const float *)(dz + i / SIDE * k) + i % SIDE;
#pragma GCC unroll 16
    for (int r = 0; r < SIDE; r++) sum[r] += slope[r * SIDE] * here;
  }
#pragma GCC unroll 16
  for (int r = 0; r < SIDE; r++) sums[r] = sum[r];
}

/* sum_i a[i] x[i], in four parts: each would wait for its last addition. The count is one of sixteens. */
static inline wide weighted(const float *a, const wide *x, i64 stride, i64 count) {
  wide s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (i64 i = 0; i < count; i += 4, x += 4 * stride) {
    s0 += a[i] * x[0];
    s1 += a[i + 1] * x[stride];
    s2 += a[i + 2] * x[2 * stride];
    s3 += a[i + 3] * x[3 * stride];
  }
  return (s0 + s1) + (s2 + s3);
}

/* z = relu(z); f = h . z */
static void folded(wide *z, const float *h, wide *f, i64 k) {
#pragma GCC unroll 16
  for (i64 r = 0; r < k; r++) z[r] = (wide)((wide_int)z[r] & (z[r] > 0.0f));
  *f = weighted(h, z, 1, k);
}

/* z becomes its own gradient. */
static void unfolded(wide *z, const float *h, const float *g, wide *db, wide *dh, i64 k) {
  const wide slope = *(const wide *)g;
  for (i64 r = 0; r < k; r++) {
    const wide_int open = z[r] > 0.0f;
    dh[r] += slope * z[r];
    z[r] = (wide)((wide_int)(h[r] * slope) & open);
    db[r] += z[r];
  }
}

/* From scores f to weights w (exp(f - beta logsumexp f)) and shares in g (their softmax); 0 where nothing may be read. */
static int weighed(const float *f, const int32_t *ids, int32_t own, float beta, float *w, float *g, i64 n) {
  float top = -3.0e38f, sum = 0.0f;
  int32_t bad = 0;
  for (i64 i = 0; i < n; i++) {
    const float here = ids[i] >= 0 && ids[i] != own ? f[i] : -3.0e38f;
    top = here > top ? here : top;
    bad |= is_nan(f[i]);
  }
  if (top == -3.0e38f && !bad) return 0;
  for (i64 i = 0; i < n; i++) {
    const float made = fast_exp(f[i] - top);
    g[i] = ids[i] >= 0 && ids[i] != own && !(made < NO_WEIGHT) ? made : 0.0f;
    sum += g[i];
  }
  const float scale = expf((1.0f - beta) * top - beta * logf(sum)), share = 1.0f / sum;
  for (i64 i = 0; i < n; i++) {
    w[i] = g[i] * scale;
    g[i] *= share;
  }
  return 1;
}

/* Where an entry's keys go: into rows, into lanes, and (concatenated) through their half of the matrix. */
static void laid_out(const History *t, const Padded *m, Room *o, i64 first, i64 n, i64 d, i64 k) {
  const i64 blocks = (n + SIDE - 1) / SIDE;
  memset(o->x, 0, sizeof(wide) * blocks * d);
  for (i64 i = 0; i < n; i++) {
    const float *key = t->keys + (first + i) * t->width;
    float *lane = (float *)(o->x + i / SIDE * d) + i % SIDE;
    for (i64 j = 0; j < t->width; j++) o->rows[i * d + j] = lane[j * SIDE] = key[j];
    o->ids[i] = (int32_t)t->ids[first + i];
  }
  for (i64 i = n; i < blocks * SIDE; i++) o->ids[i] = -1;
  if (t->dkeys) memset(o->dx, 0, sizeof(wide) * blocks * d);
  if (t->kind != CONCAT) return;
  for (i64 c = 0; c < blocks; c++) product(m->w2, m->b, o->x + c * d, o->v + c * k, d, k);
  if (t->dkeys) memset(o->dv, 0, sizeof(wide) * blocks * k);
}

/* Scores f of all keys, and s = p . q; z keeps what the relu let through. */
static void scored(const History *t, const Padded *m, Room *o, i64 blocks, i64 d, i64 k) {
  if (t->kind == CONCAT) {
    for (i64 r = 0; r < k; r++) o->a[r] = 0.0f;
    for (i64 j = 0; j < d; j++)
      for (i64 r = 0; r < k; r++) o->a[r] += o->p[j] * m->turned[j * k + r];
  } else {
    for (i64 r = 0; r < k; r++)
      for (i64 j = 0; j < d; j++) o->a[r * d + j] = m->w[r * d + j] * o->p[j];
  }
  for (i64 c = 0; c < blocks; c++) {
    wide *z = o->z + c * k, *f = (wide *)(o->f + c * SIDE), *s = (wide *)(o->s + c * SIDE);
    *s = weighted(o->p, o->x + c * d, 1, d);
    if (t->kind == DOT) {
      *f = (float)t->scale * *s;
      continue;
    }
    if (t->kind == CONCAT)
      for (i64 r = 0; r < k; r++) z[r] = o->v[c * k + r] + o->a[r];
    else
      product(o->a, m->b, o->x + c * d, z, d, k);
    folded(z, m->h, f, k);
  }
}

/* What one target teaches: into its own vector, the parameters, and the keys (o->dx, o->dv). */
static void target_back(const History *t, const Padded *m, Room *o, i64 row, i64 n, i64 d, i64 k, float slope) {
  const i64 blocks = (n + SIDE - 1) / SIDE;
  float mean = 0.0f;
  for (i64 i = 0; i < blocks * SIDE; i++) mean += o->w[i] * o->s[i];
  for (i64 i = 0; i < blocks * SIDE; i++) {
    o->g[i] = slope * (o->w[i] * o->s[i] - (float)t->beta * o->g[i] * mean);
    o->w[i] *= slope; /* from here on what a key's own vector gets of p */
    if (t->kind == DOT) o->w[i] += (float)t->scale * o->g[i];
  }
  for (i64 c = 0; c < blocks; c++) {
    wide *z = o->z + c * k, *dx = o->dx + c * d;
    const wide given = *(wide *)(o->w + c * SIDE);
    for (i64 j = 0; j < d; j++) dx[j] += o->p[j] * given;
    if (t->kind == DOT) continue;
    unfolded(z, m->h, o->g + c * SIDE, m->db, m->dh, k);
    if (t->kind == CONCAT)
      for (i64 r = 0; r < k; r++) o->dv[c * k + r] += z[r];
    else
      product_back(o->a, z, dx, d, k);
  }
  for (i64 first = 0; first < d; first += SIDE) {
    const wide p = *(wide *)(o->p + first);
    wide mine = weighted(o->w, (const wide *)(o->rows + first), d / SIDE, blocks * SIDE), sums[SIDE];
    for (i64 r = 0; r < k; r++) {
      wide *dw = (wide *)(m->dw + r * d + first);
      const wide w = *(const wide *)(m->w + r * d + first);
      if (t->kind == CONCAT) {
        wide all = {0};
        for (i64 c = 0; c < blocks; c++) all += o->z[c * k + r];
        const float sum = lanes_sum(&all);
        *dw += sum * p;
        mine += sum * w;
      } else {
        if (r % SIDE == 0) outer(o->z + r, o->rows + first, n, d, k, sums);
        *dw += sums[r % SIDE] * p;
        mine += sums[r % SIDE] * w;
      }
    }
    for (i64 j = first; j < first + SIDE && j < t->width; j++)
      t->dqueries[row * t->width + j] = ((float *)&mine)[j - first];
  }
}

/* What an entry's targets taught its keys. */
static void keys_back(const History *t, const Padded *m, Room *o, i64 at, i64 n, i64 d, i64 k) {
  const i64 blocks = (n + SIDE - 1) / SIDE;
  if (t->kind == CONCAT) {
    for (i64 c = 0; c < blocks; c++) product_back(m->w2, o->dv + c * k, o->dx + c * d, d, k);
    for (i64 first = 0; first < d; first += SIDE)
      for (i64 r = 0; r < k; r += SIDE) {
        wide sums[SIDE];
        outer(o->dv + r, o->rows + first, n, d, k, sums);
        for (int j = 0; j < SIDE; j++) *(wide *)(m->dw2 + (r + j) * d + first) += sums[j];
      }
  }
  for (i64 i = 0; i < n; i++) {
    const float *lane = (const float *)(o->dx + i / SIDE * d) + i % SIDE;
    for (i64 j = 0; j < t->width; j++) t->dkeys[(at + i) * t->width + j] = lane[j * SIDE];
  }
}

static void entry(const History *t, const Padded *m, Room *o, i64 e, i64 d, i64 k) {
  const i64 at = t->bounds[e], n = t->bounds[e + 1] - at, blocks = (n + SIDE - 1) / SIDE;
  laid_out(t, m, o, at, n, d, k);
  for (i64 row = t->cuts[e]; row < t->cuts[e + 1]; row++) {
    memcpy(o->p, t->queries + row * t->width, sizeof(float) * t->width);
    scored(t, m, o, blocks, d, k);
    const int some = weighed(o->f, o->ids, (int32_t)t->targets[row], (float)t->beta, o->w, o->g, blocks * SIDE);
    float y = t->bias[row];
    if (some) {
      float read = 0.0f;
      for (i64 i = 0; i < blocks * SIDE; i++) read += o->w[i] * o->s[i];
      y += read;
    }
    t->logits[row] = y;
    if (!t->labels) continue;
    const float away = y > 0.0f ? y : -y;
    t->loss[row] = (y > 0.0f ? y : 0.0f) - t->labels[row] * y + log1pf(fast_exp(-away));
    if (!t->dkeys) continue;
    const float slope = fast_sigmoid(y) - t->labels[row];
    t->dlogits[row] = slope;
    if (some && !(slope < NO_SLOPE && slope > -NO_SLOPE))
      target_back(t, m, o, row, n, d, k, slope);
    else
      memset(t->dqueries + row * t->width, 0, sizeof(float) * t->width);
  }
  if (t->dkeys) keys_back(t, m, o, at, n, d, k);
}

/* Parameters into padded room, and their gradients back out of it. */
static void padded(const History *t, Padded *m, i64 d, i64 k) {
  const i64 across = t->kind == CONCAT ? 2 * t->width : t->width;
  for (i64 r = 0; r < t->hidden; r++) {
    m->b[r] = t->b[r], m->h[r] = t->h[r];
    for (i64 j = 0; j < across; j++) m->h[r] = nan_of(t->w[r * across + j] + t->b[r], m->h[r]); /* a relu would hide it */
    for (i64 j = 0; j < t->width; j++) {
      m->w[r * d + j] = t->w[r * across + j];
      if (t->kind == CONCAT) m->turned[j * k + r] = t->w[r * across + j], m->w2[r * d + j] = t->w[r * across + t->width + j];
    }
  }
}

static void given_back(const History *t, const Padded *m, i64 d) {
  const i64 across = t->kind == CONCAT ? 2 * t->width : t->width;
  for (i64 r = 0; r < t->hidden; r++) {
    t->db[r] += lanes_sum(m->db + r), t->dh[r] += lanes_sum(m->dh + r);
    for (i64 j = 0; j < t->width; j++) {
      t->dw[r * across + j] += m->dw[r * d + j];
      if (t->kind == CONCAT) t->dw[r * across + t->width + j] += m->dw2[r * d + j];
    }
  }
}

/* Logits of all targets; with labels the log loss of each; with dkeys the loss's gradients. 0 where memory fails. */
i64 heed_history(const History *t) {
  const i64 d = (t->width + SIDE - 1) / SIDE * SIDE, k = (t->hidden + SIDE - 1) / SIDE * SIDE;
  i64 longest = SIDE;
  for (i64 e = 0; e < t->entries; e++) {
    const i64 n = t->bounds[e + 1] - t->bounds[e];
    longest = n > longest ? n : longest;
  }
  const i64 n = (longest + SIDE - 1) / SIDE * SIDE, matrix = d * k;
  const i64 keyed = t->kind == CONCAT ? n * k : 0;
  const i64 whole = 5 * matrix + (2 + 2 * SIDE) * k + n * (3 * d + k + 4) + 2 * keyed + matrix + d + n + k;
  float *room = zeros(whole), *at = room;
  if (!room) return 0;
  Padded m;
  Room o;
#define TAKE(place, type, count) place = (type *)at, at += (count)
  TAKE(m.w, float, matrix); TAKE(m.w2, float, matrix); TAKE(m.turned, float, matrix);
  TAKE(m.dw, float, matrix); TAKE(m.dw2, float, matrix); TAKE(m.b, float, k); TAKE(m.h, float, k);
  TAKE(m.db, wide, SIDE * k); TAKE(m.dh, wide, SIDE * k);
  TAKE(o.x, wide, n * d); TAKE(o.dx, wide, n * d); TAKE(o.rows, float, n * d); TAKE(o.z, wide, n * k);
  TAKE(o.v, wide, keyed); TAKE(o.dv, wide, keyed); TAKE(o.a, float, matrix); TAKE(o.p, float, d);
  TAKE(o.f, float, n); TAKE(o.s, float, n); TAKE(o.w, float, n); TAKE(o.g, float, n); TAKE(o.ids, int32_t, n);
#undef TAKE
  padded(t, &m, d, k);
  for (i64 e = 0; e < t->entries; e++) entry(t, &m, &o, e, d, k);
  if (t->dkeys) given_back(t, &m, d);
  free(room);
  return 1;
}
