#include "ndcg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elementary.h"

static const double LN2 = 0x1.62e42fefa39efp-1, LOWEST = -1000.0;

static double exp2_of(double x) {
    double k = rint(x);
    return ldexp(exp_of((x - k) * LN2), (int)k);
}

/* e^x - 1 of an x of at least 0, without cancelling. */
static double expm1_of(double x) {
    if (!(x < 0.34)) return exp_of(x) - 1.0;
    double square = x * x;
    return 2.0 * x / (polynomial(COTH, COUNT_OF(COTH), square) * square + 2.0 - x);
}

void gains_of(const double *grades, double *gains, ptrdiff_t count) {
    double top = count ? grades[0] : 0.0, none;
    for (ptrdiff_t i = 1; i < count; i++) top = grades[i] > top ? grades[i] : top;
    if (top < 0.01) {
        for (ptrdiff_t i = 0; i < count; i++) gains[i] = expm1_of(LN2 * grades[i]);
        return;
    }
    none = exp2_of(-top > LOWEST ? -top : LOWEST);
    for (ptrdiff_t i = 0; i < count; i++) {
        double below = grades[i] - top;
        gains[i] = exp2_of(below > LOWEST ? below : LOWEST) - none;
    }
}

double block_sum(const double *x, ptrdiff_t count) {
    if (count < 8) {
        double sum = 0.0;
        for (ptrdiff_t i = 0; i < count; i++) sum += x[i];
        return sum;
    }
    if (count <= 128) {
        double r[8], sum;
        ptrdiff_t i = 8;
        memcpy(r, x, sizeof r);
        for (; i < count - count % 8; i += 8)
            for (int n = 0; n < 8; n++) r[n] += x[i + n];
        sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
        for (; i < count; i++) sum += x[i];
        return sum;
    }
    ptrdiff_t half = count / 2;
    half -= half % 8;
    return block_sum(x, half) + block_sum(x + half, count - half);
}

static int rising(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

double ndcg_loss(const int64_t *order, const double *gains, const double *discounts, double *room, ptrdiff_t count, ptrdiff_t most) {
    double *best = room, *parts = room + count, ideal, lost;
    for (ptrdiff_t i = 0; i < count; i++) best[i] = -gains[i];
    qsort(best, (size_t)count, sizeof *best, rising);
    for (ptrdiff_t p = 0; p < most; p++) parts[p] = best[p] * discounts[p];
    ideal = block_sum(parts, most);
    if (ideal >= 0.0) return 0.0;
    for (ptrdiff_t p = 0; p < most; p++) parts[p] = (best[p] + gains[order[p]]) * discounts[p];
    lost = block_sum(parts, most) / ideal;
    return lost > 0.0 ? lost : 0.0;
}

WIDE static void scale_rows(const double *values, double *restrict scaled, double *restrict low, double *restrict spread,
                            ptrdiff_t count, ptrdiff_t columns) {
    for (ptrdiff_t i = 1; i < count; i++)
        for (ptrdiff_t j = 0; j < columns; j++) low[j] = values[i * columns + j] < low[j] ? values[i * columns + j] : low[j];
    for (ptrdiff_t i = 0; i < count; i++)
        for (ptrdiff_t j = 0; j < columns; j++) {
            double off = (values[i * columns + j] - low[j]) + 0.0;
            scaled[i * columns + j] = off;
            spread[j] = off > spread[j] ? off : spread[j];
        }
    for (ptrdiff_t j = 0; j < columns; j++) spread[j] = spread[j] > 0.0 ? spread[j] : 1.0;
    for (ptrdiff_t i = 0; i < count; i++)
        for (ptrdiff_t j = 0; j < columns; j++) scaled[i * columns + j] /= spread[j];
}

void scale_columns(const double *values, double *scaled, double *room, ptrdiff_t count, ptrdiff_t columns) {
    memcpy(room, values, (size_t)columns * sizeof *room);
    for (ptrdiff_t j = 0; j < columns; j++) room[columns + j] = 0.0;
    scale_rows(values, scaled, room, room + columns, count, columns);
}
