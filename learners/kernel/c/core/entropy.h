/* entropy.py: a step of entropic weights on one pair of labels, in place. */

#ifndef FEEDRANK_ENTROPY_H
#define FEEDRANK_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

/* Cells u - 1, the rows `width` numbers apart, and their sums, one a label. */
typedef struct {
    double *cells, *sums;
    ptrdiff_t width;
    double size;
} Entropic;

/* x on `count` rows; `powers` has room for as many numbers. */
typedef struct {
    const int64_t *rows;
    const double *x;
    size_t count;
    double *powers;
} EntropicWords;

/* theta and u = e^(theta - level), and the sums of u with a bound on their relative errors: see weights/entropic.py. */
typedef struct {
    double *theta, *u;
    ptrdiff_t theta_width, u_width;
    double *sums, *level, *drift;
} EntropicSums;

/* theta <- theta - step x in a column of the rows of `words`, u and its sum with it; what theta was is left in `old`, `apart`
   numbers apart. 1 if the level must be made anew, 2 if the sum, else 0. */
int entropic_move(const EntropicSums *weights, const EntropicWords *words, size_t column, double step, double *old, size_t apart);

void entropic_step(const Entropic *weights, const EntropicWords *words, size_t r, size_t s, double most, double margin);

#endif
