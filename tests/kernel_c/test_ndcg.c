/* Gains, columns within a list, and sums as NumPy sums, beside plain loops. */

#include "ndcg.h"

#include "check.h"

int main(void) {
    for (int round = 0; round < 3000; round++) {
        ptrdiff_t count = (ptrdiff_t)below(round % 20 ? 20 : 700), columns = 1 + (ptrdiff_t)below(4), most = count ? 1 + (ptrdiff_t)below((size_t)count) : 0;
        size_t size = (size_t)count;
        double *grades = room_for(size * sizeof *grades), *gains = room_for(size * sizeof *gains), sum = 0.0, size_of_sum = 0.0;
        double *D = room_for(size * sizeof *D), *room = room_for(2 * size * sizeof *room);
        int64_t *order = room_for(size * sizeof *order);
        for (ptrdiff_t i = 0; i < count; i++) {
            grades[i] = round % 7 ? (double)below(5) : 1e4 * fabs(spread());
            D[i] = 1.0 / log2(2.0 + (double)i);
            order[i] = i;
        }
        gains_of(grades, gains, count);
        for (ptrdiff_t i = 0; i < count; i++) {
            CHECK(gains[i] >= 0.0 && isfinite(gains[i]));
            for (ptrdiff_t k = 0; k < i; k++) CHECK(grades[i] <= grades[k] || gains[i] >= gains[k]);
            sum += gains[i], size_of_sum += fabs(gains[i]);
        }
        CHECK(near(block_sum(gains, count), sum, size_of_sum));
        double lost = ndcg_loss(order, gains, D, room, count, most);
        CHECK(lost >= 0.0 && lost <= 1.0 + 1e-12);
        double *values = room_for(size * (size_t)columns * sizeof *values), *scaled = room_for(size * (size_t)columns * sizeof *scaled);
        double *ends = room_for(2 * (size_t)columns * sizeof *ends);
        for (ptrdiff_t i = 0; i < count * columns; i++) values[i] = round % 5 ? spread() : 1.0;
        if (count) {
            scale_columns(values, scaled, ends, count, columns);
            for (ptrdiff_t i = 0; i < count * columns; i++) CHECK(scaled[i] >= 0.0 && scaled[i] <= 1.0);
        }
        free(grades), free(gains), free(D), free(room), free(order), free(values), free(scaled), free(ends);
    }
    return 0;
}
