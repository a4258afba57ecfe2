/* welford.py: what is counted of every feature, and a vector scaled by it. */

/* The rows and raw values of x, and the four statistics of all rows. */
typedef struct {
    Py_buffer rows, raw, parts[4];
    int taken;
} Counted;

static void counted_release(Counted *x) {
    while (x->taken > 2) PyBuffer_Release(&x->parts[--x->taken - 2]);
    if (x->taken > 1) PyBuffer_Release(&x->raw);
    if (x->taken > 0) PyBuffer_Release(&x->rows);
    x->taken = 0;
}

static int counted_of(PyObject *rows, PyObject *raw, PyObject *parts, int writable, Counted *x) {
    x->taken = 0;
    if (!PyTuple_Check(parts) || PyTuple_Size(parts) != 4) {
        PyErr_SetString(PyExc_ValueError, "four parts are needed");
        return -1;
    }
    if (numbers_of(rows, &x->rows, 'q', -1, 0)) return -1;
    x->taken++;
    int failed = numbers_of(raw, &x->raw, 'd', x->rows.len / 8, 0);
    if (!failed) x->taken++;
    for (int i = 0; !failed && i < 4; i++) {
        failed = numbers_of(PyTuple_GetItem(parts, i), &x->parts[i], 'd', i ? x->parts[0].len / 8 : -1, writable);
        if (!failed) x->taken++;
    }
    const int64_t *places = x->rows.buf;
    for (Py_ssize_t i = 0; !failed && i < x->rows.len / 8; i++)
        if ((uint64_t)places[i] >= (uint64_t)(x->parts[0].len / 8)) {
            PyErr_SetString(PyExc_IndexError, "a feature of the vector is not in the table");
            failed = 1;
        }
    if (failed) counted_release(x);
    return failed ? -1 : 0;
}

static inline double sign_of(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x == 0.0 ? 0.0 : x; }

static PyObject *scale_vector(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *rows, *raw, *rest, *parts, *result = NULL, *made[5] = {NULL, NULL, NULL, NULL, NULL};
    Py_ssize_t bias, events;
    int idf;
    Counted x;
    Py_buffer unseen, flags;
    if (!PyArg_ParseTuple(arguments, "OOOOnin", &rows, &raw, &rest, &parts, &bias, &idf, &events)) return NULL;
    if (counted_of(rows, raw, parts, 0, &x)) return NULL;
    if (numbers_of(rest, &unseen, 'd', -1, 0)) {
        counted_release(&x);
        return NULL;
    }
    Py_ssize_t count = x.rows.len / 8, more = unseen.len / 8, dense_count = 0;
    double *values = NULL, *others = NULL, *z = NULL, *others_z = NULL;
    made[0] = array_new(count, &values);
    made[1] = array_new(more, &others);
    made[2] = array_new(count, &z);
    made[3] = PyObject_CallFunction(empty_array, "ns", count, "?");
    made[4] = array_new(more, &others_z);
    if (bias < 0 || bias > count) PyErr_SetString(PyExc_ValueError, "more bias than rows");
    else if (made[0] && made[1] && made[2] && made[3] && made[4] && !PyObject_GetBuffer(made[3], &flags, PyBUF_WRITABLE)) {
        const int64_t *at = x.rows.buf;
        const double *v = x.raw.buf, *counts = x.parts[0].buf, *means = x.parts[1].buf;
        const double *deviations = x.parts[2].buf, *logarithms = x.parts[3].buf, *u = unseen.buf;
        unsigned char *dense = flags.buf;
        double n = (double)events, most = 1.0 + log_of(1.0 + n), sum = 0.0, rest_sum = 0.0;
        for (Py_ssize_t i = 0; i < bias; i++) values[i] = 1.0, z[i] = 0.0, dense[i] = 1;
        for (Py_ssize_t i = bias; i < count; i++) {
            double c = counts[at[i]], mean = means[at[i]], variance = deviations[at[i]] / (c > 1.0 ? c : 1.0);
            double spread = sqrt(variance), size = sqrt(mean * mean + variance);
            dense[i] = events && 20.0 * c >= 19.0 * n && spread > 1e-9 * fabs(mean);
            double number = dense[i] ? (v[i] - mean) / spread : v[i] / (size == 0.0 ? 1.0 : size);
            if (bias && events >= 2 && !dense[i] && c == n && fabs(v[i] - mean) <= 1e-9 * fabs(mean)) number = 0.0;
            if (c == 0.0) number = sign_of(v[i]);
            z[i] = number < -2.0 ? -2.0 : number > 2.0 ? 2.0 : number;
            values[i] = idf ? z[i] * (most - logarithms[at[i]]) : z[i];
            if (dense[i]) dense_count++;
            else sum += values[i] * values[i];
        }
        for (Py_ssize_t i = 0; i < more; i++) {
            others_z[i] = sign_of(u[i]);
            others[i] = idf ? others_z[i] * most : others_z[i];
            rest_sum += others[i] * others[i];
        }
        double length = sqrt(sum + rest_sum), root = sqrt((double)dense_count);
        if (length == 0.0) length = 1.0;
        for (Py_ssize_t i = bias; i < count; i++) values[i] = dense[i] ? z[i] / root : values[i] / length;
        for (Py_ssize_t i = 0; i < more; i++) others[i] /= length;
        PyBuffer_Release(&flags);
        result = PyTuple_Pack(5, made[0], made[1], made[2], made[3], made[4]);
    }
    for (int i = 0; i < 5; i++) Py_XDECREF(made[i]);
    PyBuffer_Release(&unseen);
    counted_release(&x);
    return result;
}

