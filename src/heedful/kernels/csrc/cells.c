/* The element-wise part of GRU and LSTM cells, after their matrix products, and its backward pass. Gates are side by
 * side in torch's order. */
#include "common.h"

/* ---- GRU -------------------------------------------------------------------------------------------------- */

static void gru_row(const float *gi, const float *gh, const float *h, float *restrict out, float *restrict reset,
                    float *restrict update, float *restrict candidate, i64 n) {
  for (i64 j = 0; j < n; j++) {
    reset[j] = fast_sigmoid(gi[j] + gh[j]);
    update[j] = fast_sigmoid(gi[n + j] + gh[n + j]);
    candidate[j] = fast_tanh(gi[2 * n + j] + reset[j] * gh[2 * n + j]);
    out[j] = candidate[j] + update[j] * (h[j] - candidate[j]);
  }
}

/* gi = W_i x + b_i and gh = W_h h + b_h, each [row][reset, update, candidate]. `gates` receives the activated gates,
 * which the backward pass needs. */
void heed_gru_cell(const float *gi, const float *gh, const float *h, float *out, float *gates, i64 rows, i64 n) {
#pragma omp parallel for schedule(static) if (rows * n > 8192)
  for (i64 i = 0; i < rows; i++)
    gru_row(gi + i * 3 * n, gh + i * 3 * n, h + i * n, out + i * n, gates + i * 3 * n, gates + i * 3 * n + n,
            gates + i * 3 * n + 2 * n, n);
}

static void gru_row_backward(const float *gates, const float *hn, const float *h, const float *dout,
                             float *restrict dgi, float *dgh, float *restrict dh, i64 n) {
#pragma GCC ivdep
  for (i64 j = 0; j < n; j++) {
    float r = gates[j], z = gates[n + j], c = gates[2 * n + j];
    float dc = dout[j] * (1.0f - z) * (1.0f - c * c);
    float dz = dout[j] * (h[j] - c) * z * (1.0f - z);
    float dr = dc * hn[j] * r * (1.0f - r);
    dgi[j] = dr;
    dgi[n + j] = dz;
    dgi[2 * n + j] = dc;
    dgh[j] = dr;
    dgh[n + j] = dz;
    dgh[2 * n + j] = dc * r;
    dh[j] = dout[j] * z;
  }
}

/* `hn` is the last third of gh, with rows `hn_stride` floats apart. dh is the part of h's gradient that does not pass
 * through the gates. dgh may be the same memory as `gates`. */
void heed_gru_cell_backward(const float *gates, const float *hn, i64 hn_stride, const float *h, const float *dout,
                            float *dgi, float *dgh, float *dh, i64 rows, i64 n) {
#pragma omp parallel for schedule(static) if (rows * n > 8192)
  for (i64 i = 0; i < rows; i++)
    gru_row_backward(gates + i * 3 * n, hn + i * hn_stride, h + i * n, dout + i * n, dgi + i * 3 * n, dgh + i * 3 * n,
                     dh + i * n, n);
}

/* ---- LSTM ------------------------------------------------------------------------------------------------- */

static void lstm_row(float *restrict input, float *restrict forget, float *restrict candidate, float *restrict output,
                     const float *c, float *restrict out, float *restrict cell, float *restrict tanh_cell, i64 n) {
  for (i64 j = 0; j < n; j++) {
    input[j] = fast_sigmoid(input[j]);
    forget[j] = fast_sigmoid(forget[j]);
    candidate[j] = fast_tanh(candidate[j]);
    output[j] = fast_sigmoid(output[j]);
    cell[j] = forget[j] * c[j] + input[j] * candidate[j];
    tanh_cell[j] = fast_tanh(cell[j]);
    out[j] = output[j] * tanh_cell[j];
  }
}

/* `gates` = W_i x + b_i + W_h h + b_h, [row][input, forget, candidate, output]; they are activated in place.
 * tanh_cell, the tanh of the new cell, is kept for the backward pass. */
void heed_lstm_cell(float *gates, const float *c, float *out, float *cell, float *tanh_cell, i64 rows, i64 n) {
#pragma omp parallel for schedule(static) if (rows * n > 8192)
  for (i64 i = 0; i < rows; i++) {
    float *g = gates + i * 4 * n;
    lstm_row(g, g + n, g + 2 * n, g + 3 * n, c + i * n, out + i * n, cell + i * n, tanh_cell + i * n, n);
  }
}

static void lstm_row_backward(float *restrict input, float *restrict forget, float *restrict candidate,
                              float *restrict output, const float *c, const float *tanh_cell, const float *dh,
                              float *restrict dc, i64 n) {
  for (i64 j = 0; j < n; j++) {
    float i = input[j], f = forget[j], g = candidate[j], o = output[j], t = tanh_cell[j];
    float d = dc[j] + dh[j] * o * (1.0f - t * t);
    input[j] = d * g * i * (1.0f - i);
    forget[j] = d * c[j] * f * (1.0f - f);
    candidate[j] = d * i * (1.0f - g * g);
    output[j] = dh[j] * t * o * (1.0f - o);
    dc[j] = d * f;
  }
}

/* In place: the activated gates become the gradients of the gates, and dc turns from the gradient of the new cell into
 * that of the old one. */
void heed_lstm_cell_backward(float *gates, const float *c, const float *tanh_cell, const float *dh, float *dc, i64 rows,
                             i64 n) {
#pragma omp parallel for schedule(static) if (rows * n > 8192)
  for (i64 i = 0; i < rows; i++) {
    float *g = gates + i * 4 * n;
    lstm_row_backward(g, g + n, g + 2 * n, g + 3 * n, c + i * n, tanh_cell + i * n, dh + i * n, dc + i * n, n);
  }
}
