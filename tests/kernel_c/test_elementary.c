/* exp, log, cos and softmax, beside those of the C library. */

#include "elementary.h"

#include "check.h"

int main(void) {
    for (int round = 0; round < 200000; round++) {
        double x = 700.0 * spread(), y = fabs(spread()) * pow(10.0, 300.0 * spread()) + 1e-300;
        CHECK(fabs(exp_of(x) - exp(x)) <= 1e-14 * exp(x));
        CHECK(fabs(log_of(y) - log(y)) <= 1e-14 * fmax(fabs(log(y)), 1.0));
        CHECK(near(cos_turns_of(x), cos(2.0 * TURN / 2.0 * fmod(x, 1.0)), 1.0));
        CHECK(near(sigmoid_of(x / 100.0), 1.0 / (1.0 + exp(-x / 100.0)), 1.0));
    }
    CHECK(exp_of(0.0) == 1.0 && log_of(1.0) == 0.0 && isfinite(exp_of(1e300)) && exp_of(-1e300) >= 0.0);
    CHECK(near(log_of(0x1p-1074), log(0x1p-1074), 1000.0));
    for (ptrdiff_t count = 0; count < 70; count++) {
        double *x = room_for((size_t)count * sizeof *x), *p = room_for((size_t)count * sizeof *p), sum = 0.0;
        for (ptrdiff_t i = 0; i < count; i++) x[i] = count % 2 ? 5.0 : 50.0 * spread();
        softmax_of(x, p, count);
        for (ptrdiff_t i = 0; i < count; i++) {
            CHECK(p[i] >= 0.0 && p[i] <= 1.0);
            sum += p[i];
        }
        CHECK(!count || near(sum, 1.0, 1.0));
        free(x), free(p);
    }
    return 0;
}
