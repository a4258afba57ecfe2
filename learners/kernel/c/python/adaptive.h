/* adaptive.py: one step of AdaGrad, in place. */

static int cells_of(PyObject *object, Py_buffer *matrix) {
    if (PyObject_GetBuffer(object, matrix, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE)) return -1;
    if (matrix->ndim == 2 && matrix->format && matrix->format[0] == 'd' && !matrix->format[1] &&
        (matrix->shape[1] < 2 || matrix->strides[1] == 8))
        return 0;
    PyErr_SetString(PyExc_ValueError, "a matrix of float64 is needed, its rows in one piece");
    PyBuffer_Release(matrix);
    return -1;
}

/* One row: e = u miss; G <- G + e^2; W <- W - rate e / sqrt(G). */
WIDE static void adapt_row(double *restrict w, double *restrict g, double u, const double *miss, double rate, Py_ssize_t labels) {
    for (Py_ssize_t k = 0; k < labels; k++) {
        double e = u * miss[k], square = g[k] + e * e;
        g[k] = square;
        w[k] -= rate * (e / sqrt(square > 0.0 ? square : 1.0));
    }
}

/* adapt(W, G, rows, values, miss, rate): these rows; the old W and, below, the old G. */
static PyObject *adapt(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *weights, *sums, *places, *numbers, *misses, *before = NULL;
    double rate;
    Py_buffer W, G, rows, values, miss;
    Array old;
    int taken = 0;
    if (!PyArg_ParseTuple(arguments, "OOOOOd", &weights, &sums, &places, &numbers, &misses, &rate)) return NULL;
    if (cells_of(weights, &W)) return NULL;
    if (cells_of(sums, &G)) goto first;
    if (numbers_of(places, &rows, 'q', -1, 0)) goto second;
    if (numbers_of(numbers, &values, 'd', rows.len / 8, 0)) goto third;
    taken = !numbers_of(misses, &miss, 'd', W.shape[1], 0);
    if (taken) {
        const int64_t *at = rows.buf;
        const double *v = values.buf, *m = miss.buf;
        Py_ssize_t count = rows.len / 8, labels = W.shape[1];
        int fits = G.shape[0] == W.shape[0] && G.shape[1] == labels;
        for (Py_ssize_t i = 0; fits && i < count; i++) fits = (uint64_t)at[i] < (uint64_t)W.shape[0];
        if (!fits) PyErr_SetString(PyExc_IndexError, "an entry is not in the matrix");
        else before = PyObject_CallFunction(empty_array, "((nn))", 2 * count, labels);
        if (before && array_get(before, &old, 1)) Py_CLEAR(before);
        if (before) {
            for (Py_ssize_t i = 0; i < count; i++) {
                double *w = (double *)((char *)W.buf + at[i] * W.strides[0]);
                double *g = (double *)((char *)G.buf + at[i] * G.strides[0]);
                memcpy(old.numbers + i * labels, w, (size_t)labels * sizeof *w);
                memcpy(old.numbers + (count + i) * labels, g, (size_t)labels * sizeof *g);
                adapt_row(w, g, v[i], m, rate, labels);
            }
            array_release(&old);
        }
        PyBuffer_Release(&miss);
    }
    PyBuffer_Release(&values);
third:
    PyBuffer_Release(&rows);
second:
    PyBuffer_Release(&G);
first:
    PyBuffer_Release(&W);
    return before;
}
