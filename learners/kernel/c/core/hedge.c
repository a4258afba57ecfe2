#include "hedge.h"

#include <math.h>

#include "elementary.h"

int solve(const double *A, double *x, int n) {
    double lower[MEMBERS][MEMBERS];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double value = A[i * n + j];
            for (int k = 0; k < j; k++) value -= lower[i][k] * lower[j][k];
            if (i == j && value <= 0.0) return -1;
            lower[i][j] = i == j ? sqrt(value) : value / lower[j][j];
        }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) x[i] -= lower[i][k] * x[k];
        x[i] /= lower[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) x[i] -= lower[k][i] * x[k];
        x[i] /= lower[i][i];
    }
    return 0;
}

double gap_of(const Trust *pool, const double *losses) {
    const double *w = pool->w;
    double mean = 0.0, share = 0.0, least = INFINITY, first = pool->losses[0], after;
    for (int i = 0; i <= pool->members; i++) {
        mean += w[i] * losses[i];
        if (w[i] > 0.0 && losses[i] < least) least = losses[i];
        if (i && pool->present[i - 1] && pool->losses[i] < first) first = pool->losses[i];
    }
    if (pool->gaps > 0.0) {
        double eta = pool->doubt / pool->gaps;
        for (int i = 0; i <= pool->members; i++) share += w[i] * exp_of(-(eta * (losses[i] - least)));
        after = least - log_of(share) / eta;
    } else {
        after = losses[0] + (pool->losses[0] - first);
        for (int i = 1; i <= pool->members; i++) {
            double other = losses[i] + (pool->losses[i] - first);
            if (pool->present[i - 1] && other < after) after = other;
        }
    }
    return pool->gaps + (mean - after < 0.0 ? 0.0 : mean - after);
}

void hedge(Trust *pool) {
    const double *losses = pool->losses;
    double least = losses[0], sum, *w = pool->w;
    for (int i = 1; i <= pool->members; i++)
        if (pool->present[i - 1] && losses[i] < least) least = losses[i];
    for (int i = 0; i <= pool->members; i++) {
        double behind = losses[i] - least;
        if (i && !pool->present[i - 1]) w[i] = 0.0;
        else if (pool->gaps > 0.0) w[i] = pool->prior[i] * exp_of(-((pool->doubt / pool->gaps) * behind));
        else w[i] = behind <= 0.0 ? pool->prior[i] : 0.0;
    }
    sum = w[0];
    for (int i = 1; i <= pool->members; i++) sum += w[i];
    for (int i = 0; i <= pool->members; i++) w[i] /= sum;
    for (int i = 0; i < pool->members; i++) pool->weights[i] = w[0] * pool->a[i] + w[1 + i];
}
