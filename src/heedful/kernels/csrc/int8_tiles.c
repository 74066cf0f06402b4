/* Integer products for each instruction set, and the choice among those that this processor has. All give the same
 * integers. Inputs are bytes of -127..127 plus `offset`, which is 128 where an instruction multiplies unsigned with signed
 * bytes. */
#include "common.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

typedef void (*Int8Product)(const uint8_t *x, const int8_t *w, i64 rows, i64 quads, i64 groups, int32_t *acc);

typedef struct {
  const char *name;
  Int8Product product;
  int32_t offset;
} Int8Kernel;

typedef int32_t __attribute__((may_alias, aligned(1))) unaligned_int;

#ifdef __AVX512VNNI__
#define NAME int8_product_avx512_vnni
#define TARGET
#define VECTOR __m512i
#define ROWS 6
#define PARTS 4
#define SINGLE_PARTS 4
#define ZERO _mm512_setzero_si512
#define INPUT __m512i
#define BROADCAST(p) _mm512_set1_epi32(*(const unaligned_int *)(p))
#define MULTIPLY(sums, input, p) _mm512_dpbusd_epi32(sums, input, _mm512_loadu_si512(p))
#define STORE(p, sums) _mm512_storeu_si512(p, sums)
#define PREFETCH 4096
#include "int8_tile.h"
#endif

#if defined(__AVX2__) && __GNUC__ >= 12
/* The 256-bit form of VNNI, of processors with AVX2 and without AVX-512 (laptops since 2021). */
#define HAVE_AVX_VNNI
#define AVX_VNNI __attribute__((target("avxvnni")))
#define NAME int8_product_avx_vnni
#define TARGET AVX_VNNI
#define VECTOR __m256i
#define ROWS 3
#define PARTS 4
#define SINGLE_PARTS 8
#define ZERO _mm256_setzero_si256
#define INPUT __m256i
#define BROADCAST(p) _mm256_set1_epi32(*(const unaligned_int *)(p))
#define MULTIPLY(sums, input, p) _mm256_dpbusd_avx_epi32(sums, input, _mm256_loadu_si256((const __m256i *)(p)))
#define STORE(p, sums) _mm256_storeu_si256((__m256i *)(p), sums)
#define PREFETCH 2048
#include "int8_tile.h"
#endif

#ifdef __AVX2__
/* AVX2 multiplies unsigned with signed bytes and adds pairs of products in 16 bits, which saturate. So the magnitude of
 * an input is multiplied with the weight times its sign: a pair is at most 2 * 127 * 127. */
typedef struct {
  __m256i signs, magnitudes;
} SignedInput;

static inline __attribute__((always_inline)) SignedInput broadcast_signed(const uint8_t *p) {
  const __m256i signs = _mm256_set1_epi32(*(const unaligned_int *)p);
  return (SignedInput){signs, _mm256_abs_epi8(signs)};
}

static inline __attribute__((always_inline)) __m256i multiply_signed(__m256i sums, SignedInput x, const int8_t *p) {
  const __m256i weights = _mm256_sign_epi8(_mm256_loadu_si256((const __m256i *)p), x.signs);
  const __m256i pairs = _mm256_maddubs_epi16(x.magnitudes, weights);
  return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#define NAME int8_product_avx2
#define TARGET
#define VECTOR __m256i
#define ROWS 2
#define PARTS 4
#define SINGLE_PARTS 8
#define ZERO _mm256_setzero_si256
#define INPUT SignedInput
#define BROADCAST broadcast_signed
#define MULTIPLY multiply_signed
#define STORE(p, sums) _mm256_storeu_si256((__m256i *)(p), sums)
#define PREFETCH 2048
#include "int8_tile.h"
#endif

#ifdef __aarch64__
#define DOT_PRODUCT __attribute__((target("arch=armv8.2-a+dotprod")))
#define NAME int8_product_neon
#define TARGET DOT_PRODUCT
#define VECTOR int32x4_t
#define ROWS 4
#define PARTS 4
#define SINGLE_PARTS 8
#define ZERO() vdupq_n_s32(0)
#define INPUT int8x16_t
#define BROADCAST(p) vreinterpretq_s8_s32(vdupq_n_s32(*(const unaligned_int *)(p)))
#define MULTIPLY(sums, input, p) vdotq_s32(sums, input, vld1q_s8(p))
#define STORE(p, sums) vst1q_s32(p, sums)
#define PREFETCH 2048
#include "int8_tile.h"
#endif

/* For all other processors. */
static void int8_product_plain(const uint8_t *bytes, const int8_t *w, i64 rows, i64 quads, i64 groups, int32_t *acc) {
  const int8_t *x = (const int8_t *)bytes; /* a conversion byte by byte is compiled wrongly by gcc 12 with VNNI */
  for (i64 r = 0; r < rows; r++)
    for (i64 g = 0; g < groups; g++)
      for (i64 lane = 0; lane < 16; lane++) {
        int32_t sum = 0;
        for (i64 c = 0; c < quads; c++)
          for (i64 b = 0; b < 4; b++)
            sum += (int32_t)x[r * quads * 4 + c * 4 + b] * w[(c * groups + g) * 64 + lane * 4 + b];
        acc[(r * groups + g) * 16 + lane] = sum;
      }
}

/* Those of this build, fastest first. */
static const Int8Kernel INT8_KERNELS[] = {
#ifdef __AVX512VNNI__
    {"avx512-vnni", int8_product_avx512_vnni, 128},
#endif
#ifdef HAVE_AVX_VNNI
    {"avx-vnni", int8_product_avx_vnni, 128},
#endif
#ifdef __AVX2__
    {"avx2", int8_product_avx2, 0},
#endif
#ifdef __aarch64__
    {"neon-dot", int8_product_neon, 0},
#endif
    {"plain", int8_product_plain, 0},
};
#define INT8_KERNEL_COUNT (i64)(sizeof(INT8_KERNELS) / sizeof(INT8_KERNELS[0]))

static const Int8Kernel *int8_kernel = INT8_KERNELS + INT8_KERNEL_COUNT - 1; /* until heed_choose_int8 is called */

/* Whether this processor can run a kernel whose instructions the build itself does not need. */
static int int8_supported(const Int8Kernel *kernel) {
#ifdef HAVE_AVX_VNNI
  if (kernel->product == int8_product_avx_vnni) return __builtin_cpu_supports("avxvnni");
#endif
#ifdef __aarch64__
  if (kernel->product == int8_product_neon) return (getauxval(AT_HWCAP) >> 20) & 1; /* HWCAP_ASIMDDP */
#endif
  return kernel != NULL;
}

/* The name of the i-th kernel of this build, fastest first; NULL if this processor cannot run it, "" behind the last. */
const char *heed_int8_name(i64 i) {
  if (i < 0 || i >= INT8_KERNEL_COUNT) return "";
  return int8_supported(INT8_KERNELS + i) ? INT8_KERNELS[i].name : NULL;
}

/* Use the i-th kernel from now on; return whether it can be used. Not to be called while products are computed. */
i64 heed_choose_int8(i64 i) {
  if (i < 0 || i >= INT8_KERNEL_COUNT || !int8_supported(INT8_KERNELS + i)) return 0;
  int8_kernel = INT8_KERNELS + i;
  return 1;
}
