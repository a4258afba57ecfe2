/* What Python sees of the weights. */

static PyObject *weights_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"single", "brief", NULL};
    int single = 0, brief = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|pi", words, &single, &brief)) return NULL;
    Weights *weights = (Weights *)PyType_GenericAlloc(type, 0);
    if (!weights) return NULL;
    weights->single = single;
    weights->brief = brief < 0 ? 0 : brief;
    weights->block = block_new(0, 8);
    if (!weights->block) Py_CLEAR(weights);
    return (PyObject *)weights;
}

static void weights_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Weights *weights = (Weights *)self;
    Py_XDECREF((PyObject *)weights->block);
    Py_XDECREF((PyObject *)weights->places);
    for (int class = 0; class < CLASSES; class++) Py_XDECREF((PyObject *)weights->lists[class].block);
    free(weights->changed);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Zero rows and columns for what is new; all of them, or nothing. */
static PyObject *weights_grow(PyObject *self, PyObject *arguments) {
    Weights *weights = (Weights *)self;
    Py_ssize_t features, labels;
    if (!PyArg_ParseTuple(arguments, "nn", &features, &labels)) return NULL;
    if (features < weights->features || labels < weights->labels) {
        PyErr_SetString(PyExc_ValueError, "weights only grow");
        return NULL;
    }
    if (weights_reserve(weights, features, labels)) return NULL;
    weights->features = features;
    weights->labels = labels;
    Py_RETURN_NONE;
}

/* Forget the columns from `labels` on. */
static void list_cut(const List *list, uint32_t labels) { *list->count = list_place(list, labels); }

/* Take growth back: what leaves is zeroed, so that it can join again. It needs no memory. */
static PyObject *weights_shrink(PyObject *self, PyObject *arguments) {
    Weights *weights = (Weights *)self;
    Py_ssize_t features, labels;
    if (!PyArg_ParseTuple(arguments, "nn", &features, &labels)) return NULL;
    if (features < 0 || labels < 0 || features > weights->features || labels > weights->labels) {
        PyErr_SetString(PyExc_ValueError, "weights cannot shrink to more than they have");
        return NULL;
    }
    size_t size = number_size(weights);
    for (Py_ssize_t i = 0; i < weights->features; i++) {
        size_t first = i < features ? (size_t)labels : 0;
        char *row = long_row(weights, i);
        if (weights->places && i >= features) row_clear(weights, i);
        else if (row) memset(row + first * size, 0, ((size_t)weights->labels - first) * size);
        else if (PLACE(weights, i)) {
            List list = list_of(weights, PLACE(weights, i));
            list_cut(&list, (uint32_t)labels);
        }
    }
    weights->features = features;
    weights->labels = labels;
    Py_RETURN_NONE;
}

/* Copy the cells that a step along g touches: out of the weights (into = 0), or into them. */
static void cells_copy(Weights *weights, const Active *x, const double *g, double *cells, int into) {
    for (Py_ssize_t i = 0; i < x->known; i++)
        for (Py_ssize_t k = 0; k < weights->labels; k++)
            if (g[k] != 0.0) {
                double *cell = weights_number(weights, x->rows[i], k); /* without a place it was 0, and is */
                if (!into) *cells = cell ? *cell : 0.0;
                else if (cell) *cell = *cells;
                cells++;
            }
}

/* cells(x, g) -> the cells that a step along g touches; cells(x, g, cells) puts them back. float64 only. */
static PyObject *weights_cells(PyObject *self, PyObject *arguments) {
    Weights *weights = (Weights *)self;
    PyObject *object, *direction, *given = NULL, *result = NULL;
    Py_buffer g, kept;
    Active x;
    double *cells;
    Py_ssize_t count = 0;
    if (!PyArg_ParseTuple(arguments, "OO|O", &object, &direction, &given)) return NULL;
    if (weights->single) return PyErr_SetString(PyExc_ValueError, "only weights of float64 give cells"), NULL;
    if (active_of(object, (size_t)weights->features, &x)) return NULL;
    if (numbers_of(direction, &g, 'd', weights->labels, 0)) {
        active_release(&x);
        return NULL;
    }
    for (Py_ssize_t k = 0; k < weights->labels; k++) count += ((const double *)g.buf)[k] != 0.0;
    count *= x.known;
    if (!given) {
        if ((result = array_new(count, &cells))) cells_copy(weights, &x, g.buf, cells, 0);
    } else if (!numbers_of(given, &kept, 'd', count, 0)) {
        cells_copy(weights, &x, g.buf, kept.buf, 1);
        PyBuffer_Release(&kept);
        Py_INCREF(Py_None);
        result = Py_None;
    }
    PyBuffer_Release(&g);
    active_release(&x);
    return result;
}

