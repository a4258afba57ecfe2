#include "permutations.h"

#include <stdlib.h>
#include <string.h>

#include "elementary.h"
#include "ndcg.h"

/* A round: the order of the scores, and both classes in it. */
typedef struct {
    const OrderRule *rule;
    const double *t, *F;
    ptrdiff_t count, uppers, lowers, *order, *upper, *lower, *above, *other;
    unsigned char *is_right;
    double *row, *falls, *best;
} Merge;

/* What it gives to place the right label a, from 0, below b wrong ones. */
static double bonus_of(const Merge *m, ptrdiff_t a, ptrdiff_t b, double scale) {
    const OrderLoss *loss = &m->rule->loss;
    if (loss->measure == AP_LOSS) return -(double)(a + 1) / ((double)(a + 1) + (double)b) / (double)m->uppers;
    ptrdiff_t place = a + b, most = loss->cutoff ? loss->cutoff : m->count;
    if (loss->measure == PRECISION_LOSS) return place < most ? scale : 0.0;
    return (place < most ? loss->discounts[place] : 0.0) * scale;
}

/* H_a of searches.py's merge, into `row`. */
static void merge_row(const Merge *m, ptrdiff_t a, double scale) {
    const double *F = m->F + a, own = m->t[m->upper[a]];
    double sum = 0.0;
    for (ptrdiff_t b = m->lowers; b >= 0; b--) {
        if (b < m->lowers) {
            double fall = (F[b + 1] - F[b]) * m->falls[b];
            sum = b == m->lowers - 1 ? fall : sum + fall;
        }
        double h = F[b] * own + bonus_of(m, a, b, scale);
        m->row[b] = b < m->lowers ? h + sum : h;
    }
}

/* Where the rows' own maxima do not rise: the best sums down to each b, and back. `tops` has a row of lowers + 1 each. */
static void merge_all(Merge *m, double scale, ptrdiff_t *tops) {
    ptrdiff_t width = m->lowers + 1, last = m->lowers;
    for (ptrdiff_t b = 0; b < width; b++) m->best[b] = 0.0;
    for (ptrdiff_t a = 0; a < m->uppers; a++) {
        ptrdiff_t *own = tops + a * width;
        merge_row(m, a, scale);
        own[0] = 0;
        m->best[0] = m->row[0] + m->best[0];
        for (ptrdiff_t b = 1; b < width; b++) {
            double next = m->row[b] + m->best[b];
            own[b] = next > m->best[b - 1] ? b : own[b - 1];
            m->best[b] = next > m->best[b - 1] ? next : m->best[b - 1];
        }
    }
    for (ptrdiff_t a = m->uppers - 1; a >= 0; a--) last = m->above[a] = tops[a * width + last];
}

/* The loss-augmented order, into `other`: -1 where there is no memory. */
static int augmented(Merge *m) {
    const OrderLoss *loss = &m->rule->loss;
    ptrdiff_t most = loss->cutoff && loss->cutoff < m->count ? loss->cutoff : m->count, rises = 1;
    double scale = -1.0 / (double)most;
    if (loss->measure == PRECISION_LOSS) scale = -1.0 / (double)loss->cutoff;
    if (loss->measure == NDCG_LOSS) {
        for (ptrdiff_t p = 0; p < m->count; p++) m->best[p] = p < m->uppers && p < most ? 0.5 * loss->discounts[p] : 0.0;
        scale = -0.5 / block_sum(m->best, m->count);
    }
    for (ptrdiff_t j = 0; j < m->lowers; j++) m->falls[j] = m->t[m->lower[j]];
    for (ptrdiff_t a = 0; a < m->uppers; a++) {
        merge_row(m, a, scale);
        ptrdiff_t first = 0;
        for (ptrdiff_t b = 1; b <= m->lowers; b++)
            if (m->row[b] > m->row[first]) first = b;
        m->above[a] = first;
        if (a && first < m->above[a - 1]) rises = 0;
    }
    if (!rises) {
        ptrdiff_t *tops = malloc((size_t)(m->uppers * (m->lowers + 1)) * sizeof *tops);
        if (!tops) return -1;
        merge_all(m, scale, tops);
        free(tops);
    }
    for (ptrdiff_t a = 0, b = 0, p = 0; p < m->count; p++)
        if (a < m->uppers && b >= m->above[a]) m->other[p] = m->upper[a++];
        else m->other[p] = m->lower[b++];
    return 0;
}

