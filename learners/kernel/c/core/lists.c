#include "lists.h"

#include <math.h>
#include <string.h>

#include "elementary.h"
#include "lanes.h"

#define PAIRED 512
#define COMPARED 160 /* items up to which ranks are counted by comparing all pairs */
#define COLUMNS 32 /* compared at a time */

static void column_means(const double *values, double *means, ptrdiff_t count, ptrdiff_t features) {
    for (ptrdiff_t j = 0; j < features; j++) means[j] = values[j];
    for (ptrdiff_t i = 1; i < count; i++)
        for (ptrdiff_t j = 0; j < features; j++) means[j] += values[i * features + j];
    for (ptrdiff_t j = 0; j < features; j++) means[j] = means[j] / (double)count + 0.0;
}

/* below - above of COLUMNS columns of `v`, which lie `width` apart: what a pair adds to one it takes from the other. */
WIDE static void compare_all(const float *v, int32_t *ranks, ptrdiff_t count, ptrdiff_t width) {
    for (ptrdiff_t i = 0; i < count; i++) memset(ranks + i * width, 0, COLUMNS * sizeof *ranks);
    for (ptrdiff_t i = 0; i < count; i++) {
        int32_t sums[COLUMNS];
        float own[COLUMNS];
        memcpy(own, v + i * width, sizeof own);
        memcpy(sums, ranks + i * width, sizeof sums);
        for (ptrdiff_t k = i + 1; k < count; k++) {
            const float *restrict other = v + k * width;
            int32_t *restrict theirs = ranks + k * width;
            for (int j = 0; j < COLUMNS; j++) {
                int32_t above = (other[j] < own[j]) - (other[j] > own[j]);
                sums[j] += above, theirs[j] -= above;
            }
        }
        memcpy(ranks + i * width, sums, sizeof sums);
    }
}

typedef struct {
    uint32_t key, item;
} Keyed;

/* The same of one column: by its keys in rising order, eight bits at a time. */
static void sort_column(const float *v, int32_t *ranks, Keyed *keys, ptrdiff_t count, ptrdiff_t width) {
    Keyed *from = keys, *to = keys + count;
    for (ptrdiff_t i = 0; i < count; i++) {
        float value = v[i * width] + 0.0f; /* one zero */
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        from[i].key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        from[i].item = (uint32_t)i;
    }
    for (int shift = 0; shift < 32; shift += 8) {
        ptrdiff_t starts[257] = {0};
        for (ptrdiff_t i = 0; i < count; i++) starts[1 + (from[i].key >> shift & 255)]++;
        for (int b = 0; b < 256; b++) starts[b + 1] += starts[b];
        for (ptrdiff_t i = 0; i < count; i++) to[starts[from[i].key >> shift & 255]++] = from[i];
        Keyed *other = from;
        from = to, to = other;
    }
    for (ptrdiff_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && from[next].key == from[first].key; next++) continue;
        for (ptrdiff_t i = first; i < next; i++)
            ranks[(ptrdiff_t)from[i].item * width] = (int32_t)(first - (count - next));
    }
}

/* Rows of C: what is off the mean, and the rank, by turns. */
WIDE static void join_inputs(const double *values, const double *means, const int32_t *ranks, double half, double *restrict C,
                             ptrdiff_t features) {
    for (ptrdiff_t j = 0; j < features; j++) {
        C[2 * j] = values[j] - means[j];
        C[2 * j + 1] = (double)ranks[j] * half;
    }
}

WIDE static void round_row(const double *values, float *restrict v, ptrdiff_t features, ptrdiff_t width) {
    for (ptrdiff_t j = 0; j < features; j++) v[j] = (float)values[j];
    for (ptrdiff_t j = features; j < width; j++) v[j] = 0.0f;
}

static ptrdiff_t lanes_of(ptrdiff_t features) { return (features + COLUMNS - 1) / COLUMNS * COLUMNS; }

size_t inputs_room(ptrdiff_t count, ptrdiff_t features) {
    return (size_t)(count * lanes_of(features)) * 8 + (size_t)(2 * count) * sizeof(Keyed) + (size_t)features * 8;
}

void inputs_of(const double *values, double *C, void *room, ptrdiff_t count, ptrdiff_t features) {
    ptrdiff_t width = lanes_of(features);
    double *means = room, half = 0.5 / (double)(count > 1 ? count - 1 : 1);
    Keyed *keys = (Keyed *)(means + features);
    float *v = (float *)(keys + 2 * count);
    int32_t *ranks = (int32_t *)(v + count * width);
    column_means(values, means, count, features);
    for (ptrdiff_t i = 0; i < count; i++) round_row(values + i * features, v + i * width, features, width);
    if (count <= COMPARED)
        for (ptrdiff_t j = 0; j < width; j += COLUMNS) compare_all(v + j, ranks + j, count, width);
    else
        for (ptrdiff_t j = 0; j < features; j++) sort_column(v + j, ranks + j, keys, count, width);
    for (ptrdiff_t i = 0; i < count; i++)
        join_inputs(values + i * features, means, ranks + i * width, half, C + i * features * 2, features);
}

/* out = (s - mean s) / sd s, or zeros. */
static void one_spread(const double *s, double *out, ptrdiff_t count) {
    double sum = s[0], squares, mean, spread;
    for (ptrdiff_t i = 1; i < count; i++) sum += s[i];
    mean = sum / (double)count;
    for (ptrdiff_t i = 0; i < count; i++) out[i] = s[i] - mean;
    squares = out[0] * out[0];
    for (ptrdiff_t i = 1; i < count; i++) squares += out[i] * out[i];
    spread = sqrt(squares / (double)count);
    for (ptrdiff_t i = 0; i < count; i++) out[i] = spread > 1e-12 ? out[i] / spread + 0.0 : 0.0;
}

