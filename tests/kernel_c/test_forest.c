/* Trees on a window: grown to the end and beyond it, for every link and odd sizes; F is what the trees say of each row. */

#include "forest.h"

#include "check.h"

static void grow(ptrdiff_t features, ptrdiff_t columns, int link, int events) {
    size_t p = (size_t)features, d = (size_t)columns, lanes = (size_t)forest_lanes(columns);
    ptrdiff_t room = WINDOW;
    Forest forest = {
        .X = room_for(p * WINDOW * sizeof(float)),
        .edges = room_for(p * EDGES * sizeof(float)),
        .cuts = room_for((TREES + 1) * DEPTH * sizeof(float)),
        .B = room_for(p * WINDOW),
        .code = room_for(WINDOW),
        .Y = room_for(WINDOW * sizeof(int64_t)),
        .splits = room_for((TREES + 1) * DEPTH * sizeof(int64_t)),
        .depths = room_for((TREES + 1) * sizeof(int64_t)),
        .sizes = room_for(TREES * LEAVES * sizeof(int64_t)),
        .clock = room_for(CLOCK * sizeof(int64_t)),
        .weights = room_for(WINDOW * sizeof(double)),
        .F = room_for(WINDOW * d * sizeof(double)),
        .leaves = room_for(TREES * LEAVES * d * sizeof(double)),
        .numbers = room_for(NUMBERS * sizeof(double)),
        .gradients = room_for(WINDOW * lanes * sizeof(int32_t)),
        .features = features,
        .room = room,
        .columns = columns,
        .lanes = (ptrdiff_t)lanes,
        .link = link,
    };
    for (size_t i = 0; i < p * EDGES; i++) forest.edges[i] = 3.402823466e38f;
    forest.clock[PHASE] = BIN;
    void *scratch = room_for(forest_scratch(columns));
    float *x = room_for(p * sizeof *x);
    double *scores = room_for(d * sizeof *scores);
    for (int n = 0; n < events; n++) {
        for (size_t j = 0; j < p; j++) x[j] = j % 3 ? (float)spread() : (float)below(3);
        int64_t truth = link == BITS ? (int64_t)below((size_t)1 << d) : (int64_t)1 << below(d);
        forest_insert(&forest, x, truth, 0.5 + fabs(spread()));
        for (int64_t due = forest_due(&forest); due > 0; due--) forest_step(&forest, scratch);
    }
    for (size_t k = 0, row = below((size_t)(events < WINDOW ? events : WINDOW)); k < d; k++) {
        for (size_t j = 0; j < p; j++) x[j] = forest.X[(ptrdiff_t)j * room + (ptrdiff_t)row];
        forest_scores(&forest, x, scores);
        CHECK(isfinite(scores[k]) && near(scores[k], forest.F[row * d + k], 1.0));
    }
    CHECK(events < 100 || forest.clock[GROWN] > 0);
    free(forest.X), free(forest.edges), free(forest.cuts), free(forest.B), free(forest.code), free(forest.Y), free(forest.splits);
    free(forest.depths), free(forest.sizes), free(forest.clock), free(forest.weights), free(forest.F), free(forest.leaves);
    free(forest.numbers), free(forest.gradients), free(scratch), free(x), free(scores);
}

int main(void) {
    for (int link = SOFTMAX; link <= BITS; link++)
        for (ptrdiff_t columns = 1; columns < 6; columns += 2) grow(1 + (ptrdiff_t)below(9), columns, link, 600);
    grow(70, 3, SOFTMAX, 300); /* a draw of the features */
    grow(2, 2, BITS, WINDOW + 500);
    return 0;
}
