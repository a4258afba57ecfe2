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
