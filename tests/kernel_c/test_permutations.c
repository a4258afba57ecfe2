/* Directions of orders: they sum to 0, vanish where nothing is lost, and say so where there is no memory, at each allocation. */

#include "permutations.h"

#include "check.h"

int main(void) {
    int failed = 0;
    for (int round = 0; round < 6000; round++) {
        ptrdiff_t count = 1 + (ptrdiff_t)below(round % 30 ? 10 : 90), rights = 0;
        size_t size = (size_t)count;
        double *t = room_for(size * sizeof *t), *F = room_for(size * sizeof *F), *D = room_for(size * sizeof *D);
        double *g = room_for(size * sizeof *g), loss = -1.0, sum = 0.0;
        ptrdiff_t *right = room_for(size * sizeof *right);
        for (ptrdiff_t k = 0; k < count; k++) {
            t[k] = round % 3 ? spread() : (double)below(3);
            D[k] = 1.0 / log2(2.0 + (double)k);
            F[k] = (double)(count - k) / (double)count;
            if (below(2)) right[rights++] = k;
        }
        OrderLoss measure = {(int)below(3), 1 + (ptrdiff_t)below(size), D};
        if (measure.measure == AP_LOSS) measure.cutoff = 0;
        OrderRule rule = {(int)below(4), measure, 1.0};
        int state = order_direction(&rule, t, count, right, rights, F, g, &loss);
        CHECK((state == 0 || state == 1) && loss >= -1e-12 && loss <= 1.0 + 1e-12);
        for (ptrdiff_t k = 0; k < count; k++) {
            CHECK(isfinite(g[k]));
            sum += g[k];
        }
        CHECK(near(sum, 0.0, (double)count));
        if (!state)
            for (ptrdiff_t k = 0; k < count; k++) CHECK(g[k] == 0.0);
        for (long at = 1;; at++) {
            failing = at;
            state = order_direction(&rule, t, count, right, rights, F, g, &loss);
            int short_of_memory = !failing;
            failing = 0;
            if (!short_of_memory) break;
            CHECK(state == -1);
            failed++;
        }
        CHECK(state >= 0);
        free(t), free(F), free(D), free(g), free(right);
    }
    CHECK(failed > 6000); /* more than one allocation in some rounds */
    return 0;
}
