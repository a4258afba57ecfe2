/* welford.py and calibrate.py: naive Bayes' scores, and calibrated probabilities. */

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
    for (Py_ssize_t k = 0; k < labels; k++) s[k] += log_of(events[k] + 0.5) - size * log_of(words[k] + room);
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

/* calibrated(p, sums): see calibrate.py. */
static PyObject *calibrated(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *sums_object, *result = NULL;
    Py_buffer p, sums;
    double *others, f, rest = 0.0, second = 0.0;
    if (!PyArg_ParseTuple(arguments, "OO", &object, &sums_object) || numbers_of(object, &p, 'd', -1, 0)) return NULL;
    Py_ssize_t count = p.len / 8;
    if (numbers_of(sums_object, &sums, 'd', 2 * KNOTS, 0)) goto p_only;
    const double *q = p.buf, *sum = sums.buf;
    if (count < 2) goto same;
    Py_ssize_t k = 0;
    for (Py_ssize_t i = 1; i < count; i++) k = q[i] > q[k] ? i : k;
    if (!isfinite(q[k])) goto same;
    int i = knot_of(q[k], &f);
    double weight = (1.0 - f) * sum[i] + f * sum[i + 1];
    double miss = (1.0 - f) * sum[KNOTS + i] + f * sum[KNOTS + i + 1];
    for (Py_ssize_t n = 0; n < count; n++) rest += n == k ? 0.0 : q[n];
    if (!(rest > 0.0)) goto same;
    if (!(result = array_new(count, &others))) goto done;
    for (Py_ssize_t n = 0; n < count; n++) second = n != k && q[n] > second ? q[n] : second;
    second /= rest;
    double moved = q[k] + miss / (weight + 1.0), least = second / (1.0 + second);
    moved = moved < EDGE ? EDGE : moved > 1.0 - EDGE ? 1.0 - EDGE : moved;
    moved = moved < least ? least : moved;
    double share = (1.0 - moved) / rest;
    for (Py_ssize_t n = 0; n < count; n++) others[n] = n == k ? moved : q[n] * share;
    goto done;
same:
    Py_INCREF(object);
    result = object;
done:
    PyBuffer_Release(&sums);
p_only:
    PyBuffer_Release(&p);
    return result;
}

/* recalibrate(q, right, sums): one more round in the sums, in place. */
static PyObject *recalibrate(PyObject *module, PyObject *arguments) {
    (void)module;
    double q, f;
    int right;
    PyObject *object;
    Py_buffer sums;
    if (!PyArg_ParseTuple(arguments, "dpO", &q, &right, &object) || numbers_of(object, &sums, 'd', 2 * KNOTS, 1)) return NULL;
    double *sum = sums.buf;
    if (!isfinite(q)) q = 0.0;
    int i = knot_of(q, &f);
    double miss = (double)right - q, shares[2] = {1.0 - f, f};
    for (int k = 0; k < 2; k++) {
        sum[i + k] = sum[i + k] * 0.98 + shares[k];
        sum[KNOTS + i + k] = sum[KNOTS + i + k] * 0.98 + shares[k] * miss;
    }
    PyBuffer_Release(&sums);
    Py_RETURN_NONE;
}
