/* Trust in experts: shares that sum to 1, a gap that never falls; and systems of equations, multiplied back. */

#include "hedge.h"

#include "check.h"

int main(void) {
    for (int round = 0; round < 20000; round++) {
        int n = 1 + (int)below(MEMBERS);
        size_t size = (size_t)n;
        double *root = room_for(size * size * sizeof *root), *A = room_for(size * size * sizeof *A), *x = room_for(size * sizeof *x), b[MEMBERS];
        for (int i = 0; i < n * n; i++) root[i] = spread();
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                A[i * n + j] = i == j ? 1.0 : 0.0;
                for (int k = 0; k < n; k++) A[i * n + j] += root[i * n + k] * root[j * n + k];
            }
        for (int i = 0; i < n; i++) x[i] = b[i] = spread();
        CHECK(!solve(A, x, n));
        for (int i = 0; i < n; i++) {
            double sum = 0.0;
            for (int j = 0; j < n; j++) sum += A[i * n + j] * x[j];
            CHECK(fabs(sum - b[i]) <= 1e-9);
        }
        A[0] = -1.0;
        CHECK(solve(A, x, n) == -1);
        free(root), free(A), free(x);
    }
    for (int round = 0; round < 20000; round++) {
        int n = 1 + (int)below(MEMBERS);
        size_t size = (size_t)n + 1;
        double *a = room_for((size - 1) * sizeof *a), *losses = room_for(size * sizeof *losses), *w = room_for(size * sizeof *w);
        double *prior = room_for(size * sizeof *prior), *weights = room_for((size - 1) * sizeof *weights), *next = room_for(size * sizeof *next), sum = 0.0;
        char *present = room_for(size - 1);
        for (int i = 0; i < n; i++) a[i] = spread(), present[i] = (char)below(2);
        for (int i = 0; i <= n; i++) prior[i] = 1.0 / (double)(n + 1), losses[i] = 100.0 * fabs(spread()), next[i] = fabs(spread());
        Trust pool = {.a = a, .losses = losses, .w = w, .weights = weights, .prior = prior, .present = present, .doubt = log(n + 1.0)};
        pool.members = n, pool.gaps = below(3) ? fabs(spread()) : 0.0;
        hedge(&pool);
        for (int i = 0; i <= n; i++) {
            CHECK(w[i] >= 0.0 && (i == 0 || present[i - 1] || w[i] == 0.0));
            sum += w[i];
        }
        CHECK(near(sum, 1.0, 1.0));
        double after = gap_of(&pool, next);
        CHECK(isfinite(after) && after >= pool.gaps);
        free(a), free(losses), free(w), free(prior), free(weights), free(next), free(present);
    }
    return 0;
}
