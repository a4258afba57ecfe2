/* welford.py and calibrate.py: naive Bayes' scores, and calibrated probabilities. */

/* The words among the features of x, sparse ones with u above 0: their rows and u; how many of the first `known`, how many in
   all, and the sum of u over them, those that have not joined apart. */
typedef struct {
    int64_t *rows;
    double *values, size;
    Py_ssize_t known, all;
} Words;

static void words_of(const int64_t *rows, const double *u, const unsigned char *dense, Py_ssize_t known, Py_ssize_t more,
                     Words *words) {
    double size = 0.0, rest = 0.0;
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < known; i++)
        if (u[i] > 0.0 && !dense[i]) {
            words->rows[count] = rows[i];
            words->values[count++] = u[i];
            size += u[i];
        }
    words->known = count;
    for (Py_ssize_t i = known; i < known + more; i++) {
        rest += u[i] > 0.0 ? u[i] : 0.0;
        if (u[i] > 0.0) words->values[count++] = u[i];
    }
    words->size = size + rest;
    words->all = count;
}

/* s_k += log(events_k + 1/2) - size log(words_k + room). */
WIDE static void add_priors(double *restrict s, const double *words, const double *events, double size, double room,
                       Py_ssize_t labels) {
    double last = 0.0; /* what is added to the label before */
    Py_ssize_t k = 0;
    for (; k + RUN <= labels; k += RUN) {
        if (k && is_run(events, k) && is_run(words, k)) {
            for (Py_ssize_t n = 0; n < RUN; n++) s[k + n] += last;
            continue;
        }
        double parts[RUN];
        for (Py_ssize_t n = 0; n < RUN; n++) parts[n] = log_normal(events[k + n] + 0.5) - size * log_normal(words[k + n] + room);
        for (Py_ssize_t n = 0; n < RUN; n++) s[k + n] += parts[n];
        last = parts[RUN - 1];
    }
    for (; k < labels; k++) s[k] += log_normal(events[k] + 0.5) - size * log_normal(words[k] + room);
}

/* word_scores(weights, x, words, events, room) -> (rows, values, size, s): see welford.py. `x` is (rows, u, dense, unseen). */
static PyObject *word_scores(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *parts[4], *counts[2], *made[3] = {NULL, NULL, NULL}, *result = NULL;
    Py_buffer taken[6];
    double room, size = 0.0, rest = 0.0, *values = NULL, *s = NULL;
    int count = 0;
    if (!PyArg_ParseTuple(arguments, "O!(OOOO)OOd", WeightsType, &object, &parts[0], &parts[1], &parts[2], &parts[3],
                          &counts[0], &counts[1], &room))
        return NULL;
    const Weights *weights = (Weights *)object;
    Py_ssize_t labels = weights->labels;
    static const char kinds[6] = {'q', 'd', '?', 'd', 'd', 'd'};
    for (; count < 6; count++) {
        Py_ssize_t length = count == 1 || count == 2 ? taken[0].len / 8 : -1;
        if (numbers_of(count < 4 ? parts[count] : counts[count - 4], &taken[count], kinds[count], length, 0)) goto done;
    }
    const int64_t *rows = taken[0].buf;
    const double *u = taken[1].buf, *unseen = taken[3].buf, *words = taken[4].buf, *events = taken[5].buf;
    const char *dense = taken[2].buf;
    Py_ssize_t active = 0, all = taken[0].len / 8;
    int fits = taken[4].len / 8 >= labels && taken[5].len / 8 >= labels;
    for (Py_ssize_t i = 0; i < all; i++) {
        fits = fits && (uint64_t)rows[i] < (uint64_t)weights->features;
        active += u[i] > 0.0 && !dense[i];
    }
    if (!fits) {
        PyErr_SetString(PyExc_IndexError, "a feature or a label is not in the weights");
        goto done;
    }
    Py_buffer places;
    made[0] = PyObject_CallFunction(empty_array, "ns", active, "q");
    made[1] = array_new(active, &values);
    made[2] = array_new(labels, &s);
    if (!made[0] || !made[1] || !made[2] || PyObject_GetBuffer(made[0], &places, PyBUF_WRITABLE)) goto done;
    int64_t *at = places.buf;
    for (Py_ssize_t i = 0, k = 0; i < all; i++)
        if (u[i] > 0.0 && !dense[i]) {
            at[k] = rows[i];
            values[k++] = u[i];
            size += u[i];
        }
    for (Py_ssize_t i = 0; i < taken[3].len / 8; i++) rest += unseen[i] > 0.0 ? unseen[i] : 0.0;
    size = size + rest;
    scores_of(weights, active, at, values, s);
    add_priors(s, words, events, size, room, labels);
    PyBuffer_Release(&places);
    result = Py_BuildValue("OOdO", made[0], made[1], size, made[2]);
done:
    for (int i = 0; i < 3; i++) Py_XDECREF(made[i]);
    while (count) PyBuffer_Release(&taken[--count]);
    return result;
}

