/* lists.py: one round of learning on a list, in place. Nothing here can fail. */

#define TILE 8

/* X += scale C'C of `inputs` columns, in the rows and columns `places` of A; both triangles. */
WIDE static void add_square(const double *C, double scale, double *A, const ptrdiff_t *places, ptrdiff_t count,
                            ptrdiff_t inputs, ptrdiff_t size) {
    for (ptrdiff_t j = 0; j < inputs; j += TILE)
        for (ptrdiff_t i = 0; i < j + TILE && i < inputs; i += 4) {
            double sums[4][TILE] = {{0.0}};
            ptrdiff_t rows = inputs - i < 4 ? inputs - i : 4, columns = inputs - j < TILE ? inputs - j : TILE;
            if (rows == 4 && columns == TILE)
                for (ptrdiff_t k = 0; k < count; k++) {
                    const double *one = C + k * inputs + i, *other = C + k * inputs + j;
                    for (int a = 0; a < 4; a++)
                        for (int b = 0; b < TILE; b++) sums[a][b] += one[a] * other[b];
                }
            else
                for (ptrdiff_t k = 0; k < count; k++)
                    for (ptrdiff_t a = 0; a < rows; a++)
                        for (ptrdiff_t b = 0; b < columns; b++) sums[a][b] += C[k * inputs + i + a] * C[k * inputs + j + b];
            for (ptrdiff_t a = 0; a < rows; a++)
                for (ptrdiff_t b = 0; b < columns; b++)
                    if (i + a <= j + b) {
                        ptrdiff_t row = places[i + a], column = places[j + b];
                        A[row * size + column] += sums[a][b] * scale;
                        A[column * size + row] = A[row * size + column];
                    }
        }
}

/* q = A p for three right sides that lie one behind the other; A is symmetric, so that its rows are its columns. */
WIDE static void multiply_three(const double *A, const double *p, double *q, ptrdiff_t size) {
    const double *one = p, *two = p + size, *three = two + size;
    for (ptrdiff_t i = 0; i < size; i += TILE) {
        double first[TILE] = {0.0}, second[TILE] = {0.0}, third[TILE] = {0.0};
        ptrdiff_t width = size - i < TILE ? size - i : TILE;
        if (width == TILE)
            for (ptrdiff_t k = 0; k < size; k++) {
                const double *row = A + k * size + i;
                for (int j = 0; j < TILE; j++) first[j] += row[j] * one[k];
                for (int j = 0; j < TILE; j++) second[j] += row[j] * two[k];
                for (int j = 0; j < TILE; j++) third[j] += row[j] * three[k];
            }
        else
            for (ptrdiff_t k = 0; k < size; k++)
                for (ptrdiff_t j = 0; j < width; j++) {
                    double a = A[k * size + i + j];
                    first[j] += a * one[k], second[j] += a * two[k], third[j] += a * three[k];
                }
        memcpy(q + i, first, (size_t)width * 8);
        memcpy(q + size + i, second, (size_t)width * 8);
        memcpy(q + 2 * size + i, third, (size_t)width * 8);
    }
}

