#include <math.h>
#include <string.h>

#include "elementary.h"
#include "hedge.h"
#include "lanes.h"
#include "lists.h"

static const double KAPPA[3] = {1.0, 1.0, 0.5}, RIDGE[3] = {3.0, 0.1, 0.3};

#define WIDTH 16 /* columns of a tile */

/* A += scale C'C of `inputs` columns, in the rows and columns `places`, of both triangles; `panel` has room for 8 count numbers.
   The columns of C go in panels of eight, the last one filled with zeros. */
WIDE static void add_square(const double *C, double scale, double *A, const ptrdiff_t *places, double *panel, ptrdiff_t count,
                            ptrdiff_t inputs, ptrdiff_t size) {
    for (ptrdiff_t j = 0; j < inputs; j += 8) {
        ptrdiff_t columns = inputs - j < 8 ? inputs - j : 8;
        for (ptrdiff_t k = 0; k < count; k++)
            for (ptrdiff_t b = 0; b < 8; b++) panel[k * 8 + b] = b < columns ? C[k * inputs + j + b] : 0.0;
        for (ptrdiff_t i = 0; i < j + columns; i += 4) {
            Lanes left[4], right[4];
            ptrdiff_t rows = inputs - i < 4 ? inputs - i : 4, others[4];
            for (int a = 0; a < 4; a++) left[a] = right[a] = no_lanes(), others[a] = a < rows ? a : 0;
            for (ptrdiff_t k = 0; k < count; k++) {
                const double *own = C + k * inputs + i;
                Lanes one = lanes_at(panel + k * 8), other = lanes_at(panel + k * 8 + LANES);
                for (int a = 0; a < 4; a++) {
                    left[a] = plus_times(left[a], one, own[others[a]]);
                    right[a] = plus_times(right[a], other, own[others[a]]);
                }
            }
            for (ptrdiff_t a = 0; a < rows; a++) {
                double sums[2 * LANES];
                lanes_to(sums, left[a]);
                lanes_to(sums + LANES, right[a]);
                for (ptrdiff_t b = 0; b < columns; b++)
                    if (i + a <= j + b) {
                        ptrdiff_t row = places[i + a], column = places[j + b];
                        A[row * size + column] += sums[b] * scale;
                        A[column * size + row] = A[row * size + column];
                    }
            }
        }
    }
}

/* q = M' p for three right sides that lie one behind the other, M of `rows` rows. */
WIDE static void multiply_three(const double *M, const double *p, double *q, ptrdiff_t rows, ptrdiff_t columns) {
    const double *one = p, *two = p + rows, *three = two + rows;
    ptrdiff_t i = 0;
    for (; i + WIDTH <= columns; i += WIDTH) {
        Lanes first[4], second[4], third[4];
        for (int n = 0; n < 4; n++) first[n] = second[n] = third[n] = no_lanes();
        for (ptrdiff_t k = 0; k < rows; k++)
            for (int n = 0; n < 4; n++) {
                Lanes own = lanes_at(M + k * columns + i + n * LANES);
                first[n] = plus_times(first[n], own, one[k]);
                second[n] = plus_times(second[n], own, two[k]);
                third[n] = plus_times(third[n], own, three[k]);
            }
        for (int n = 0; n < 4; n++) {
            lanes_to(q + i + n * LANES, first[n]);
            lanes_to(q + columns + i + n * LANES, second[n]);
            lanes_to(q + 2 * columns + i + n * LANES, third[n]);
        }
    }
    for (; i < columns; i++) {
        double first = 0.0, second = 0.0, third = 0.0;
        for (ptrdiff_t k = 0; k < rows; k++) {
            double own = M[k * columns + i];
            first += own * one[k], second += own * two[k], third += own * three[k];
        }
        q[i] = first, q[columns + i] = second, q[2 * columns + i] = third;
    }
}