#define KNOTS 8
#define EDGE 1e-6

/* The knot below q, and how far q is on the way to the next. */
static int knot_of(double q, double *share) {
    q = q < EDGE ? EDGE : q > 1.0 - EDGE ? 1.0 - EDGE : q;
    double odds = log_of(q / (1.0 - q));
    double at = ((odds < -3.0 ? -3.0 : odds > 6.0 ? 6.0 : odds) - -3.0) * ((KNOTS - 1) / (6.0 - -3.0));
    int i = (int)at < KNOTS - 2 ? (int)at : KNOTS - 2;
    *share = at - i;
    return i;
}

/* The calibrated probabilities of p into `shown`: 0, and nothing written, where they are p itself. */
static int calibrate(const double *p, const double *sums, Py_ssize_t count, double *shown) {
    double f, rest = 0.0, second = 0.0;
    if (count < 2) return 0;
    Py_ssize_t k = 0;
    double top = top_of(p, count);
    if (!isfinite(top)) return 0;
    while (k < count - 1 && p[k] != top) k++;
    int i = knot_of(p[k], &f);
    double weight = (1.0 - f) * sums[i] + f * sums[i + 1];
    double miss = (1.0 - f) * sums[KNOTS + i] + f * sums[KNOTS + i + 1];
    for (Py_ssize_t n = 0; n < count; n++) rest += n == k ? 0.0 : p[n];
    if (!(rest > 0.0)) return 0;
    for (Py_ssize_t n = 0; n < count; n++) second = n != k && p[n] > second ? p[n] : second;
    second /= rest;
    double moved = p[k] + miss / (weight + 1.0), least = second / (1.0 + second);
    moved = moved < EDGE ? EDGE : moved > 1.0 - EDGE ? 1.0 - EDGE : moved;
    moved = moved < least ? least : moved;
    double share = (1.0 - moved) / rest;
    for (Py_ssize_t n = 0; n < count; n++) shown[n] = n == k ? moved : p[n] * share;
    return 1;
}

/* One more round: the first choice had probability q before calibration, and was right or not. */
static void count_calibration(double q, int right, double *sums) {
    double f;
    int i = knot_of(q, &f);
    double miss = (double)right - q, shares[2] = {1.0 - f, f};
    for (int k = 0; k < 2; k++) {
        sums[i + k] = sums[i + k] * 0.995 + shares[k];
        sums[KNOTS + i + k] = sums[KNOTS + i + k] * 0.995 + shares[k] * miss;
    }
}

/* How sure a bit of probability p is. */
static double sureness(double p) { return p > 0.5 ? p : 1.0 - p; }

