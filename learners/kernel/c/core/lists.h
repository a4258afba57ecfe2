/* lists.py: the automatic learner's round on a list. Every sum runs from the first to the last. */

#ifndef FEEDRANK_LISTS_H
#define FEEDRANK_LISTS_H

#include <stddef.h>
#include <stdint.h>

#define SCORERS 4
#define POOLED 6 /* members of the pool: the scorers, their mean and their stack */
#define TOP 10

/* What a round changes; see ListState in lists.py. `left` is r; A is a matrix, or where `wide` the bounds on its rows. */
typedef struct {
    double *w, *left, *A, *coin, *a, *S, *losses, *shares;
    ptrdiff_t inputs;
    int wide;
} ListState;

/* The bytes that inputs_of needs beside its result. */
size_t inputs_room(ptrdiff_t count, ptrdiff_t features);

/* C of the values of a list of at least one item; `room` is of inputs_room bytes. */
void inputs_of(const double *values, double *C, void *room, ptrdiff_t count, ptrdiff_t features);

/* t = C w, the scorers' scores one behind the other; `w` has SCORERS numbers an input. */
void score_items(const double *C, const double *w, double *t, ptrdiff_t count, ptrdiff_t inputs);

/* E, the members' scores, and the pool's. */
void pool_scores(const double *t, const double *a, const double *shares, double *E, double *scores, ptrdiff_t count);

/* 1 - NDCG at `most` of each row of E. */
void top_losses(const double *E, const double *gain, const double *discounts, double *losses, ptrdiff_t most, ptrdiff_t count);

/* See lists.py; `room` has 7 count numbers. */
void pair_push(const double *s, const double *gain, double *push, double *room, ptrdiff_t count);

/* A list and its truth as learn_list takes them: C, the values and the features of its columns; gains, grades and discounts
   of the first `most` places; t and E. */
typedef struct {
    const double *C, *values;
    const int64_t *rows;
    const double *gain, *grades, *discounts, *t, *E;
    ptrdiff_t count, features, most;
} LessonOfList;

/* The numbers, and the places, that learn_list needs beside the state. */
size_t round_room(ptrdiff_t count, ptrdiff_t features, ptrdiff_t inputs);

/* One round in place, which cannot fail: the loss of a member drawn by its share; D goes on in `gaps`. `places` has room for
   2 features numbers. */
double learn_list(ListState *state, const LessonOfList *lesson, double weight, double *gaps, double *room, ptrdiff_t *places);

#endif