/* A new array of so many rows. */
static PyObject *rows_new(const Weights *weights, Py_ssize_t count, Py_buffer *buffer) {
    PyObject *array = PyObject_CallFunction(empty_array, "(nn)s", count, weights->labels, weights->single ? "f" : "d");
    if (array && PyObject_GetBuffer(array, buffer, PyBUF_WRITABLE)) Py_CLEAR(array);
    return array;
}

/* rows(first, stop) -> a copy of these rows. */
static PyObject *weights_rows(PyObject *self, PyObject *arguments) {
    const Weights *weights = (Weights *)self;
    Py_ssize_t first, stop;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(arguments, "nn", &first, &stop)) return NULL;
    if (first < 0 || stop < first || stop > weights->features) return PyErr_SetString(PyExc_IndexError, "there are no such rows"), NULL;
    PyObject *array = rows_new(weights, stop - first, &buffer);
    if (!array) return NULL;
    size_t bytes = (size_t)weights->labels * number_size(weights);
    for (Py_ssize_t i = first; i < stop; i++) row_spread(weights, i, (char *)buffer.buf + (size_t)(i - first) * bytes);
    PyBuffer_Release(&buffer);
    return array;
}

/* take(numbers) -> a copy of the rows of these numbers. */
static PyObject *weights_take(PyObject *self, PyObject *object) {
    const Weights *weights = (Weights *)self;
    Py_buffer numbers, buffer;
    if (numbers_of(object, &numbers, 'q', -1, 0)) return NULL;
    const int64_t *rows = numbers.buf;
    Py_ssize_t count = numbers.len / 8;
    int within = 1;
    for (Py_ssize_t i = 0; i < count; i++) within = within && (uint64_t)rows[i] < (uint64_t)weights->features;
    if (!within) PyErr_SetString(PyExc_IndexError, "there is no such row");
    PyObject *array = within ? rows_new(weights, count, &buffer) : NULL;
    if (array) {
        size_t bytes = (size_t)weights->labels * number_size(weights);
        for (Py_ssize_t i = 0; i < count; i++) row_spread(weights, rows[i], (char *)buffer.buf + (size_t)i * bytes);
        PyBuffer_Release(&buffer);
    }
    PyBuffer_Release(&numbers);
    return array;
}