/* The correct order that is closest to the scores, into `other`. */
static void correct(Merge *m) {
    const OrderLoss *loss = &m->rule->loss;
    ptrdiff_t most = loss->cutoff && loss->cutoff < m->count ? loss->cutoff : m->count, hits = m->uppers < most ? m->uppers : most, a = 0,
              b = 0, p = 0, first = 0, rest = most;
    if (loss->measure == PRECISION_LOSS) { /* both classes by score, within the cutoff and below it */
        for (; p < m->count; p++) {
            ptrdiff_t own = m->order[p], inside = m->is_right[own] ? a++ < hits : b++ < most - hits;
            m->other[inside ? first++ : rest++] = own;
        }
        return;
    }
    for (; p < m->count; p++) {
        ptrdiff_t own = m->order[p];
        if (m->is_right[own] && a < hits) m->other[a++] = own;
        else if (!m->is_right[own] && b < most - hits) m->other[hits + b++] = own;
        else m->other[rest++] = own;
    }
}

static int predtron(Merge *m, double *g) {
    if (augmented(m)) return -1;
    for (ptrdiff_t p = 0; p < m->count; p++) g[m->other[p]] = m->F[p];
    correct(m);
    for (ptrdiff_t p = 0; p < m->count; p++) g[m->other[p]] -= m->F[p];
    return 1;
}

/* The hinges of the right labels, by score, against the first wrong one. */
static int slam(const Merge *m, double *g) {
    const OrderLoss *loss = &m->rule->loss;
    ptrdiff_t rival = m->lower[0], most = loss->cutoff && loss->cutoff < m->count ? loss->cutoff : m->count;
    double Z = (double)m->uppers;
    for (ptrdiff_t p = 0; p < most; p++)
        m->best[p] = p >= m->uppers ? 0.0 : loss->measure == AP_LOSS ? 1.0 : 0.5 * loss->discounts[p];
    if (loss->measure == NDCG_LOSS) Z = block_sum(m->best, most);
    for (ptrdiff_t a = 0; a < m->uppers && a < most; a++) {
        ptrdiff_t own = m->upper[a];
        double active = m->best[a] / Z * (m->t[rival] - m->t[own] > -m->rule->margin ? 1.0 : 0.0);
        g[rival] += active;
        g[own] -= active;
    }
    return 1;
}

/* The pair of the largest gap; of equals, the right label that joined first. */
static int minimax(const Merge *m, double *g) {
    ptrdiff_t rival = m->lower[0], worst = m->upper[0];
    for (ptrdiff_t a = 1; a < m->uppers; a++) {
        ptrdiff_t own = m->upper[a];
        double gap = m->t[rival] - m->t[own], most = m->t[rival] - m->t[worst];
        if (gap > most || (gap == most && own < worst)) worst = own;
    }
    g[worst] = -1.0;
    g[rival] = 1.0;
    return 1;
}

static int listnet(const Merge *m, double *g) {
    for (ptrdiff_t k = 0; k < m->count; k++) m->row[k] = m->is_right[k] ? 1.0 : 0.0;
    softmax_of(m->row, m->best, m->count);
    softmax_of(m->t, g, m->count);
    for (ptrdiff_t k = 0; k < m->count; k++) g[k] -= m->best[k];
    return 1;
}

int order_direction(const OrderRule *rule, const double *t, ptrdiff_t count, const ptrdiff_t *right, ptrdiff_t rights, const double *F,
                    double *g, double *loss) {
    size_t room = (size_t)count + 1;
    ptrdiff_t *places = malloc(room * (6 * sizeof *places + 3 * sizeof(double) + 1));
    if (!places) return -1;
    Merge m = {rule, t, F, count, 0, 0, places, places + room, places + 2 * room, places + 3 * room, places + 4 * room, NULL, NULL, NULL, NULL};
    m.row = (double *)(places + 6 * room), m.falls = m.row + room, m.best = m.falls + room;
    m.is_right = (unsigned char *)(m.best + room);
    memset(m.is_right, 0, (size_t)count);
    for (ptrdiff_t n = 0; n < rights; n++) m.is_right[right[n]] = 1;
    order_of(t, m.order, places + 5 * room, count);
    for (ptrdiff_t p = 0; p < count; p++) {
        ptrdiff_t own = m.order[p];
        if (m.is_right[own]) m.above[m.uppers] = p, m.upper[m.uppers++] = own;
        else m.lower[m.lowers++] = own;
    }
    *loss = places_loss(&rule->loss, m.above, m.uppers, count, m.best);
    int state = 0;
    for (ptrdiff_t k = 0; k < count; k++) g[k] = 0.0;
    if (m.uppers && m.lowers && (*loss > 0.0 || rule->kind == LISTNET_ORDER))
        state = rule->kind == PREDTRON_ORDER  ? predtron(&m, g)
                : rule->kind == SLAM_ORDER    ? slam(&m, g)
                : rule->kind == LISTNET_ORDER ? listnet(&m, g)
                                              : minimax(&m, g);
    free(places);
    return state;
}
