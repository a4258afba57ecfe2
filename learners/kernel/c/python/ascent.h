/* Dual ascent with the squared norm, and the order of scores: see reference.py for the mathematics. */

#define MET (1.0 - 1e-12)

typedef struct {
    const char *mask; /* several relevant labels, or NULL: one */
    Py_ssize_t label;
    Py_buffer buffer; /* of the mask, where it is Python's */
} Relevant;

static inline int is_relevant(const Relevant *relevant, Py_ssize_t label) {
    return relevant->mask ? relevant->mask[label] != 0 : label == relevant->label;
}

/* The lowest relevant label and the highest other one, -1 where there is none; of equals, what joined first. */
static void worst_pair(const double *t, const Relevant *relevant, Py_ssize_t count, Py_ssize_t *lowest, Py_ssize_t *highest) {
    Py_ssize_t r = -1, s = -1;
    for (Py_ssize_t k = 0; k < count; k++)
        if (is_relevant(relevant, k)) r = r < 0 || t[k] < t[r] ? k : r;
        else s = s < 0 || t[k] > t[s] ? k : s;
    *lowest = r;
    *highest = s;
}

static int relevant_of(PyObject *object, Relevant *relevant, Py_ssize_t count) {
    relevant->mask = NULL;
    if (!PyLong_Check(object)) {
        if (numbers_of(object, &relevant->buffer, '?', count, 0)) return -1;
        relevant->mask = relevant->buffer.buf;
        return 0;
    }
    relevant->label = PyLong_AsSsize_t(object);
    if (PyErr_Occurred()) return -1;
    if (relevant->label >= 0 && relevant->label < count) return 0;
    PyErr_SetString(PyExc_IndexError, "no such label");
    return -1;
}

