/* exp, log and cos of elementary.py, one element at a time: the same operations in the same order, the same bits. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wide.h"

static const double LN2_HIGH = 0x1.62e42fee00000p-1, LN2_LOW = 0x1.a39ef35793c76p-33;
static const double INVERSE_LN2 = 0x1.71547652b82fep+0, HALF_ROOT = 0x1.6a09e667f3bcdp-1, TURN = 0x1.921fb54442d18p+2;
static const double COTH[] = {1.0 / 37362124800.0, -691.0 / 653837184000.0, 1.0 / 23950080.0, -1.0 / 604800.0,
                              1.0 / 15120.0,       -1.0 / 360.0,            1.0 / 6.0};
static const double ARTANH[] = {1.0 / 25.0, 1.0 / 23.0, 1.0 / 21.0, 1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0,
                                1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0,  1.0 / 7.0,  1.0 / 5.0,  1.0 / 3.0};
static const double SINE[] = {1.0 / 25852016738884976640000.0,
                              -1.0 / 51090942171709440000.0,
                              1.0 / 121645100408832000.0,
                              -1.0 / 355687428096000.0,
                              1.0 / 1307674368000.0,
                              -1.0 / 6227020800.0,
                              1.0 / 39916800.0,
                              -1.0 / 362880.0,
                              1.0 / 5040.0,
                              -1.0 / 120.0,
                              1.0 / 6.0};

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Horner's rule, the highest power first. */
static inline double polynomial(const double *coefficients, int count, double x) {
    double value = coefficients[0];
    for (int i = 1; i < count; i++) value = value * x + coefficients[i];
    return value;
}

static inline double of_bits(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* 1.5 * 2^52: a number below 2^51 that is added to it comes out rounded to a whole one, which stands in the lowest bits. Neither
   a call nor a branch, so that loops over arrays take several numbers at a time. */
#define WHOLE 0x1.8p52

/* e^x = 2^k (1 + 2 r / (r coth(r / 2) - r)), r = x - k ln 2; x is taken to [-708, 709]. */
static inline double exp_of(double x) {
    x = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
    double shifted = x * INVERSE_LN2 + WHOLE, k = shifted - WHOLE;
    double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    double square = r * r;
    double even = polynomial(COTH, COUNT_OF(COTH), square) * square + 2.0;
    return (1.0 + 2.0 * r / (even - r)) * of_bits((bits_of(shifted) + 1023) << 52);
}

static inline double sigmoid_of(double x) { return 1.0 / (1.0 + exp_of(-x)); }

/* ln x of an x of at least 2^-1022. */
static inline double log_normal(double x) {
    uint64_t bits = bits_of(x);
    double m = of_bits((bits & 0xfffffffffffffu) | 0x3fe0000000000000u), low = m < HALF_ROOT ? 1.0 : 0.0;
    double power = (of_bits((bits >> 52) | 0x4330000000000000u) - 0x1p52) - (1022.0 + low); /* the exponent, as a number */
    m = m < HALF_ROOT ? m + m : m;
    double s = (m - 1.0) / (m + 1.0), square = s * s;
    double tail = polynomial(ARTANH, COUNT_OF(ARTANH), square) * square;
    return power * LN2_HIGH + ((s + s) + ((s + s) * tail + power * LN2_LOW));
}

/* ln x = k ln 2 + 2 artanh((m - 1) / (m + 1)), x = m 2^k with m in [sqrt(1/2), sqrt(2)); x above 0, finite. */
static inline double log_of(double x) {
    if (x >= 0x1p-1022) return log_normal(x);
    int k;
    double m = frexp(x, &k);
    if (m < HALF_ROOT) {
        m = m + m;
        k -= 1;
    }
    double power = (double)k, s = (m - 1.0) / (m + 1.0), square = s * s;
    double tail = polynomial(ARTANH, COUNT_OF(ARTANH), square) * square;
    return power * LN2_HIGH + ((s + s) + ((s + s) * tail + power * LN2_LOW));
}

/* cos(2 pi t) = sin(2 pi (1/4 - |f|)), f = t - rint(t). */
static inline double cos_turns_of(double turns) {
    double x = (0.25 - fabs(turns - rint(turns))) * TURN, square = x * x;
    return x - x * square * polynomial(SINE, COUNT_OF(SINE), square);
}

/* Labels that never were right mostly have one score: so many numbers at a time are taken over where all equal the one before. */
#define RUN 16

static inline int is_run(const double *x, ptrdiff_t i) {
    int same = 1;
    for (ptrdiff_t n = 0; n < RUN; n++) same &= x[i + n] == x[i - 1];
    return same;
}

/* out_i = e^(x_i - shift). */
WIDE static void exp_each(const double *x, double shift, double *restrict out, ptrdiff_t count) {
    ptrdiff_t i = 0;
    for (; i + RUN <= count; i += RUN)
        if (i && is_run(x, i))
            for (ptrdiff_t n = 0; n < RUN; n++) out[i + n] = out[i - 1];
        else
            for (ptrdiff_t n = 0; n < RUN; n++) out[i + n] = exp_of(x[i + n] - shift);
    for (; i < count; i++) out[i] = exp_of(x[i] - shift);
}

#define LANES_OF_TOP 8

/* The highest of some numbers, at least one; several at a time, for a comparison is exact in any order. */
WIDE static double top_of(const double *x, ptrdiff_t count) {
    double tops[LANES_OF_TOP], top = x[0];
    ptrdiff_t i = 0;
    for (int n = 0; n < LANES_OF_TOP; n++) tops[n] = top;
    for (; i + LANES_OF_TOP <= count; i += LANES_OF_TOP)
        for (int n = 0; n < LANES_OF_TOP; n++) tops[n] = x[i + n] > tops[n] ? x[i + n] : tops[n];
    for (; i < count; i++) top = x[i] > top ? x[i] : top;
    for (int n = 0; n < LANES_OF_TOP; n++) top = tops[n] > top ? tops[n] : top;
    return top;
}

/* p_i = e^x_i / sum e^x_j. */
static inline void softmax_of(const double *x, double *p, ptrdiff_t count) {
    double top = count ? top_of(x, count) : 0.0, sum = 0.0;
    exp_each(x, top, p, count);
    for (ptrdiff_t i = 0; i < count; i++) sum += p[i];
    for (ptrdiff_t i = 0; i < count; i++) p[i] /= sum;
}
