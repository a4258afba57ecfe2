/* Four numbers side by side: sums that do not depend on each other, which compilers do not keep in registers by themselves.

   The same operations on each, so that the bits are those of plain loops. */

#ifndef FEEDRANK_LANES_H
#define FEEDRANK_LANES_H

#include <string.h>

#define LANES 4

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi" /* no lanes are passed between files */
#define INLINE static inline __attribute__((always_inline))
typedef double Lanes __attribute__((vector_size(32)));
#define plus_times(sum, v, x) ((sum) + (v) * (x))
#else
#define INLINE static inline
typedef struct {
    double numbers[LANES];
} Lanes;

/* sum + v x. */
INLINE Lanes plus_times(Lanes sum, Lanes v, double x) {
    for (int i = 0; i < LANES; i++) sum.numbers[i] += v.numbers[i] * x;
    return sum;
}
#endif

INLINE Lanes lanes_at(const double *numbers) {
    Lanes v;
    memcpy(&v, numbers, sizeof v);
    return v;
}

INLINE Lanes no_lanes(void) {
    Lanes v;
    memset(&v, 0, sizeof v);
    return v;
}

#define lanes_to(numbers, v) ((void)memcpy((numbers), &(v), sizeof(Lanes)))

#endif
