/* entropy.py, as Python calls it. */

/* entropic_step(cells, sums, rows, values, (r, s), size, most, margin): the old cells of r, then those of s. */
static PyObject *entropic_step_on(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *matrix, *totals, *places, *numbers, *before = NULL;
    Py_ssize_t pair[2];
    double size, most, margin, *old;
    Py_buffer cells, sums, rows, values;
    if (!PyArg_ParseTuple(arguments, "OOOO(nn)ddd", &matrix, &totals, &places, &numbers, &pair[0], &pair[1], &size, &most, &margin))
        return NULL;
    if (cells_of(matrix, &cells)) return NULL;
    Py_ssize_t labels = cells.shape[1];
    if (numbers_of(totals, &sums, 'd', labels, 1)) goto first;
    if (numbers_of(places, &rows, 'q', -1, 0)) goto second;
    if (numbers_of(numbers, &values, 'd', rows.len / 8, 0)) goto third;
    const int64_t *at = rows.buf;
    Py_ssize_t count = rows.len / 8;
    int fits = cells.strides[0] % 8 == 0 && pair[0] != pair[1];
    for (int n = 0; n < 2; n++) fits = fits && pair[n] >= 0 && pair[n] < labels;
    for (Py_ssize_t i = 0; fits && i < count; i++) fits = (uint64_t)at[i] < (uint64_t)cells.shape[0];
    double *powers = malloc((size_t)(count + 1) * sizeof *powers);
    if (!powers) PyErr_NoMemory();
    else if (!fits) PyErr_SetString(PyExc_IndexError, "an entry is not in the matrix");
    else if ((before = array_new(2 * count, &old))) {
        const Entropic weights = {cells.buf, sums.buf, cells.strides[0] / 8, size};
        const EntropicWords words = {at, values.buf, (size_t)count, powers};
        for (int n = 0; n < 2; n++)
            for (Py_ssize_t i = 0; i < count; i++) *old++ = weights.cells[at[i] * weights.width + pair[n]];
        entropic_step(&weights, &words, (size_t)pair[0], (size_t)pair[1], most, margin);
    }
    free(powers);
    PyBuffer_Release(&values);
third:
    PyBuffer_Release(&rows);
second:
    PyBuffer_Release(&sums);
first:
    PyBuffer_Release(&cells);
    return before;
}

/* entropic_move(theta, u, (sums, level, drift), rows, values, columns, steps) -> (old theta, what to make anew). */
static PyObject *entropic_move_on(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *objects[9], *old = NULL, *codes = NULL, *result = NULL;
    Py_buffer all[9]; /* theta, u, sums, level, drift, rows, values, columns, steps */
    int taken = 0, failed = 0;
    if (!PyArg_ParseTuple(arguments, "OO(OOO)OOOO", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4], &objects[5],
                          &objects[6], &objects[7], &objects[8]))
        return NULL;
    for (; !failed && taken < 9; taken += !failed)
        failed = taken < 2 ? cells_of(objects[taken], &all[taken])
                           : numbers_of(objects[taken], &all[taken], taken == 5 || taken == 7 ? 'q' : 'd',
                                        taken == 6 ? all[5].len / 8 : taken == 8 ? all[7].len / 8 : -1, taken < 5);
    if (!failed) {
        Py_ssize_t count = all[5].len / 8, columns = all[7].len / 8, labels = all[2].len / 8, rows = all[0].shape[0];
        const int64_t *at = all[5].buf, *column = all[7].buf;
        const double *steps = all[8].buf;
        double *before = NULL, *powers = malloc((size_t)(count + 1) * sizeof *powers);
        int fits = all[3].len == all[2].len && all[4].len == all[2].len && labels <= all[0].shape[1] && labels <= all[1].shape[1];
        rows = all[1].shape[0] < rows ? all[1].shape[0] : rows;
        for (Py_ssize_t i = 0; fits && i < count; i++) fits = (uint64_t)at[i] < (uint64_t)rows;
        for (Py_ssize_t n = 0; fits && n < columns; n++) fits = (uint64_t)column[n] < (uint64_t)labels;
        fits = fits && all[0].strides[0] % 8 == 0 && all[1].strides[0] % 8 == 0;
        if (!fits) PyErr_SetString(PyExc_IndexError, "an entry is not in the matrix");
        else if (!powers) PyErr_NoMemory();
        else if ((old = matrix_new(count, columns, &before)) && (codes = PyList_New(columns))) {
            const EntropicSums weights = {all[0].buf, all[1].buf, all[0].strides[0] / 8, all[1].strides[0] / 8,
                                          all[2].buf, all[3].buf, all[4].buf};
            const EntropicWords words = {at, all[6].buf, (size_t)count, powers};
            for (Py_ssize_t n = 0; n < columns; n++) { /* small numbers are there already: nothing can fail */
                int code = entropic_move(&weights, &words, (size_t)column[n], steps[n], before + n, (size_t)columns);
                PyList_SetItem(codes, n, PyLong_FromLong(code));
            }
            result = PyTuple_Pack(2, old, codes);
        }
        Py_XDECREF(old);
        Py_XDECREF(codes);
        free(powers);
    }
    while (taken) PyBuffer_Release(&all[--taken]);
    return result;
}
