/* welford.py: what is counted of every feature, and a vector scaled by it. */

/* What is counted of a feature: one row of the statistics, and so one place in memory. */
typedef struct {
    double count, mean, deviation, logarithm;
} Counted;

static inline double sign_of(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x == 0.0 ? 0.0 : x; }

/* A scaled vector: `values` and z of its known features and, behind them, of those that have not joined. */
typedef struct {
    double *values, *z;
    unsigned char *dense; /* of the known ones */
} Scaled;

/* u and z of the raw values v: `count` of known rows, then `more` of features that have not joined. */
static void scale_values(const Counted *counted, const int64_t *rows, const double *v, Py_ssize_t count, Py_ssize_t more,
                         Py_ssize_t bias, int idf, Py_ssize_t events, Scaled *x) {
    double n = (double)events, most = 1.0 + log_of(1.0 + n), sum = 0.0, rest_sum = 0.0, *values = x->values, *z = x->z;
    unsigned char *dense = x->dense;
    Py_ssize_t dense_count = 0, all = count + more;
    for (Py_ssize_t i = 0; i < bias; i++) values[i] = 1.0, z[i] = 0.0, dense[i] = 1;
    for (Py_ssize_t i = bias; i < count; i++) {
        const Counted *own = &counted[rows[i]];
        double c = own->count, mean = own->mean, variance = own->deviation / (c > 1.0 ? c : 1.0);
        double spread = sqrt(variance), size = sqrt(mean * mean + variance);
        dense[i] = events && 20.0 * c >= 19.0 * n && spread > 1e-9 * fabs(mean);
        double number = dense[i] ? (v[i] - mean) / spread : v[i] / (size == 0.0 ? 1.0 : size);
        if (bias && events >= 2 && !dense[i] && c == n && fabs(v[i] - mean) <= 1e-9 * fabs(mean)) number = 0.0;
        if (c == 0.0) number = sign_of(v[i]);
        z[i] = number < -2.0 ? -2.0 : number > 2.0 ? 2.0 : number;
        values[i] = idf ? z[i] * (most - own->logarithm) : z[i];
        if (dense[i]) dense_count++;
        else sum += values[i] * values[i];
    }
    for (Py_ssize_t i = count; i < all; i++) {
        z[i] = sign_of(v[i]);
        values[i] = idf ? z[i] * most : z[i];
        rest_sum += values[i] * values[i];
    }
    double length = sqrt(sum + rest_sum), root = sqrt((double)dense_count);
    if (length == 0.0) length = 1.0;
    for (Py_ssize_t i = bias; i < count; i++) values[i] = dense[i] ? z[i] / root : values[i] / length;
    for (Py_ssize_t i = count; i < all; i++) values[i] /= length;
}

/* Events after which a value counts as one within four deviations of the mean, or four times the mean where all were equal. */
#define SETTLED 5.0

static inline double counting_value(const Counted *own, double v) {
    if (own->count < SETTLED) return v;
    double spread = sqrt(own->deviation / own->count), size = fabs(own->mean);
    if (!(spread > 1e-9 * size)) spread = size;
    if (!(spread > 0.0)) return v;
    double reach = 4.0 * spread, low = own->mean - reach, high = own->mean + reach;
    return v < low ? low : v > high ? high : v;
}

/* One more event with the raw values v in these rows. */
static void tally_values(Counted *counted, const int64_t *rows, const double *v, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        Counted *own = &counted[rows[i]];
        double value = counting_value(own, v[i]), c = own->count + 1.0, off = value - own->mean, after = own->mean + off / c;
        own->count = c;
        own->mean = after;
        own->deviation += off * (value - after);
        own->logarithm = c >= 0.0 && c < (double)LOGS ? logs[(Py_ssize_t)c] : log_of(1.0 + c);
    }
}

/* Rows within the statistics, which are a matrix of four columns: 0, or -1 with an exception. */
static int counted_of(PyObject *rows, PyObject *statistics, int writable, Py_buffer *places, Py_buffer *counted) {
    if (numbers_of(rows, places, 'q', -1, 0)) return -1;
    if (numbers_of(statistics, counted, 'd', -1, writable)) goto places_only;
    if (counted->ndim != 2 || counted->shape[1] != 4) PyErr_SetString(PyExc_ValueError, "four columns are needed");
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < places->len / 8; i++)
        if ((uint64_t)((const int64_t *)places->buf)[i] >= (uint64_t)counted->shape[0])
            PyErr_SetString(PyExc_IndexError, "a feature of the vector is not in the table");
    if (!PyErr_Occurred()) return 0;
    PyBuffer_Release(counted);
