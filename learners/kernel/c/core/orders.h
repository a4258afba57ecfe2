/* losses/rankings.py where a label is right or wrong: what an order costs, by counting places. */

#ifndef FEEDRANK_ORDERS_H
#define FEEDRANK_ORDERS_H

#include <stddef.h>

enum { NDCG_LOSS, PRECISION_LOSS, AP_LOSS };

/* A loss on the first `cutoff` places, 0 for all; `discounts` are D(1), D(2), ... of NDCG. */
typedef struct {
    int measure;
    ptrdiff_t cutoff;
    const double *discounts;
} OrderLoss;

/* The order of falling scores, of equals what joined first; `room` has `count` places. */
void order_of(const double *t, ptrdiff_t *order, ptrdiff_t *room, ptrdiff_t count);

/* The places from 0 of some labels in that order, ascending; `room` has 3 count places. */
void places_of(const double *t, ptrdiff_t count, const ptrdiff_t *right, ptrdiff_t rights, ptrdiff_t *places, ptrdiff_t *room);

/* What an order costs that has the right labels at these places; `room` has `count` numbers. */
double places_loss(const OrderLoss *loss, const ptrdiff_t *places, ptrdiff_t rights, ptrdiff_t count, double *room);

/* The least gap of neighbours in the order, down to the one just below the cutoff; there are two labels at least. */
double order_gap(const OrderLoss *loss, const double *t, const ptrdiff_t *order, ptrdiff_t count);

#endif
