#include "entropy.h"

#include "elementary.h"

#define LEAST_WEIGHT 1e-6
#define HIGHEST_WEIGHT 1e9
#define NEWTON_STEPS 40
#define CLOSE 1e-9
#define FARTHEST 400.0
#define ROUNDING 0x1p-52
#define SUMS_END 1e200
#define TOLERANCE 1e-10

/* One label of the pair: its cells, and the weight of all other rows. */
typedef struct {
    double *column, rest;
} Side;

WIDE static void powers_of(double tau, const double *restrict x, size_t count, double *restrict powers) {
    for (size_t i = 0; i < count; i++) {
        double exponent = tau * x[i];
        powers[i] = exp_of(exponent < FARTHEST ? exponent : FARTHEST);
    }
}

static Side side_of(const Entropic *weights, const EntropicWords *words, size_t label) {
    Side side = {weights->cells + label, 0.0};
    double sum = 0.0;
    for (size_t i = 0; i < words->count; i++) sum += 1.0 + side.column[words->rows[i] * weights->width];
    double rest = weights->size + weights->sums[label] - sum;
    side.rest = rest > 0.0 ? rest : 0.0;
    return side;
}

/* The mean of x after a step of tau upwards, or downwards, and its variance in `*variance`. */
static double mean_of(const Entropic *weights, const EntropicWords *words, Side side, int up, double *variance) {
    double whole = 0.0, first = 0.0, second = 0.0;
    for (size_t i = 0; i < words->count; i++) {
        double u = 1.0 + side.column[words->rows[i] * weights->width], x = words->x[i];
        u = up ? u * words->powers[i] : u / words->powers[i];
        whole += u;
        first += u * x;
        second += u * x * x;
    }
    whole = side.rest + whole;
    double mean = first / whole, spread = second / whole - mean * mean;
    *variance = spread > 0.0 ? spread : 0.0;
    return mean;
}

/* The margin that is left over after a step of tau, and its slope. */
static double gap_of(const Entropic *weights, const EntropicWords *words, const Side *sides, double tau, double margin,
                     double *slope) {
    double more, less;
    powers_of(tau, words->x, words->count, words->powers);
    double high = mean_of(weights, words, sides[0], 1, &more), low = mean_of(weights, words, sides[1], 0, &less);
    *slope = more + less;
    return (high - low) - margin;
}

static void move_side(const Entropic *weights, const EntropicWords *words, double *column, double *sum, int up) {
    double change = 0.0;
    for (size_t i = 0; i < words->count; i++) {
        double *cell = column + words->rows[i] * weights->width, before = *cell;
        double u = up ? (1.0 + before) * words->powers[i] : (1.0 + before) / words->powers[i];
        u = u > LEAST_WEIGHT ? u : LEAST_WEIGHT;
        *cell = (u < HIGHEST_WEIGHT ? u : HIGHEST_WEIGHT) - 1.0;
        change += *cell - before;
    }
    *sum += change;
}

void entropic_step(const Entropic *weights, const EntropicWords *words, size_t r, size_t s, double most, double margin) {
    const Side sides[2] = {side_of(weights, words, r), side_of(weights, words, s)};
    double at = 0.0, low = 0.0, high = most, slope;
    double value = gap_of(weights, words, sides, at, margin, &slope);
    int bounded = 0;
    for (int n = 0; n < NEWTON_STEPS; n++) {
        if (value == 0.0 || (value > 0.0 && at == 0.0)) break;
        double to = slope > 0.0 ? at + -value / slope : INFINITY;
        if (to >= high && !bounded) to = high;
        else if (!(low < to && to < high)) to = 0.5 * (low + high);
        double moved = fabs(to - at);
        at = to;
        value = gap_of(weights, words, sides, at, margin, &slope);
        if (value <= 0.0 && at >= high) break;
        if (value > 0.0) high = at, bounded = 1;
        else low = at;
        if (moved <= CLOSE * at) break;
    }
    move_side(weights, words, sides[0].column, weights->sums + r, 1);
    move_side(weights, words, sides[1].column, weights->sums + s, 0);
}

WIDE static void exponentials(double *restrict x, size_t count) {
    for (size_t i = 0; i < count; i++) x[i] = exp_of(x[i]);
}

int entropic_move(const EntropicSums *weights, const EntropicWords *words, size_t column, double step, double *old, size_t apart) {
    double level = weights->level[column], top = 0.0, delta = 0.0, sum = weights->sums[column];
    for (size_t i = 0; i < words->count; i++) {
        double *theta = weights->theta + words->rows[i] * weights->theta_width + column, raised;
        old[i * apart] = *theta;
        *theta -= words->x[i] * step;
        raised = *theta - level;
        top = raised > top ? raised : top;
        words->powers[i] = raised < FARTHEST ? raised : FARTHEST;
    }
    exponentials(words->powers, words->count);
    for (size_t i = 0; i < words->count; i++) {
        double *u = weights->u + words->rows[i] * weights->u_width + column;
        delta += words->powers[i] - *u;
        *u = words->powers[i];
    }
    double after = sum + delta, safe = after > 0.0 ? after : 1.0;
    double noise = ROUNDING * ((8.0 + fabs(level)) + fabs(log_of(safe))) * (fabs(after) + fabs(delta));
    double drift = (weights->drift[column] * sum + noise) / safe;
    weights->sums[column] = after, weights->drift[column] = drift;
    if (!(top <= FARTHEST && after > 1.0 / SUMS_END && after < SUMS_END)) return 1;
    return drift > TOLERANCE ? 2 : 0;
}
