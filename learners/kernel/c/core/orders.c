#include "orders.h"

#include <math.h>
#include <string.h>

#include "elementary.h"
#include "ndcg.h"

#define FEW 32 /* labels up to which places are counted one by one */

void order_of(const double *t, ptrdiff_t *order, ptrdiff_t *room, ptrdiff_t count) {
    ptrdiff_t *from = order, *to = room;
    for (ptrdiff_t k = 0; k < count; k++) order[k] = k;
    for (ptrdiff_t start = 0; start < count; start += 8) /* runs of eight, then merges */
        for (ptrdiff_t i = start + 1; i < count && i < start + 8; i++) {
            ptrdiff_t own = order[i], at = i;
            for (; at > start && t[own] > t[order[at - 1]]; at--) order[at] = order[at - 1];
            order[at] = own;
        }
    for (ptrdiff_t width = 8; width < count; width *= 2) {
        for (ptrdiff_t start = 0; start < count; start += 2 * width) {
            ptrdiff_t middle = start + width < count ? start + width : count, stop = middle + width < count ? middle + width : count;
            ptrdiff_t i = start, j = middle, k = start;
            while (i < middle && j < stop) to[k++] = t[from[j]] > t[from[i]] ? from[j++] : from[i++];
            while (i < middle) to[k++] = from[i++];
            while (j < stop) to[k++] = from[j++];
        }
        ptrdiff_t *other = from;
        from = to, to = other;
    }
    if (from != order) memcpy(order, from, (size_t)count * sizeof *order);
}

/* How many stand above a label in the order. */
WIDE static ptrdiff_t place_of(const double *t, ptrdiff_t count, ptrdiff_t label) {
    double own = t[label];
    int64_t above = 0;
    for (ptrdiff_t k = 0; k < label; k++) above += t[k] >= own;
    for (ptrdiff_t k = label + 1; k < count; k++) above += t[k] > own;
    return (ptrdiff_t)above;
}

void places_of(const double *t, ptrdiff_t count, const ptrdiff_t *right, ptrdiff_t rights, ptrdiff_t *places, ptrdiff_t *room) {
    if (rights <= FEW) {
        for (ptrdiff_t n = 0; n < rights; n++) {
            ptrdiff_t place = place_of(t, count, right[n]), at = n;
            for (; at > 0 && places[at - 1] > place; at--) places[at] = places[at - 1];
            places[at] = place;
        }
        return;
    }
    ptrdiff_t *order = room, *is_right = room + 2 * count, kept = 0;
    order_of(t, order, room + count, count);
    for (ptrdiff_t k = 0; k < count; k++) is_right[k] = 0;
    for (ptrdiff_t n = 0; n < rights; n++) is_right[right[n]] = 1;
    for (ptrdiff_t p = 0; p < count; p++)
        if (is_right[order[p]]) places[kept++] = p;
}

/* The gain of a grade of 1 beside grades of 0: G(1) over 2^1, and those of 0 gain 0. */
#define GAIN 0.5

static double ndcg_of_places(const OrderLoss *loss, const ptrdiff_t *places, ptrdiff_t rights, ptrdiff_t most, double *parts) {
    ptrdiff_t best = rights < most ? rights : most;
    const double *D = loss->discounts;
    for (ptrdiff_t p = 0; p < most; p++) parts[p] = p < best ? -GAIN * D[p] : 0.0;
    double ideal = block_sum(parts, most), lost;
    if (ideal >= 0.0) return 0.0;
    for (ptrdiff_t n = 0; n < rights && places[n] < most; n++) parts[places[n]] = places[n] < best ? 0.0 : GAIN * D[places[n]];
    lost = block_sum(parts, most) / ideal;
    return lost > 0.0 ? lost : 0.0;
}

double places_loss(const OrderLoss *loss, const ptrdiff_t *places, ptrdiff_t rights, ptrdiff_t count, double *room) {
    ptrdiff_t most = loss->cutoff && loss->cutoff < count ? loss->cutoff : count, hits = 0;
    if (loss->measure == NDCG_LOSS) return ndcg_of_places(loss, places, rights, most, room);
    if (loss->measure == PRECISION_LOSS) {
        while (hits < rights && places[hits] < most) hits++;
        return (double)((loss->cutoff < rights ? loss->cutoff : rights) - hits) / (double)loss->cutoff;
    }
    if (!rights) return 0.0;
    for (ptrdiff_t n = 0; n < rights; n++) room[n] = (double)(n + 1) / (double)(places[n] + 1);
    return 1.0 - block_sum(room, rights) / (double)rights;
}

double order_gap(const OrderLoss *loss, const double *t, const ptrdiff_t *order, ptrdiff_t count) {
    ptrdiff_t most = loss->cutoff && loss->cutoff < count - 1 ? loss->cutoff : count - 1;
    double gap = INFINITY;
    for (ptrdiff_t p = 0; p < most; p++) {
        double own = t[order[p]] - t[order[p + 1]];
        gap = own < gap ? own : gap;
    }
    return gap;
}
