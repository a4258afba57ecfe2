/* Orders, places and what they cost, beside counting one by one. */

#include "orders.h"

#include "check.h"

int main(void) {
    for (int round = 0; round < 4000; round++) {
        ptrdiff_t count = 1 + (ptrdiff_t)below(round % 20 ? 12 : 300), rights = 0;
        size_t size = (size_t)count;
        double *t = room_for(size * sizeof *t), *parts = room_for(size * sizeof *parts), *D = room_for(size * sizeof *D);
        ptrdiff_t *order = room_for(size * sizeof *order), *room = room_for(3 * size * sizeof *room);
        ptrdiff_t *right = room_for(size * sizeof *right), *places = room_for(size * sizeof *places);
        for (ptrdiff_t k = 0; k < count; k++) {
            t[k] = round % 3 ? spread() : (double)below(3); /* ties */
            D[k] = 1.0 / log2(2.0 + (double)k);
            if (below(2)) right[rights++] = k;
        }
        order_of(t, order, room, count);
        for (ptrdiff_t p = 1; p < count; p++)
            CHECK(t[order[p - 1]] > t[order[p]] || (t[order[p - 1]] == t[order[p]] && order[p - 1] < order[p]));
        places_of(t, count, right, rights, places, room);
        ptrdiff_t found = 0, hits = 0, cutoff = 1 + (ptrdiff_t)below(size);
        for (ptrdiff_t p = 0; p < count; p++)
            for (ptrdiff_t n = 0; n < rights; n++)
                if (right[n] == order[p]) {
                    CHECK(places[found++] == p);
                    hits += p < cutoff;
                }
        CHECK(found == rights);
        OrderLoss precision = {PRECISION_LOSS, cutoff, NULL}, ap = {AP_LOSS, 0, NULL}, ndcg = {NDCG_LOSS, below(2) ? cutoff : 0, D};
        ptrdiff_t best = cutoff < rights ? cutoff : rights;
        CHECK(near(places_loss(&precision, places, rights, count, parts), (double)(best - hits) / (double)cutoff, 1.0));
        double mean = 0.0;
        for (ptrdiff_t n = 0; n < rights; n++) mean += (double)(n + 1) / (double)(places[n] + 1) / (double)rights;
        CHECK(near(places_loss(&ap, places, rights, count, parts), rights ? 1.0 - mean : 0.0, 1.0));
        double lost = places_loss(&ndcg, places, rights, count, parts);
        CHECK(lost >= 0.0 && lost <= 1.0 + 1e-12);
        for (ptrdiff_t n = 0; n < rights; n++) places[n] = n;
        CHECK(places_loss(&ndcg, places, rights, count, parts) == 0.0);
        CHECK(near(places_loss(&ap, places, rights, count, parts), 0.0, 1.0));
        CHECK(count < 2 || order_gap(&ndcg, t, order, count) >= 0.0);
        free(t), free(parts), free(D), free(order), free(room), free(right), free(places);
    }
    return 0;
}