static double product_sum(const double *a, const double *b, ptrdiff_t count) {
    double sum = a[0] * b[0];
    for (ptrdiff_t i = 1; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* C' d for d of four columns. */
WIDE static void pull_inputs(const double *C, const double *d, double *restrict pull, ptrdiff_t count, ptrdiff_t inputs) {
    for (ptrdiff_t c = 0; c < 4 * inputs; c++) pull[c] = 0.0;
    for (ptrdiff_t i = 0; i < count; i++)
        for (ptrdiff_t c = 0; c < inputs; c++)
            for (int k = 0; k < 4; k++) pull[c * 4 + k] += C[i * inputs + c] * d[i * 4 + k];
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
        multiply_three(state->A, p, q, size);
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
    double *restrict w = b, *restrict theta = b + features, *restrict sums = theta + features,
                     *restrict largest = sums + features, *restrict reward = largest + features;
    for (ptrdiff_t i = 0; i < count; i++) {
        const double *f = values + i * features;
        double off = 0.0;
        for (ptrdiff_t j = 0; j < features; j++) off += f[j] * w[j];
        off = weight * (off - grades[i]);
        for (ptrdiff_t j = 0; j < features; j++) {
            double g = f[j] * off, size = fabs(g), floor, kept;
            largest[j] = largest[j] > size ? largest[j] : size;
            sums[j] += size;
            kept = reward[j] - g * w[j];
            reward[j] = kept > 0.0 ? kept : 0.0;
            theta[j] -= g;
            floor = sums[j] + largest[j];
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

/* The numbers that a round needs beside the state. */
static size_t round_room(ptrdiff_t count, ptrdiff_t features, ptrdiff_t inputs) {
    return (size_t)(16 * count + 15 * features + 12 * inputs);
}

/* One round: C, the values and the features of its columns; the gains, grades and discounts; t and E. The loss of a member
   drawn by its share; D goes on in `gaps`. `places` has room for 2 features numbers. */
static double learn_list(ListState *state, const double *C, const double *values, const int64_t *rows, const double *gain,
                         const double *grades, const double *discounts, ptrdiff_t most, const double *t, const double *E,
                         double weight, double *gaps, double *room, ptrdiff_t *places, ptrdiff_t count, ptrdiff_t features) {
    static const double prior[POOLED] = {1.0 / POOLED, 1.0 / POOLED, 1.0 / POOLED, 1.0 / POOLED, 1.0 / POOLED, 1.0 / POOLED};
    static const char present[POOLED - 1] = {1, 1, 1, 1, 1};
    double losses[POOLED], none[POOLED - 1] = {0.0}, unused[POOLED - 1], drawn = 0.0, whole = 0.0, n = (double)count;
    double *share = room, *push = share + count, *d = push + count, *spare = d + 4 * count, *b = spare + 10 * count;
    double *pull = b + 5 * features, *more = pull + 8 * features + 2 * features;
    ptrdiff_t inputs = 2 * features;
    top_losses(E, gain, discounts, losses, most, count);
    for (int k = 0; k < POOLED; k++) drawn += state->shares[k] * losses[k];
    for (ptrdiff_t i = 0; i < count; i++) whole = i ? whole + gain[i] : gain[i];
    for (ptrdiff_t i = 0; i < count; i++) share[i] = gain[i] / whole;
    softmax_of(t + count, spare, count);
    pair_push(t + 2 * count, gain, push, spare + count, count);
    for (ptrdiff_t i = 0; i < count; i++) {
        d[4 * i] = ((gain[i] - whole / n) - t[i]) / n;
        d[4 * i + 1] = share[i] - spare[i];
        d[4 * i + 2] = push[i], d[4 * i + 3] = 0.0;
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
        pull_inputs(C, d, pull, count, inputs);
        for (ptrdiff_t c = 0; c < 4 * inputs; c++) pull[c] *= weight;
        if (state->wide) {
            double *sizes = pull + 4 * inputs;
            for (ptrdiff_t c = 0; c < inputs; c++) sizes[c] = 0.0;
            for (ptrdiff_t i = 0; i < count; i++) {
                double sum = fabs(C[i * inputs]);
                for (ptrdiff_t c = 1; c < inputs; c++) sum += fabs(C[i * inputs + c]);
                for (ptrdiff_t c = 0; c < inputs; c++) sizes[c] += sum * fabs(C[i * inputs + c]);
            }
            for (ptrdiff_t c = 0; c < inputs; c++) {
                double *bound = state->A + places[c];
                *bound += sizes[c] * scale;
                for (int k = 0; k < 3; k++) state->w[places[c] * SCORERS + k] += pull[c * 4 + k] / (*bound * KAPPA[k] + RIDGE[k]);
            }
        } else {
            add_square(C, scale, state->A, places, count, inputs, state->inputs);
            for (ptrdiff_t c = 0; c < inputs; c++)
                for (int k = 0; k < 3; k++) state->left[places[c] * 3 + k] += pull[c * 4 + k];
            conjugate(state, more);
        }
    }
    for (ptrdiff_t j = 0; j < features; j++) state->w[places[2 * j] * SCORERS + 3] = b[j];
    return drawn;
}