/* The least of what is below `at` moves up, until `at` is the least of its part of the heap. */
static void heap_sink(double *heap, Py_ssize_t count, Py_ssize_t at) {
    double value = heap[at];
    for (Py_ssize_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1] < heap[child]) child++;
        if (!(heap[child] < value)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

static void heap_make(double *heap, Py_ssize_t count) {
    for (Py_ssize_t i = count / 2; i-- > 0;) heap_sink(heap, count, i);
}

/* The least of a heap leaves. */
static double heap_pop(double *heap, Py_ssize_t *count) {
    double least = heap[0];
    heap[0] = heap[--*count];
    if (*count) heap_sink(heap, *count, 0);
    return least;
}

/* The two levels of update III: `up` and `down` are the levels of the contenders, the latter negated. Few of them mostly
   take part, lowest first: a heap orders no more than these. */
static void pour(double *up, Py_ssize_t ups, double *down, Py_ssize_t downs, double most, double gap, double *top,
                 double *bottom) {
    heap_make(up, ups);
    heap_make(down, downs);
    double P = heap_pop(up, &ups), H = 1.0, Q = heap_pop(down, &downs), K = 1.0, amount;
    for (;;) {
        amount = (gap - (P / H + Q / K)) / (1.0 / H + 1.0 / K);
        double one = ups ? H * up[0] - P : INFINITY, other = downs ? K * down[0] - Q : INFINITY;
        double next = one <= other ? one : other;
        if (next >= most || amount <= next) break;
        if (one <= other) P += heap_pop(up, &ups), H += 1.0;
        else Q += heap_pop(down, &downs), K += 1.0;
    }
    amount = amount < 0.0 ? 0.0 : amount > most ? most : amount;
    *top = (amount + P) / H;
    *bottom = -((amount + Q) / K);
}

/* g = -alpha of one round in `g`, which holds zeros: 1, or 0 where no weight changes, or -1 with an exception. */
static int direction_of(const double *t, const Relevant *relevant, Py_ssize_t count, Py_ssize_t r, Py_ssize_t s,
                        double square, int update, double C, double gamma, double *g) {
    if (!(square > 0.0) || (update == 1 ? !(t[r] <= t[s]) : t[r] - t[s] >= MET * gamma)) return 0;
    if (update < 3) {
        double tau = C;
        if (update == 2) {
            tau = (gamma - (t[r] - t[s])) / (2.0 * square);
            tau = tau < 0.0 ? 0.0 : tau > C ? C : tau;
        }
        g[r] = -tau;
        g[s] = tau;
        return 1;
    }
    double *levels = malloc((size_t)count * sizeof *levels), top = 0.0, bottom = 0.0;
    if (!levels) return PyErr_NoMemory(), -1;
    /* No label ends beyond the worst pair's other side by more than gamma: only these can take part. */
    double below = t[s] + gamma, above = t[r] - gamma;
    Py_ssize_t ups = 0, downs = 0;
    for (Py_ssize_t k = 0; k < count; k++)
        if (is_relevant(relevant, k)) {
            if (t[k] <= below) levels[ups++] = t[k] / square;
        } else if (t[k] >= above) levels[count - ++downs] = -(t[k] / square);
    if (ups && downs) pour(levels, ups, levels + count - downs, downs, C, gamma / square, &top, &bottom);
    free(levels);
    if (!ups || !downs) return 0; /* scores that are not finite */
    for (Py_ssize_t k = 0; k < count; k++)
        if (is_relevant(relevant, k)) {
            if (t[k] <= below && top - t[k] / square > 0.0) g[k] = -(top - t[k] / square);
        } else if (t[k] >= above && bottom - t[k] / square < 0.0) g[k] = -(bottom - t[k] / square);
    return 1;
}

/* ascend(t, relevant, square, update, C, gamma) -> (mistake, g, total, growth); g is None where no weight changes. */
static PyObject *ascend(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *scores, *truth, *result = NULL;
    double square, C, gamma, total = 0.0, linear = 0.0, quadratic = 0.0, *g = NULL;
    int update;
    if (!PyArg_ParseTuple(arguments, "OOdidd", &scores, &truth, &square, &update, &C, &gamma)) return NULL;
    Py_buffer buffer;
    if (numbers_of(scores, &buffer, 'd', -1, 0)) return NULL;
    Py_ssize_t count = buffer.len / 8, r, s;
    const double *t = buffer.buf;
    Relevant relevant = {0};
    if (relevant_of(truth, &relevant, count)) {
        PyBuffer_Release(&buffer);
        return NULL;
    }
    worst_pair(t, &relevant, count, &r, &s);
    int pair = r >= 0 && s >= 0, moved = 0;
    PyObject *mistake = pair && t[r] <= t[s] ? Py_True : Py_False, *direction = pair ? array_new(count, &g) : NULL;
    if (direction) {
        for (Py_ssize_t k = 0; k < count; k++) g[k] = 0.0;
        moved = direction_of(t, &relevant, count, r, s, square, update, C, gamma, g);
    }
    for (Py_ssize_t k = 0; k < count && moved > 0; k++)
        if (g[k] != 0.0) {
            if (is_relevant(&relevant, k)) total -= g[k];
            linear -= g[k] * t[k];
            quadratic += g[k] * g[k];
        }
    if (moved >= 0 && (direction || !pair))
        result = Py_BuildValue("OOdd", mistake, moved ? direction : Py_None, total, linear + 0.5 * square * quadratic);
    Py_XDECREF(direction);
    if (relevant.mask) PyBuffer_Release(&relevant.buffer);
    PyBuffer_Release(&buffer);
    return result;
}

typedef struct {
    double score;
    Py_ssize_t label;
} Ranked;

static int by_rank(const void *one, const void *other) {
    const Ranked *a = one, *b = other;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->label < b->label ? -1 : 1;
}

/* The `most` highest scores, best first; of equals, what joined first. `ranked` has room for one more than all. */
static void rank_scores(const double *t, Py_ssize_t count, Py_ssize_t most, Ranked *ranked) {
    Py_ssize_t kept = 0;
    if (most > 16) {
        for (Py_ssize_t k = 0; k < count; k++) ranked[k] = (Ranked){t[k], k};
        qsort(ranked, (size_t)count, sizeof *ranked, by_rank);
        return;
    }
    for (Py_ssize_t k = 0; k < count && most; k++) {
        if (kept == most && !(t[k] > ranked[kept - 1].score)) continue;
        Py_ssize_t at = kept < most ? kept++ : kept - 1;
        for (; at > 0 && t[k] > ranked[at - 1].score; at--) ranked[at] = ranked[at - 1];
        ranked[at] = (Ranked){t[k], k};
    }
}

/* best(t, count): the labels of the highest scores and those scores, best first; of equals, what joined first. */
static PyObject *best(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *scores;
    Py_ssize_t most;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(arguments, "On", &scores, &most) || numbers_of(scores, &buffer, 'd', -1, 0)) return NULL;
    Py_ssize_t count = buffer.len / 8;
    const double *t = buffer.buf;
    if (most > count || most < 0) most = count;
    Ranked *ranked = malloc((size_t)(count + 1) * sizeof *ranked);
    PyObject *labels = PyList_New(most), *values = PyList_New(most), *result = NULL;
    if (!ranked) PyErr_NoMemory();
    if (!ranked || !labels || !values) goto done;
    rank_scores(t, count, most, ranked);
    for (Py_ssize_t k = 0; k < most; k++) {
        PyObject *label = PyLong_FromSsize_t(ranked[k].label), *value = PyFloat_FromDouble(ranked[k].score);
        if (!label || !value || PyList_SetItem(labels, k, label) || PyList_SetItem(values, k, value)) goto done;
    }
    result = Py_BuildValue("OO", labels, values);
done:
    PyBuffer_Release(&buffer);
    free(ranked);
    Py_XDECREF(labels);
    Py_XDECREF(values);
    return result;
}