static double product_sum(const double *a, const double *b, ptrdiff_t count) {
    double sum = a[0] * b[0];
    for (ptrdiff_t i = 1; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* Two steps of conjugate gradients for all three; `room` has 12 size numbers. */
static void conjugate(ListState *state, double *room) {
    ptrdiff_t size = state->inputs;
    double *w = room, *r = w + 3 * size, *p = r + 3 * size, *q = p + 3 * size, rho[3];
    for (int k = 0; k < 3; k++)
        for (ptrdiff_t i = 0; i < size; i++) {
            w[k * size + i] = state->w[i * SCORERS + k], r[k * size + i] = state->left[i * 3 + k];
            p[k * size + i] = r[k * size + i] / (state->A[i * size + i] * KAPPA[k] + RIDGE[k]);
        }
    for (int k = 0; k < 3; k++) rho[k] = product_sum(r + k * size, p + k * size, size);
    for (int step = 0; step < 2; step++) {
        multiply_three(state->A, p, q, size, size); /* A is symmetric */
        for (int k = 0; k < 3; k++) {
            double *wk = w + k * size, *rk = r + k * size, *pk = p + k * size, *qk = q + k * size, curve, along, before = rho[k];
            for (ptrdiff_t i = 0; i < size; i++) qk[i] = qk[i] * KAPPA[k] + pk[i] * RIDGE[k];
            curve = product_sum(pk, qk, size);
            along = curve > 0.0 ? before / curve : 0.0;
            for (ptrdiff_t i = 0; i < size; i++) wk[i] += pk[i] * along, rk[i] -= qk[i] * along;
            for (ptrdiff_t i = 0; i < size; i++) qk[i] = rk[i] / (state->A[i * size + i] * KAPPA[k] + RIDGE[k]);
            rho[k] = product_sum(rk, qk, size);
            along = before > 0.0 ? rho[k] / before : 0.0;
            for (ptrdiff_t i = 0; i < size; i++) pk[i] = qk[i] + pk[i] * along;
        }
    }
    for (int k = 0; k < 3; k++)
        for (ptrdiff_t i = 0; i < size; i++)
            state->w[i * SCORERS + k] = w[k * size + i], state->left[i * 3 + k] = r[k * size + i];
}

/* The coin's bets on `features` weights, item by item; `b` has w, theta, sum |g|, largest |g| and reward, one behind the other. */
WIDE static void bet(const double *values, const double *grades, double weight, double *b, ptrdiff_t count, ptrdiff_t features) {
    double *restrict w = b, *restrict theta = b + features, *restrict sizes = theta + features,
                     *restrict largest = sizes + features, *restrict reward = largest + features;
    for (ptrdiff_t i = 0; i < count; i++) {
        const double *f = values + i * features;
        double sums[8] = {0.0}, off;
        for (ptrdiff_t j = 0; j + 8 <= features; j += 8)
            for (int l = 0; l < 8; l++) sums[l] += f[j + l] * w[j + l];
        for (ptrdiff_t j = features / 8 * 8; j < features; j++) sums[j % 8] += f[j] * w[j];
        off = sums[0];
        for (int l = 1; l < 8; l++) off += sums[l];
        off = weight * (off - grades[i]);
        for (ptrdiff_t j = 0; j < features; j++) {
            double g = f[j] * off, size = fabs(g), floor, kept;
            largest[j] = largest[j] > size ? largest[j] : size;
            sizes[j] += size;
            kept = reward[j] - g * w[j];
            reward[j] = kept > 0.0 ? kept : 0.0;
            theta[j] -= g;
            floor = sizes[j] + largest[j];
            kept = 4.0 * largest[j];
            floor = (floor > kept ? floor : kept) * largest[j];
            kept = theta[j] / (floor > 0.0 ? floor : 1.0) * (largest[j] + reward[j]);
            w[j] = floor > 0.0 ? kept : 0.0;
        }
    }
}

/* S and a after this list; `spare` has 2 count numbers. */
static void stack_round(ListState *state, const double *Z, const double *share, double weight, double *spare, ptrdiff_t count) {
    double g[SCORERS], *mixed = spare, *p = spare + count;
    for (ptrdiff_t i = 0; i < count; i++) {
        mixed[i] = Z[i] * state->a[0];
        for (int k = 1; k < SCORERS; k++) mixed[i] += Z[k * count + i] * state->a[k];
    }
    softmax_of(mixed, p, count);
    for (ptrdiff_t i = 0; i < count; i++) p[i] = share[i] - p[i];
    for (int k = 0; k < SCORERS; k++) {
        for (int l = 0; l < SCORERS; l++) {
            double sum = 0.0;
            for (ptrdiff_t i = 0; i < count; i++) sum += Z[k * count + i] * Z[l * count + i];
            state->S[k * SCORERS + l] += sum * (weight / (double)count);
        }
        g[k] = 0.0;
        for (ptrdiff_t i = 0; i < count; i++) g[k] += Z[k * count + i] * p[i];
        g[k] *= weight;
    }
    solve(state->S, g, SCORERS); /* 10 on the diagonal from the start: it is positive definite */
    for (int k = 0; k < SCORERS; k++) state->a[k] += g[k];
}

size_t round_room(ptrdiff_t count, ptrdiff_t features, ptrdiff_t inputs) {
    return (size_t)(23 * count + 13 * features + 12 * inputs);
}

double learn_list(ListState *state, const LessonOfList *lesson, double weight, double *gaps, double *room, ptrdiff_t *places) {
    const double *C = lesson->C, *values = lesson->values, *gain = lesson->gain, *grades = lesson->grades, *t = lesson->t,
                 *E = lesson->E;
    const int64_t *rows = lesson->rows;
    ptrdiff_t count = lesson->count, features = lesson->features;
    static const double prior[POOLED] = {1.0 / POOLED, 1.0 / POOLED, 1.0 / POOLED, 1.0 / POOLED, 1.0 / POOLED, 1.0 / POOLED};
    static const char present[POOLED - 1] = {1, 1, 1, 1, 1};
    double losses[POOLED], none[POOLED - 1] = {0.0}, unused[POOLED - 1], drawn = 0.0, whole = 0.0, n = (double)count;
    double *share = room, *d = share + count, *spare = d + 3 * count, *panel = spare + 10 * count, *b = panel + 8 * count;
    double *pull = b + 5 * features, *sizes = pull + 6 * features, *more = sizes + 2 * features;
    ptrdiff_t inputs = 2 * features;
    top_losses(E, gain, lesson->discounts, losses, lesson->most, count);
    for (int k = 0; k < POOLED; k++) drawn += state->shares[k] * losses[k];
    for (ptrdiff_t i = 0; i < count; i++) whole = i ? whole + gain[i] : gain[i];
    for (ptrdiff_t i = 0; i < count; i++) share[i] = gain[i] / whole;
    softmax_of(t + count, spare, count);
    pair_push(t + 2 * count, gain, d + 2 * count, spare + count, count);
    for (ptrdiff_t i = 0; i < count; i++) {
        d[i] = ((gain[i] - whole / n) - t[i]) / n;
        d[count + i] = share[i] - spare[i];
    }
    Trust pool = {none, NULL, state->losses, state->shares, unused, prior, present, 0x1.cab0bfa2a2002p+0, *gaps, POOLED - 1, 0};
    *gaps = pool.gaps = gap_of(&pool, losses);
    for (int k = 0; k < POOLED; k++) state->losses[k] += losses[k];
    hedge(&pool);
    stack_round(state, E, share, weight, spare, count);
    for (ptrdiff_t j = 0; j < features; j++) {
        places[2 * j] = 2 * (ptrdiff_t)rows[j], places[2 * j + 1] = places[2 * j] + 1;
        b[j] = state->w[places[2 * j] * SCORERS + 3];
        for (int k = 0; k < 4; k++) b[(1 + k) * features + j] = state->coin[rows[j] * 4 + k];
    }
    bet(values, grades, weight, b, count, features);
    for (ptrdiff_t j = 0; j < features; j++)
        for (int k = 0; k < 4; k++) state->coin[rows[j] * 4 + k] = b[(1 + k) * features + j];
    if (features) {
        double scale = weight / n;
        multiply_three(C, d, pull, count, inputs);
        for (ptrdiff_t c = 0; c < 3 * inputs; c++) pull[c] *= weight;
        if (state->wide) {
            for (ptrdiff_t c = 0; c < inputs; c++) sizes[c] = 0.0;
            for (ptrdiff_t i = 0; i < count; i++) {
                double sum = fabs(C[i * inputs]);
                for (ptrdiff_t c = 1; c < inputs; c++) sum += fabs(C[i * inputs + c]);
                for (ptrdiff_t c = 0; c < inputs; c++) sizes[c] += sum * fabs(C[i * inputs + c]);
            }
            for (ptrdiff_t c = 0; c < inputs; c++) {
                double *bound = state->A + places[c];
                *bound += sizes[c] * scale;
                for (int k = 0; k < 3; k++) state->w[places[c] * SCORERS + k] += pull[k * inputs + c] / (*bound * KAPPA[k] + RIDGE[k]);
            }
        } else {
            add_square(C, scale, state->A, places, panel, count, inputs, state->inputs);
            for (ptrdiff_t c = 0; c < inputs; c++)
                for (int k = 0; k < 3; k++) state->left[places[c] * 3 + k] += pull[k * inputs + c];
            conjugate(state, more);
        }
    }
    for (ptrdiff_t j = 0; j < features; j++) state->w[places[2 * j] * SCORERS + 3] = b[j];
    return drawn;
}
