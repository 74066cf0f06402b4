/* Word alignment: IBM model 2 with a diagonal prior (Dyer 2013), whose tension may be 0 (IBM model 1).
 *
 * The table of translation probabilities is stored by target word: those of word f, one per source word e that occurs
 * beside it and one of the null word 0, are `table_offsets[f] .. table_offsets[f + 1] - 1`, ascending by e. All
 * occurrences of f are visited one after another, so a thread writes only to the part of its own words, and results do
 * not depend on the number of threads. */
#include "common.h"

typedef struct {
  i64 n_words, source_vocabulary, longest;      /* target vocabulary; source vocabulary, 0 is null; longest source */
  const i64 *source, *source_offsets;           /* ids of all sources, and where each sentence begins */
  const i64 *target_offsets;                    /* where each target begins */
  const i64 *order, *word_offsets, *sentences;  /* target positions by word; their bounds; sentence of each position */
} AlignmentCorpus;

static int compare_ints(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Write the distinct source words beside word f to `distinct`, which has room for the vocabulary; return their number.
 * `seen` holds for each source word the last f it was seen with. */
static i64 distinct_sources(const AlignmentCorpus *corpus, i64 f, i64 *seen, int32_t *distinct) {
  i64 count = 0;
  distinct[count++] = 0;
  seen[0] = f;
  for (i64 k = corpus->word_offsets[f]; k < corpus->word_offsets[f + 1]; k++) {
    const i64 sentence = corpus->sentences[corpus->order[k]];
    for (i64 i = corpus->source_offsets[sentence]; i < corpus->source_offsets[sentence + 1]; i++) {
      const i64 e = corpus->source[i];
      if (seen[e] == f) continue;
      seen[e] = f;
      distinct[count++] = (int32_t)e;
    }
  }
  return count;
}

/* Without `table`: write the number of source words beside each target word to `counts`. With it: write the words, those
 * of f from `table_offsets[f]` on. Return 0 if there is no memory. */
i64 heed_alignment_table(const AlignmentCorpus *corpus, i64 *counts, const i64 *table_offsets, int32_t *table) {
  i64 done = 1;
#pragma omp parallel
  {
    i64 *seen = malloc((size_t)corpus->source_vocabulary * sizeof(i64));
    int32_t *distinct = malloc((size_t)corpus->source_vocabulary * sizeof(int32_t));
    if (seen && distinct) {
      for (i64 e = 0; e < corpus->source_vocabulary; e++) seen[e] = -1;
    } else {
#pragma omp atomic write
      done = 0;
    }
#pragma omp for schedule(dynamic, 16)
    for (i64 f = 0; f < corpus->n_words; f++) {
      if (!seen || !distinct) continue;
      const i64 count = distinct_sources(corpus, f, seen, distinct);
      if (table == NULL) {
        counts[f] = count;
      } else {
        qsort(distinct, (size_t)count, sizeof(int32_t), compare_ints);
        memcpy(table + table_offsets[f], distinct, (size_t)count * sizeof(int32_t));
      }
    }
    free(seen);
    free(distinct);
  }
  return done;
}

typedef struct {
  const i64 *table_offsets;
  const int32_t *table;
  const float *probabilities;  /* of each entry of the table */
  double null_probability, tension;
  double *counts;              /* NULL, or the expected number of links of each entry */
  double *statistics;          /* NULL, or 4 per target word, see `visit` */
  i64 *best;                   /* NULL, or for each target position the position of the likeliest source word; -1: null */
} AlignmentStep;

/* Visit one target position with word f: p(a = i) is proportional to t(f|e_i) times `null_probability` for null, and
 * `(1 - null_probability) exp(-tension |i/m - j/n|) / Z` for word i. `entry[e]` is the entry of (e, f); `weights` and
 * `distances` have room for the longest source. Statistics: log-likelihood; sum of the distances under the posterior;
 * mean and variance of the distance under the prior, weighted by the posterior of not being null. */
static void visit(const AlignmentCorpus *corpus, const AlignmentStep *step, i64 position, const i64 *entry,
                  float *weights, float *distances, double *statistics) {
  const i64 sentence = corpus->sentences[position];
  const i64 *source = corpus->source + corpus->source_offsets[sentence];
  const i64 m = corpus->source_offsets[sentence + 1] - corpus->source_offsets[sentence];
  const i64 start = corpus->target_offsets[sentence], n = corpus->target_offsets[sentence + 1] - start;
  const float relative = (float)(position - start + 1) / (float)n, tension = (float)step->tension;
  float normalizer = 0.0f, first = 0.0f, second = 0.0f;
  for (i64 i = 0; i < m; i++) {
    const float distance = fabsf((float)(i + 1) / (float)m - relative), weight = exp_of_number(-tension * distance);
    distances[i] = distance;
    weights[i] = weight;
    normalizer += weight;
    first += weight * distance;
    second += weight * distance * distance;
  }
  const double scale = m ? (1.0 - step->null_probability) / normalizer : 0.0;
  const double null = step->null_probability * step->probabilities[entry[0]];
  double total = null, likeliest = null;
  i64 best = -1;
  for (i64 i = 0; i < m; i++) {
    const double joint = scale * weights[i] * step->probabilities[entry[source[i]]];
    weights[i] = (float)joint;
    total += joint;
    if (joint > likeliest) likeliest = joint, best = i;
  }
  if (step->best) step->best[position] = best;
  if (!step->counts || total <= 0.0) return;
  const double inverse = 1.0 / total;
  double distance = 0.0;
  step->counts[entry[0]] += null * inverse;
  for (i64 i = 0; i < m; i++) {
    const double posterior = weights[i] * inverse;
    step->counts[entry[source[i]]] += posterior;
    distance += posterior * distances[i];
  }
  const double linked = 1.0 - null * inverse, mean = m ? first / normalizer : 0.0;
  statistics[0] += log(total);
  statistics[1] += distance;
  statistics[2] += linked * mean;
  statistics[3] += m ? linked * (second / normalizer - mean * mean) : 0.0;
}

/* One pass over the corpus: expected counts and statistics, or the likeliest links. Return 0 if there is no memory. */
i64 heed_alignment_pass(const AlignmentCorpus *corpus, const AlignmentStep *step) {
  i64 done = 1;
#pragma omp parallel
  {
    i64 *entry = malloc((size_t)corpus->source_vocabulary * sizeof(i64));
    float *buffer = malloc((size_t)(2 * corpus->longest + 1) * sizeof(float));
    if (!entry || !buffer) {
#pragma omp atomic write
      done = 0;
    }
#pragma omp for schedule(dynamic, 16)
    for (i64 f = 0; f < corpus->n_words; f++) {
      if (!entry || !buffer) continue;
      double none[4], *statistics = step->statistics ? step->statistics + 4 * f : none;
      memset(statistics, 0, 4 * sizeof(double));
      for (i64 k = step->table_offsets[f]; k < step->table_offsets[f + 1]; k++) {
        entry[step->table[k]] = k;
        if (step->counts) step->counts[k] = 0.0;
      }
      for (i64 k = corpus->word_offsets[f]; k < corpus->word_offsets[f + 1]; k++)
        visit(corpus, step, corpus->order[k], entry, buffer, buffer + corpus->longest, statistics);
    }
    free(entry);
    free(buffer);
  }
  return done;
}
