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

void entropic_step(const Entropic *weights, const EntropicWords *words, size_t r, size_t s, double most, double margin);

#endif