/* put(first, rows): these rows from now on; rows before them stay. */
static PyObject *weights_put(PyObject *self, PyObject *arguments) {
    Weights *weights = (Weights *)self;
    PyObject *object;
    Py_ssize_t first;
    Py_buffer given;
    if (!PyArg_ParseTuple(arguments, "nO", &first, &object)) return NULL;
    if (PyObject_GetBuffer(object, &given, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return NULL;
    size_t bytes = (size_t)weights->labels * number_size(weights);
    Py_ssize_t count = given.ndim == 2 ? given.shape[0] : -1;
    int fits = count >= 0 && given.shape[1] == weights->labels && given.format && !strcmp(given.format, weights->single ? "f" : "d");
    const char *rows = given.buf;
    if (!fits || first < 0 || first > weights->features - count) PyErr_SetString(PyExc_ValueError, "these rows do not fit the weights");
    else if (weights->places) {
        if (!rows_reserve_for(weights, rows, count, bytes, weights->labels))
            for (Py_ssize_t i = 0; i < count; i++) {
                row_clear(weights, first + i);
                row_fill(weights, first + i, rows + (size_t)i * bytes, weights->labels);
            }
    } else
        for (Py_ssize_t i = 0; i < count; i++) memcpy(long_row(weights, first + i), rows + (size_t)i * bytes, bytes);
    PyBuffer_Release(&given);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *weights_theta(PyObject *self, void *closure) {
    (void)closure;
    const Weights *weights = (Weights *)self;
    if (weights->places) return PyObject_CallMethod(self, "rows", "nn", (Py_ssize_t)0, weights->features);
    return array_on((PyObject *)weights->block, weights->block->data, weights->single ? "f" : "d", weights->features,
                    weights->labels, weights->width);
}

static PyObject *weights_short_rows(PyObject *self, void *closure) {
    return (void)closure, PyBool_FromLong(((Weights *)self)->places != NULL);
}

static PyObject *weights_nbytes(PyObject *self, PyObject *none) {
    (void)none;
    const Weights *weights = (Weights *)self;
    size_t bytes = (size_t)columns_for(weights->labels) * number_size(weights);
    if (!weights->places) return PyLong_FromSize_t((size_t)weights->features * bytes);
    bytes = weights->longs.used * row_bytes(weights) + (size_t)weights->features * sizeof(uint32_t);
    for (int class = 0; class < CLASSES; class++) bytes += weights->lists[class].used * list_bytes(class);
    return PyLong_FromSize_t(bytes);
}

/* The rows of an array as numbers of rows here, and a column: -1 with an exception. */
static int column_of(const Weights *weights, PyObject *object, Py_ssize_t column, Py_buffer *rows) {
    if (numbers_of(object, rows, 'q', -1, 0)) return -1;
    int within = !weights->single && column >= 0 && column < weights->labels;
    for (Py_ssize_t i = 0; i < rows->len / 8; i++) within = within && (uint64_t)((const int64_t *)rows->buf)[i] < (uint64_t)weights->features;
    if (within) return 0;
    PyBuffer_Release(rows);
    return PyErr_SetString(PyExc_IndexError, "there is no such entry of float64"), -1;
}

/* recount(rows, column, more): L <- log(exp(L) + more) in these rows of a column; the old numbers. */
static PyObject *weights_recount(PyObject *self, PyObject *arguments) {
    Weights *weights = (Weights *)self;
    PyObject *object;
    Py_ssize_t column;
    double more, *old;
    Py_buffer rows;
    if (!PyArg_ParseTuple(arguments, "Ond", &object, &column, &more) || column_of(weights, object, column, &rows)) return NULL;
    uint32_t own = (uint32_t)column;
    Py_ssize_t count = rows.len / 8;
    int failed = weights->places && rows_prepare(weights, count, rows.buf, 0, &own, 1);
    PyObject *before = failed ? NULL : array_new(count, &old);
    for (Py_ssize_t i = 0; before && i < count; i++) {
        double *number = weights_place(weights, ((const int64_t *)rows.buf)[i], own);
        old[i] = *number;
        *number = log_of(exp_of(*number) + more);
    }
    PyBuffer_Release(&rows);
    return before;
}

/* columns(rows, one, other) -> two columns in these rows, side by side: a copy. */
static PyObject *weights_columns(PyObject *self, PyObject *arguments) {
    const Weights *weights = (Weights *)self;
    PyObject *object;
    Py_ssize_t pair[2];
    Py_buffer rows, buffer;
    if (!PyArg_ParseTuple(arguments, "Onn", &object, &pair[0], &pair[1])) return NULL;
    if (pair[1] < 0 || pair[1] >= weights->labels) return PyErr_SetString(PyExc_IndexError, "there is no such column"), NULL;
    if (column_of(weights, object, pair[0], &rows)) return NULL;
    Py_ssize_t count = rows.len / 8;
    PyObject *array = PyObject_CallFunction(empty_array, "((nn))", count, (Py_ssize_t)2);
    if (array && PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE)) Py_CLEAR(array);
    if (array) {
        for (Py_ssize_t i = 0; i < 2 * count; i++)
            ((double *)buffer.buf)[i] = weights_cell(weights, ((const int64_t *)rows.buf)[i / 2], pair[i % 2]);
        PyBuffer_Release(&buffer);
    }
    PyBuffer_Release(&rows);
    return array;
}

static inline void see_end(double number, double *least, double *most, double *wrong) {
    *least = number < *least ? number : *least;
    *most = number > *most ? number : *most;
    *wrong += number - number;
}

/* ends() -> the least and the largest number, and 0 among them; NaN where one is not finite. */
static PyObject *weights_ends(PyObject *self, PyObject *none) {
    (void)none;
    const Weights *weights = (Weights *)self;
    double least = 0.0, most = 0.0, wrong = 0.0; /* not 0 where a number is not finite */
    for (Py_ssize_t i = 0; i < weights->features; i++) {
        const void *row = long_row(weights, i);
        if (row)
            for (Py_ssize_t k = 0; k < weights->labels; k++)
                see_end(number_at(weights, row, k), &least, &most, &wrong);
        else if (PLACE(weights, i)) {
            List list = list_of(weights, PLACE(weights, i));
            for (uint32_t n = 0; n < *list.count; n++) see_end(list.values[n], &least, &most, &wrong);
        }
    }
    return Py_BuildValue("dd", least + wrong, most + wrong);
}

/* set_column(rows, column, numbers): these numbers from now on. What has no place is 0, and needs none for a 0. */
static PyObject *weights_set_column(PyObject *self, PyObject *arguments) {
    Weights *weights = (Weights *)self;
    PyObject *object, *array;
    Py_ssize_t column;
    Py_buffer rows, numbers;
    if (!PyArg_ParseTuple(arguments, "OnO", &object, &column, &array) || column_of(weights, object, column, &rows)) return NULL;
    int failed = numbers_of(array, &numbers, 'd', rows.len / 8, 0);
    if (!failed) {
        const int64_t *at = rows.buf;
        const double *values = numbers.buf;
        failed = column_prepare(weights, rows.len / 8, at, (uint32_t)column, values);
        for (Py_ssize_t i = 0; i < rows.len / 8 && !failed; i++) column_set(weights, at[i], (uint32_t)column, values[i]);
        PyBuffer_Release(&numbers);
    }
    PyBuffer_Release(&rows);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

static PyObject *weights_features(PyObject *self, void *closure) {
    return (void)closure, PyLong_FromSsize_t(((Weights *)self)->features);
}

static PyObject *weights_labels(PyObject *self, void *closure) {
    return (void)closure, PyLong_FromSsize_t(((Weights *)self)->labels);
}

static PyGetSetDef weights_getset[] = {
    {"features", weights_features, NULL, "Rows in use.", NULL},
    {"labels", weights_labels, NULL, "Columns in use.", NULL},
    {"theta", weights_theta, NULL, "The weights (features, labels): an array on the same memory until they grow, or a copy of short rows.", NULL},
    {"short_rows", weights_short_rows, NULL, "Whether rows may be short by now.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef weights_methods[] = {
    {"grow", weights_grow, METH_VARARGS, "Zero rows and columns for what is new."},
    {"shrink", weights_shrink, METH_VARARGS, "Take growth back."},
    {"scores", weights_scores, METH_O, "t = W' x."},
    {"rows", weights_rows, METH_VARARGS, "A copy of the rows from one to before another."},
    {"take", weights_take, METH_O, "A copy of the rows of these numbers."},
    {"put", weights_put, METH_VARARGS, "Rows in the place of those that are there."},
    {"cells", weights_cells, METH_VARARGS, "The cells that a step touches, to be put back."},
    {"step", weights_step, METH_VARARGS, "W <- W - eta x g'."},
    {"recount", weights_recount, METH_VARARGS, "L <- log(exp(L) + more) in these rows of a column; the old numbers."},
    {"columns", weights_columns, METH_VARARGS, "Two columns in these rows, side by side."},
    {"set_column", weights_set_column, METH_VARARGS, "Numbers in these rows of a column."},
    {"ends", weights_ends, METH_NOARGS, "The least and the largest number, and 0 among them."},
    {"nbytes", weights_nbytes, METH_NOARGS, "Bytes of the weights in use."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot weights_slots[] = {{Py_tp_new, weights_new},
                                      {Py_tp_dealloc, weights_dealloc},
                                      {Py_tp_getset, weights_getset},
                                      {Py_tp_methods, weights_methods},
                                      {Py_tp_doc, "Weights of features by labels: Weights(single=False, brief=0)."},
                                      {0, NULL}};
static PyType_Spec weights_spec = {"feedrank.learners.kernel._native.Weights", sizeof(Weights), 0, Py_TPFLAGS_DEFAULT,
                                   weights_slots};
