/* Lists: inputs of mean 0, losses between 0 and 1, and rounds after which every number is finite. */

#include "lists.h"

#include "check.h"

static double *numbers(ptrdiff_t count) { return room_for((size_t)count * sizeof(double)); }

int main(void) {
    for (int round = 0; round < 400; round++) {
        ptrdiff_t features = 1 + (ptrdiff_t)below(6), inputs = 2 * features;
        int wide = (int)below(2);
        ListState state = {.w = numbers(inputs * SCORERS), .left = numbers(inputs * 3), .A = numbers(wide ? inputs : inputs * inputs),
                           .coin = numbers(features * 4), .a = numbers(SCORERS), .S = numbers(SCORERS * SCORERS), .losses = numbers(POOLED),
                           .shares = numbers(POOLED), .inputs = inputs, .wide = wide};
        for (int i = 0; i < POOLED; i++) state.shares[i] = 1.0 / POOLED;
        for (int i = 0; i < SCORERS; i++) state.a[i] = 0.25, state.S[i * (SCORERS + 1)] = 10.0;
        double gaps = 0.0;
        for (int event = 0; event < 10; event++) {
            ptrdiff_t count = 1 + (ptrdiff_t)below(event % 4 ? 12 : 600), most = count < TOP ? count : TOP;
            double *values = numbers(count * features), *C = numbers(count * inputs), *t = numbers(count * SCORERS);
            double *E = numbers(count * POOLED), *scores = numbers(count), *grades = numbers(count), *gain = numbers(count), *D = numbers(most);
            double losses[POOLED];
            void *room = room_for(inputs_room(count, features));
            int64_t *rows = room_for((size_t)features * sizeof *rows);
            for (ptrdiff_t j = 0; j < features; j++) rows[j] = j;
            for (ptrdiff_t i = 0; i < count * features; i++) values[i] = round % 5 ? spread() : (double)below(2);
            for (ptrdiff_t i = 0; i < count; i++) grades[i] = (double)(below(4) + !i), gain[i] = (exp2(grades[i]) - 1.0) / 16.0;
            for (ptrdiff_t i = 0; i < most; i++) D[i] = 1.0 / log2(2.0 + (double)i);
            inputs_of(values, C, room, count, features);
            for (ptrdiff_t j = 0; j < inputs; j++) {
                double mean = 0.0;
                for (ptrdiff_t i = 0; i < count; i++) mean += C[i * inputs + j];
                CHECK(fabs(mean) <= 1e-9 * (double)count);
            }
            score_items(C, state.w, t, count, inputs);
            pool_scores(t, state.a, state.shares, E, scores, count);
            top_losses(E, gain, D, losses, most, count);
            for (int i = 0; i < POOLED; i++) CHECK(losses[i] >= -1e-12 && losses[i] <= 1.0 + 1e-12);
            LessonOfList lesson = {C, values, rows, gain, grades, D, t, E, count, features, most};
            double *scratch = numbers((ptrdiff_t)round_room(count, features, inputs));
            ptrdiff_t *places = room_for(2 * (size_t)features * sizeof *places);
            double loss = learn_list(&state, &lesson, 0.5 + fabs(spread()), &gaps, scratch, places), shares = 0.0;
            CHECK(isfinite(loss) && isfinite(gaps) && gaps >= 0.0);
            for (ptrdiff_t i = 0; i < inputs * SCORERS; i++) CHECK(isfinite(state.w[i]));
            for (int i = 0; i < POOLED; i++) shares += state.shares[i];
            CHECK(near(shares, 1.0, 1.0));
            free(values), free(C), free(t), free(E), free(scores), free(grades), free(gain), free(D), free(room), free(rows);
            free(scratch), free(places);
        }
        free(state.w), free(state.left), free(state.A), free(state.coin), free(state.a), free(state.S), free(state.losses), free(state.shares);
    }
    return 0;
}