places_only:
    PyBuffer_Release(places);
    return -1;
}

/* scale(rows, raw, rest, statistics, bias, idf, events): see welford.py. */
static PyObject *scale_vector(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *rows, *raw, *rest, *statistics, *result = NULL, *made[5] = {NULL, NULL, NULL, NULL, NULL};
    Py_ssize_t bias, events;
    int idf;
    Py_buffer places, counted, known, unseen, flags;
    if (!PyArg_ParseTuple(arguments, "OOOOnin", &rows, &raw, &rest, &statistics, &bias, &idf, &events)) return NULL;
    if (counted_of(rows, statistics, 0, &places, &counted)) return NULL;
    Py_ssize_t count = places.len / 8;
    if (numbers_of(raw, &known, 'd', count, 0)) goto first;
    if (numbers_of(rest, &unseen, 'd', -1, 0)) goto second;
    Py_ssize_t more = unseen.len / 8, all = count + more;
    double *parts[4] = {NULL}, *every = malloc((size_t)(3 * all + 1) * sizeof *every);
    made[0] = array_new(count, &parts[0]);
    made[1] = array_new(more, &parts[1]);
    made[2] = array_new(count, &parts[2]);
    made[3] = PyObject_CallFunction(empty_array, "ns", count, "?");
    made[4] = array_new(more, &parts[3]);
    if (!every) PyErr_NoMemory();
    else if (bias < 0 || bias > count) PyErr_SetString(PyExc_ValueError, "more bias than rows");
    else if (made[0] && made[1] && made[2] && made[3] && made[4] && !PyObject_GetBuffer(made[3], &flags, PyBUF_WRITABLE)) {
        Scaled x = {every + all, every + 2 * all, flags.buf};
        if (count) memcpy(every, known.buf, (size_t)known.len);
        if (more) memcpy(every + count, unseen.buf, (size_t)unseen.len);
        scale_values(counted.buf, places.buf, every, count, more, bias, idf, events, &x);
        if (count) memcpy(parts[0], x.values, (size_t)known.len), memcpy(parts[2], x.z, (size_t)known.len);
        if (more) memcpy(parts[1], x.values + count, (size_t)unseen.len), memcpy(parts[3], x.z + count, (size_t)unseen.len);
        PyBuffer_Release(&flags);
        result = PyTuple_Pack(5, made[0], made[1], made[2], made[3], made[4]);
    }
    free(every);
    for (int i = 0; i < 5; i++) Py_XDECREF(made[i]);
    PyBuffer_Release(&unseen);
second:
    PyBuffer_Release(&known);
first:
    PyBuffer_Release(&counted);
    PyBuffer_Release(&places);
    return result;
}

/* tally(rows, raw, statistics, bias): one more event, in place; the old rows. */
static PyObject *tally(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *rows, *raw, *statistics, *before = NULL;
    Py_ssize_t bias;
    Py_buffer places, counted, known;
    Array old;
    if (!PyArg_ParseTuple(arguments, "OOOn", &rows, &raw, &statistics, &bias)) return NULL;
    if (counted_of(rows, statistics, 1, &places, &counted)) return NULL;
    Py_ssize_t count = places.len / 8 - bias;
    if (!numbers_of(raw, &known, 'd', places.len / 8, 0)) {
        if (bias < 0 || count < 0) PyErr_SetString(PyExc_ValueError, "more bias than rows");
        else before = PyObject_CallFunction(empty_array, "((nn))", count, (Py_ssize_t)4);
        if (before && array_get(before, &old, 1)) Py_CLEAR(before);
        if (before) {
            const int64_t *at = (const int64_t *)places.buf + bias;
            for (Py_ssize_t i = 0; i < count; i++) ((Counted *)old.numbers)[i] = ((const Counted *)counted.buf)[at[i]];
            tally_values(counted.buf, at, (const double *)known.buf + bias, count);
            array_release(&old);
        }
        PyBuffer_Release(&known);
    }
    PyBuffer_Release(&counted);
    PyBuffer_Release(&places);
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
