/* forest.py: boosted oblivious trees on a window of events, grown in slices. */

#ifndef FEEDRANK_FOREST_H
#define FEEDRANK_FOREST_H

#include <stddef.h>
#include <stdint.h>

enum { TREES = 30, DEPTH = 6, LEAVES = 64, BINS = 32, EDGES = 31, WINDOW = 4096 };
enum { SOFTMAX, SHARED, BITS };                            /* the link, and what Y of a row is */
enum { EVENTS, GROWN, PHASE, LEVEL, CURSOR, BEST_FEATURE, BEST_BIN, UPTO, BINNED, CLOCK }; /* of `clock` */
enum { CREDIT, BEST, BASE, NUMBERS };                                                      /* of `numbers` */
enum { START, SEARCH, SPLIT, FINISH, BIN };                                                /* of clock[PHASE] */

/* Arrays, owned by others: see forest.py. Columns of features are `room` rows apart. */
typedef struct {
    float *X, *edges, *cuts;
    uint8_t *B, *code;
    int64_t *Y, *splits, *depths, *sizes, *clock;
    double *weights, *F, *leaves, *numbers;
    int32_t *gradients;
    ptrdiff_t features, room, columns, lanes;
    int link;
} Forest;

/* Scratch that a step needs: bytes for so many columns. */
size_t forest_scratch(ptrdiff_t columns);

/* Numbers of `gradients` a row. */
ptrdiff_t forest_lanes(ptrdiff_t columns);

/* The scores of an instance, which has a number for every feature. */
void forest_scores(const Forest *forest, const float *x, double *scores);

/* One more row: there must be room for it. */
void forest_insert(Forest *forest, const float *x, int64_t truth, double weight);

/* How many steps are due after a row was inserted. */
int64_t forest_due(Forest *forest);

/* One step of growth. */
void forest_step(Forest *forest, void *scratch);

#endif
