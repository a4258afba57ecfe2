/* ndcg.py: what an order is worth by NDCG, and features within their list. */

#ifndef FEEDRANK_NDCG_H
#define FEEDRANK_NDCG_H

#include <stddef.h>
#include <stdint.h>

/* The gains of `count` grades of at least 0. */
void gains_of(const double *grades, double *gains, ptrdiff_t count);

/* 1 - NDCG on the first `most` places of `order`; `room` has count + most numbers. */
double ndcg_loss(const int64_t *order, const double *gains, const double *discounts, double *room, ptrdiff_t count, ptrdiff_t most);

/* Every column from 0 to 1; `room` has 2 columns numbers. */
void scale_columns(const double *values, double *scaled, double *room, ptrdiff_t count, ptrdiff_t columns);

/* x_0 + x_1 + ... as NumPy sums an array: eight sums side by side within 128 numbers, halves beyond. */
double block_sum(const double *x, ptrdiff_t count);

#endif
