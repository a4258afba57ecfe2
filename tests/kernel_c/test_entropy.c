/* Steps of entropic weights: finite cells, sums that are those of the cells, a margin that is reached or the largest step. */

#include "entropy.h"

#include "check.h"

/* u and its sum follow theta; the old theta is given back. */
static void moves(void) {
    for (int round = 0; round < 2000; round++) {
        size_t labels = 1 + below(4), rows = 1 + below(20), count = below(rows + 1);
        double *theta = room_for(rows * labels * sizeof *theta), *u = room_for(rows * labels * sizeof *u), *old = room_for(count * sizeof *old);
        double *x = room_for(count * sizeof *x), *powers = room_for(count * sizeof *powers), *Z = room_for(labels * sizeof *Z);
        double *level = room_for(labels * sizeof *level), *drift = room_for(labels * sizeof *drift);
        int64_t *own = room_for(count * sizeof *own);
        for (size_t i = 0; i < rows * labels; i++) theta[i] = 0.0, u[i] = 1.0;
        for (size_t k = 0; k < labels; k++) level[k] = drift[k] = 0.0, Z[k] = (double)rows;
        for (size_t i = 0; i < count; i++) own[i] = (int64_t)i, x[i] = fabs(spread());
        EntropicSums weights = {theta, u, (ptrdiff_t)labels, (ptrdiff_t)labels, Z, level, drift};
        EntropicWords words = {own, x, count, powers};
        for (int step = 0; step < 10; step++) {
            size_t k = below(labels);
            double before = count ? theta[k] : 0.0, sum = 0.0;
            CHECK(!entropic_move(&weights, &words, k, spread(), old, 1));
            CHECK(!count || old[0] == before);
            for (size_t i = 0; i < rows; i++) sum += exp(theta[i * labels + k]);
            CHECK(fabs(sum - Z[k]) <= 1e-9 * sum && drift[k] < 1e-10);
        }
        if (count) {
            x[0] = 1.0;
            CHECK(entropic_move(&weights, &words, 0, -1e3, old, 1) == 1); /* beyond what e^ can be summed of */
        }
        free(theta), free(u), free(old), free(x), free(powers), free(Z), free(level), free(drift), free(own);
    }
}

int main(void) {
    moves();
    for (int round = 0; round < 5000; round++) {
        ptrdiff_t labels = 2 + (ptrdiff_t)below(4);
        size_t rows = 1 + below(30), count = below(rows + 1);
        double *cells = room_for(rows * (size_t)labels * sizeof *cells), *sums = room_for((size_t)labels * sizeof *sums);
        double *x = room_for(count * sizeof *x), *powers = room_for(count * sizeof *powers);
        int64_t *own = room_for(count * sizeof *own);
        for (size_t i = 0; i < count; i++) own[i] = (int64_t)i, x[i] = round % 4 ? spread() : 1e3 * spread();
        Entropic weights = {cells, sums, labels, (double)(rows + below(1000))};
        EntropicWords words = {own, x, count, powers};
        for (int step = 0; step < 20; step++) {
            size_t r = below((size_t)labels), s = (r + 1 + below((size_t)labels - 1)) % (size_t)labels;
            entropic_step(&weights, &words, r, s, 0.3 * fabs(spread()), 0.1);
        }
        for (ptrdiff_t k = 0; k < labels; k++) {
            double sum = 0.0, size = 0.0;
            for (size_t i = 0; i < rows; i++) {
                double cell = cells[(ptrdiff_t)i * labels + k];
                CHECK(isfinite(cell) && cell > -1.0);
                sum += cell, size += fabs(cell);
            }
            CHECK(fabs(sum - sums[k]) <= 1e-6 * (size + weights.size));
        }
        free(cells), free(sums), free(x), free(powers), free(own);
    }
    return 0;
}