static PyObject *tally(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *rows, *raw, *parts, *before;
    Py_ssize_t bias;
    Counted x;
    Array old;
    if (!PyArg_ParseTuple(arguments, "OOOn", &rows, &raw, &parts, &bias) || counted_of(rows, raw, parts, 1, &x)) return NULL;
    Py_ssize_t count = x.rows.len / 8 - bias;
    before = bias < 0 || count < 0 ? NULL : PyObject_CallFunction(empty_array, "((nn))", (Py_ssize_t)4, count);
    if (before && array_get(before, &old, 1)) Py_CLEAR(before);
    if (before) {
        const int64_t *at = (const int64_t *)x.rows.buf + bias;
        const double *v = (const double *)x.raw.buf + bias;
        double *part[4];
        for (int k = 0; k < 4; k++) part[k] = x.parts[k].buf;
        for (Py_ssize_t i = 0; i < count; i++) {
            for (int k = 0; k < 4; k++) old.numbers[k * count + i] = part[k][at[i]];
            double c = part[0][at[i]] + 1.0, mean = part[1][at[i]], off = v[i] - mean;
            double after = mean + off / c;
            part[0][at[i]] = c;
            part[1][at[i]] = after;
            part[2][at[i]] += off * (v[i] - after);
            part[3][at[i]] = c >= 0.0 && c < (double)LOGS ? logs[(Py_ssize_t)c] : log_of(1.0 + c);
        }
        array_release(&old);
    } else if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "more bias than rows");
    counted_release(&x);
    return before;
}

/* L_j <- log(exp(L_j) + more) in one column of a matrix whose rows may lie apart; the old entries. */
static PyObject *recount(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *matrix, *places, *before = NULL;
    Py_ssize_t column;
    double more, *old;
    Py_buffer L, rows;
    if (!PyArg_ParseTuple(arguments, "OOnd", &matrix, &places, &column, &more)) return NULL;
    if (PyObject_GetBuffer(matrix, &L, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE)) return NULL;
    if (numbers_of(places, &rows, 'q', -1, 0)) {
        PyBuffer_Release(&L);
        return NULL;
    }
    const int64_t *at = rows.buf;
    Py_ssize_t count = rows.len / 8;
    int fits = L.ndim == 2 && L.format && L.format[0] == 'd' && !L.format[1] && column >= 0 && column < L.shape[1];
    for (Py_ssize_t i = 0; fits && i < count; i++) fits = (uint64_t)at[i] < (uint64_t)L.shape[0];
    if (!fits) PyErr_SetString(PyExc_IndexError, "an entry is not in the matrix");
    else if ((before = array_new(count, &old))) {
        char *start = (char *)L.buf + column * L.strides[1];
        for (Py_ssize_t i = 0; i < count; i++) {
            double *entry = (double *)(start + at[i] * L.strides[0]);
            old[i] = *entry;
            *entry = log_of(exp_of(old[i]) + more);
        }
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&L);
    return before;
}
