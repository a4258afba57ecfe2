/* tasks/permutations.py, searches.py, slam.py, minimax.py and listnet.py where a label is right or wrong: directions of orders. */

#ifndef FEEDRANK_PERMUTATIONS_H
#define FEEDRANK_PERMUTATIONS_H

#include <stddef.h>

#include "orders.h"

enum { PREDTRON_ORDER, SLAM_ORDER, LISTNET_ORDER, MINIMAX_ORDER };

/* How a direction is made, from which loss; `margin` is SLAM's. */
typedef struct {
    int kind;
    OrderLoss loss;
    double margin;
} OrderRule;

/* A merge of so many pairs of a right and a wrong label is left to `even_merge`. */
#define MOST_PAIRS (1 << 14)

/* g of one round, in which `rights` labels are right, ascending, and what the order of the scores costs; F are the weights of the
   places. 1, 0 where no weight changes, -1 where there is no memory. */
int order_direction(const OrderRule *rule, const double *t, ptrdiff_t count, const ptrdiff_t *right, ptrdiff_t rights, const double *F,
                    double *g, double *loss);

#endif