/* The calibrated probabilities of bits into `shown`: 0, and nothing written, where one of p is not finite. */
static int calibrate_bits(const double *p, const double *sums, Py_ssize_t count, double *shown) {
    for (Py_ssize_t n = 0; n < count; n++)
        if (!isfinite(p[n])) return 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        double f, q = sureness(p[n]);
        int i = knot_of(q, &f);
        double weight = (1.0 - f) * sums[i] + f * sums[i + 1];
        double miss = (1.0 - f) * sums[KNOTS + i] + f * sums[KNOTS + i + 1];
        double moved = q + miss / (weight + 1.0);
        moved = moved < EDGE ? EDGE : moved > 1.0 - EDGE ? 1.0 - EDGE : moved;
        moved = moved < 0.5 ? 0.5 : moved;
        shown[n] = p[n] > 0.5 ? moved : 1.0 - moved;
    }
    return 1;
}

/* One more round of bits that had probabilities p, and were those of the mask. */
static void count_bits(const double *p, const char *mask, Py_ssize_t count, double *sums) {
    for (int k = 0; k < 2 * KNOTS; k++) sums[k] = sums[k] * 0.995;
    for (Py_ssize_t n = 0; n < count; n++) {
        double f, q = sureness(p[n]);
        int i = knot_of(q, &f);
        double miss = (double)((p[n] > 0.5) == (mask[n] != 0)) - q, shares[2] = {1.0 - f, f};
        for (int k = 0; k < 2; k++) {
            sums[i + k] += shares[k];
            sums[KNOTS + i + k] += shares[k] * miss;
        }
    }
}

/* calibrated_bits(p, sums): see calibrate.py. */
static PyObject *calibrated_bits(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *sums_object, *result = NULL;
    Py_buffer p, sums;
    double *shown;
    if (!PyArg_ParseTuple(arguments, "OO", &object, &sums_object) || numbers_of(object, &p, 'd', -1, 0)) return NULL;
    if (!numbers_of(sums_object, &sums, 'd', 2 * KNOTS, 0)) {
        result = array_new(p.len / 8, &shown);
        if (result && !calibrate_bits(p.buf, sums.buf, p.len / 8, shown)) memcpy(shown, p.buf, (size_t)p.len);
        PyBuffer_Release(&sums);
    }
    PyBuffer_Release(&p);
    return result;
}

/* recalibrate_bits(p, Y, sums): one more round in the sums, in place. */
static PyObject *recalibrate_bits(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *truth, *sums_object;
    Py_buffer p, Y, sums;
    int failed = 1;
    if (!PyArg_ParseTuple(arguments, "OOO", &object, &truth, &sums_object) || numbers_of(object, &p, 'd', -1, 0)) return NULL;
    if (!numbers_of(truth, &Y, '?', p.len / 8, 0)) {
        failed = numbers_of(sums_object, &sums, 'd', 2 * KNOTS, 1);
        if (!failed) {
            count_bits(p.buf, Y.buf, p.len / 8, sums.buf);
            PyBuffer_Release(&sums);
        }
        PyBuffer_Release(&Y);
    }
    PyBuffer_Release(&p);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* calibrated(p, sums): see calibrate.py. */
static PyObject *calibrated(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *sums_object, *result = NULL;
    Py_buffer p, sums;
    double *shown;
    if (!PyArg_ParseTuple(arguments, "OO", &object, &sums_object) || numbers_of(object, &p, 'd', -1, 0)) return NULL;
    if (!numbers_of(sums_object, &sums, 'd', 2 * KNOTS, 0)) {
        result = array_new(p.len / 8, &shown);
        if (result && !calibrate(p.buf, sums.buf, p.len / 8, shown)) {
            Py_DECREF(result);
            Py_INCREF(object);
            result = object;
        }
        PyBuffer_Release(&sums);
    }
    PyBuffer_Release(&p);
    return result;
}

/* recalibrate(q, right, sums): one more round in the sums, in place. */
static PyObject *recalibrate(PyObject *module, PyObject *arguments) {
    (void)module;
    double q;
    int right;
    PyObject *object;
    Py_buffer sums;
    if (!PyArg_ParseTuple(arguments, "dpO", &q, &right, &object) || numbers_of(object, &sums, 'd', 2 * KNOTS, 1)) return NULL;
    count_calibration(isfinite(q) ? q : 0.0, right, sums.buf);
    PyBuffer_Release(&sums);
    Py_RETURN_NONE;
}