/* Items go four at a time, each with the scorers side by side. */
WIDE static void score_rows(const double *C, const double *w, double *t, ptrdiff_t count, ptrdiff_t inputs) {
    for (ptrdiff_t i = 0; i < count; i += 4) {
        Lanes sums[4];
        const double *rows[4];
        for (int n = 0; n < 4; n++) sums[n] = no_lanes(), rows[n] = C + (i + n < count ? i + n : i) * inputs;
        for (ptrdiff_t c = 0; c < inputs; c++) {
            Lanes own = lanes_at(w + c * SCORERS);
            for (int n = 0; n < 4; n++) sums[n] = plus_times(sums[n], own, rows[n][c]);
        }
        for (int n = 0; n < 4 && i + n < count; n++) {
            double scores[LANES];
            lanes_to(scores, sums[n]);
            for (int k = 0; k < SCORERS; k++) t[k * count + i + n] = scores[k];
        }
    }
}

void score_items(const double *C, const double *w, double *t, ptrdiff_t count, ptrdiff_t inputs) {
    score_rows(C, w, t, count, inputs);
}

void pool_scores(const double *t, const double *a, const double *shares, double *E, double *scores, ptrdiff_t count) {
    double *mean = E + 4 * count, *stack = mean + count;
    for (int k = 0; k < SCORERS; k++) one_spread(t + k * count, E + k * count, count);
    for (ptrdiff_t i = 0; i < count; i++) {
        double sum = E[i], stacked = E[i] * (a[0] > 0.0 ? a[0] : 0.0);
        for (int k = 1; k < SCORERS; k++) {
            sum += E[k * count + i];
            stacked += E[k * count + i] * (a[k] > 0.0 ? a[k] : 0.0);
        }
        mean[i] = sum * 0.25, stack[i] = stacked;
    }
    one_spread(mean, mean, count);
    one_spread(stack, stack, count);
    for (ptrdiff_t i = 0; i < count; i++) {
        double sum = E[i] * shares[0];
        for (int k = 1; k < POOLED; k++) sum += E[k * count + i] * shares[k];
        scores[i] = sum;
    }
}

/* The first `most` items by falling score, ties in their order. */
static void first_items(const double *scores, ptrdiff_t *items, ptrdiff_t most, ptrdiff_t count) {
    ptrdiff_t taken = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        ptrdiff_t place = taken;
        while (place && scores[i] > scores[items[place - 1]]) place--;
        if (place == most) continue;
        if (taken < most) taken++;
        for (ptrdiff_t k = taken - 1; k > place; k--) items[k] = items[k - 1];
        items[place] = i;
    }
}

void top_losses(const double *E, const double *gain, const double *discounts, double *losses, ptrdiff_t most,
                       ptrdiff_t count) {
    ptrdiff_t best[TOP], items[TOP];
    double ideal = 0.0;
    first_items(gain, best, most, count);
    for (ptrdiff_t p = 0; p < most; p++) ideal = p ? ideal + gain[best[p]] * discounts[p] : gain[best[p]] * discounts[p];
    for (int k = 0; k < POOLED; k++) {
        double lost = 0.0;
        first_items(E + k * count, items, most, count);
        for (ptrdiff_t p = 0; p < most; p++) {
            double one = (gain[best[p]] - gain[items[p]]) * discounts[p];
            lost = p ? lost + one : one;
        }
        losses[k] = lost / ideal > 0.0 ? lost / ideal : 0.0;
    }
}

/* One item's row of max(G_i - G_j, 0), and of those times e_j / (e_i + e_j). */
WIDE static void pair_row(const double *G, const double *e, double own, double power, double *restrict over,
                          double *restrict pushed, ptrdiff_t count) {
    for (ptrdiff_t j = 0; j < count; j++) {
        double gap = own - G[j];
        over[j] = gap > 0.0 ? gap : 0.0;
        pushed[j] = over[j] * (e[j] / (power + e[j]));
    }
}

void pair_push(const double *s, const double *gain, double *push, double *room, ptrdiff_t count) {
    ptrdiff_t stride = (count + PAIRED - 1) / PAIRED;
    double *e = room, *gaps = e + count, *G = gaps + count, *p = G + count, *over = p + count, *pushed = over + count,
           *columns = pushed + count, top = s[0], whole = 0.0;
    for (ptrdiff_t i = 1; i < count; i++) top = s[i] > top ? s[i] : top;
    exp_each(s, top, e, count);
    for (ptrdiff_t first = 0; first < stride && first < count; first++) {
        ptrdiff_t own = 0;
        double least = gain[first];
        for (ptrdiff_t i = first; i < count; i += stride, own++) {
            G[own] = gain[i], p[own] = e[i], columns[own] = 0.0;
            least = gain[i] < least ? gain[i] : least;
        }
        for (ptrdiff_t i = 0; i < own; i++) {
            double sum = 0.0, pushes = 0.0;
            if (G[i] > least) {
                pair_row(G, p, G[i], p[i], over, pushed, own);
                for (ptrdiff_t j = 0; j < own; j++) sum += over[j], pushes += pushed[j];
                for (ptrdiff_t j = 0; j < own; j++) columns[j] += pushed[j];
            }
            gaps[first + i * stride] = sum, push[first + i * stride] = pushes;
        }
        for (ptrdiff_t i = 0; i < own; i++) push[first + i * stride] -= columns[i];
    }
    for (ptrdiff_t i = 0; i < count; i++) whole += gaps[i];
    for (ptrdiff_t i = 0; i < count; i++) push[i] = whole > 0.0 ? push[i] / whole : 0.0;
}
