/* What Python calls of lists.h. */

/* A matrix of so many rows (-1: any) in which rows follow each other; -1 with an exception if it is none. */
static int matrix_of_numbers(PyObject *object, Py_buffer *buffer, Py_ssize_t rows, Py_ssize_t columns, int writable) {
    if (numbers_of(object, buffer, 'd', -1, writable)) return -1;
    if (buffer->ndim == 2 && (rows < 0 || buffer->shape[0] == rows) && (columns < 0 || buffer->shape[1] == columns)) return 0;
    PyErr_SetString(PyExc_ValueError, "the shapes do not fit");
    PyBuffer_Release(buffer);
    return -1;
}

static PyObject *list_inputs(PyObject *module, PyObject *object) {
    (void)module;
    Array values;
    double *C;
    if (array_get(object, &values, 0)) return NULL;
    PyObject *array = matrix_new(values.rows, 2 * values.columns, &C);
    void *room = array ? malloc(inputs_room(values.rows, values.columns) + 1) : NULL;
    if (array && !room) {
        PyErr_NoMemory();
        Py_CLEAR(array);
    }
    if (array && values.rows && values.columns) inputs_of(values.numbers, C, room, values.rows, values.columns);
    free(room);
    array_release(&values);
    return array;
}

/* Whether all of these features have a row among `features`; an exception if not. */
static int rows_fit(const int64_t *rows, Py_ssize_t count, Py_ssize_t features) {
    for (Py_ssize_t j = 0; j < count; j++)
        if (rows[j] < 0 || rows[j] >= features) {
            PyErr_SetString(PyExc_IndexError, "there is no such feature");
            return 0;
        }
    return 1;
}

static PyObject *list_scores(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *objects[5], *made[3] = {NULL, NULL, NULL}, *result = NULL;
    Py_buffer all[5]; /* C, rows, w, a, shares */
    int taken = 0, failed = 0;
    if (!PyArg_ParseTuple(arguments, "OOOOO", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4])) return NULL;
    for (; !failed && taken < 5; taken += !failed)
        failed = taken == 0   ? matrix_of_numbers(objects[0], &all[0], -1, -1, 0)
                 : taken == 1 ? numbers_of(objects[1], &all[1], 'q', all[0].shape[1] / 2, 0)
                 : taken == 2 ? matrix_of_numbers(objects[2], &all[2], -1, SCORERS, 0)
                              : numbers_of(objects[taken], &all[taken], 'd', taken == 3 ? SCORERS : POOLED, 0);
    if (!failed && rows_fit(all[1].buf, all[1].shape[0], all[2].shape[0] / 2)) {
        Py_ssize_t count = all[0].shape[0], inputs = 2 * all[1].shape[0];
        double *parts[3] = {NULL, NULL, NULL}, *w = malloc((size_t)(inputs * SCORERS + 1) * sizeof *w);
        const int64_t *rows = all[1].buf;
        made[0] = matrix_new(SCORERS, count, &parts[0]);
        made[1] = matrix_new(POOLED, count, &parts[1]);
        made[2] = array_new(count, &parts[2]);
        if (!w) PyErr_NoMemory();
        if (w && made[0] && made[1] && made[2]) {
            for (Py_ssize_t j = 0; j < inputs / 2; j++)
                memcpy(w + j * 2 * SCORERS, (double *)all[2].buf + rows[j] * 2 * SCORERS, 2 * SCORERS * sizeof *w);
            score_items(all[0].buf, w, parts[0], count, inputs);
            if (count) pool_scores(parts[0], all[3].buf, all[4].buf, parts[1], parts[2], count);
            result = PyTuple_Pack(3, made[0], made[1], made[2]);
        }
        for (int i = 0; i < 3; i++) Py_XDECREF(made[i]);
        free(w);
    }
    while (taken) PyBuffer_Release(&all[--taken]);
    return result;
}

/* list_round((C, values, rows), (gain, grades, discounts), (t, E), weight, state, gaps) -> (loss, gaps). */
static PyObject *list_round(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *objects[16], *state, *result = NULL;
    Py_buffer all[16]; /* C, values, rows, gain, grades, discounts, t, E, w, r, A, coin, a, S, losses, shares */
    double weight, gaps;
    int taken = 0, failed = 0, wide = 0;
    Py_ssize_t count = 0, features = 0, known = 0;
    if (!PyArg_ParseTuple(arguments, "(OOO)(OOO)(OO)dO!d", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4],
                          &objects[5], &objects[6], &objects[7], &weight, &PyTuple_Type, &state, &gaps))
        return NULL;
    if (PyTuple_Size(state) != 8) {
        PyErr_SetString(PyExc_ValueError, "eight parts are needed");
        return NULL;
    }
    for (int i = 0; i < 8; i++) objects[8 + i] = PyTuple_GetItem(state, i);
    for (; !failed && taken < 16; taken += !failed) {
        PyObject *object = objects[taken];
        Py_buffer *buffer = &all[taken];
        switch (taken) {
        case 0: failed = matrix_of_numbers(object, buffer, -1, -1, 0); break;
        case 1:
            count = all[0].shape[0], features = all[0].shape[1] / 2;
            failed = matrix_of_numbers(object, buffer, count, features, 0);
            break;
        case 2: failed = numbers_of(object, buffer, 'q', features, 0); break;
        case 3:
        case 4: failed = numbers_of(object, buffer, 'd', count, 0); break;
        case 5: failed = numbers_of(object, buffer, 'd', count < TOP ? count : TOP, 0); break;
        case 6: failed = matrix_of_numbers(object, buffer, SCORERS, count, 0); break;
        case 7: failed = matrix_of_numbers(object, buffer, POOLED, count, 0); break;
        case 8: failed = matrix_of_numbers(object, buffer, -1, SCORERS, 1), known = failed ? 0 : buffer->shape[0]; break;
        case 9: failed = matrix_of_numbers(object, buffer, -1, 3, 1); break;
        case 10: failed = numbers_of(object, buffer, 'd', -1, 1), wide = !failed && buffer->ndim == 1; break;
        case 11: failed = matrix_of_numbers(object, buffer, known / 2, 4, 1); break;
        default:
            failed = numbers_of(object, buffer, 'd', taken == 12 ? SCORERS : taken == 13 ? SCORERS * SCORERS : POOLED, 1);
        }
    }
    if (!failed && (!count || known % 2 || all[10].shape[0] != known || (!wide && all[10].shape[1] != known) ||
                    all[9].shape[0] != (wide ? 0 : known)))
        PyErr_SetString(PyExc_ValueError, "the shapes do not fit");
    else if (!failed && rows_fit(all[2].buf, features, known / 2)) {
        double *room = malloc((round_room(count, features, known) + 1) * sizeof *room);
        ptrdiff_t *places = malloc((size_t)(2 * features + 1) * sizeof *places);
        if (!room || !places) PyErr_NoMemory();
        else {
            ListState parts = {all[8].buf,  all[9].buf,  all[10].buf, all[11].buf, all[12].buf,
                               all[13].buf, all[14].buf, all[15].buf, known,       wide};
            LessonOfList lesson = {all[0].buf, all[1].buf, all[2].buf, all[3].buf, all[4].buf,         all[5].buf,
                                   all[6].buf, all[7].buf, count,      features,   all[5].shape[0]};
            double loss = learn_list(&parts, &lesson, weight, &gaps, room, places);
            result = Py_BuildValue("dd", loss, gaps);
        }
        free(room);
        free(places);
    }
    while (taken) PyBuffer_Release(&all[--taken]);
    return result;
}

static PyObject *gains(PyObject *module, PyObject *object) {
    (void)module;
    Array grades;
    double *numbers;
    if (array_get(object, &grades, 0)) return NULL;
    PyObject *array = array_new(grades.rows * grades.columns, &numbers);
    if (array) gains_of(grades.numbers, numbers, grades.rows * grades.columns);
    array_release(&grades);
    return array;
}

/* ndcg_loss(order, gains, discounts). */
static PyObject *order_loss(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *objects[3], *result = NULL;
    Py_buffer all[3];
    int taken = 0, failed = 0;
    if (!PyArg_ParseTuple(arguments, "OOO", &objects[0], &objects[1], &objects[2])) return NULL;
    for (; !failed && taken < 3; taken += !failed) failed = numbers_of(objects[taken], &all[taken], taken ? 'd' : 'q', -1, 0);
    if (!failed) {
        Py_ssize_t count = all[1].len / 8, most = all[2].len / 8 < count ? all[2].len / 8 : count;
        double *room = malloc((size_t)(count + most + 1) * sizeof *room);
        if (!room) PyErr_NoMemory();
        else if (all[0].len / 8 < most) PyErr_SetString(PyExc_ValueError, "the shapes do not fit");
        else if (rows_fit(all[0].buf, most, count))
            result = PyFloat_FromDouble(ndcg_loss(all[0].buf, all[1].buf, all[2].buf, room, count, most));
        free(room);
    }
    while (taken) PyBuffer_Release(&all[--taken]);
    return result;
}

static PyObject *list_scaled(PyObject *module, PyObject *object) {
    (void)module;
    Array values;
    double *numbers;
    if (array_get(object, &values, 0)) return NULL;
    PyObject *array = matrix_new(values.rows, values.columns, &numbers);
    double *room = array ? malloc((size_t)(2 * values.columns + 1) * sizeof *room) : NULL;
    if (array && !room) {
        PyErr_NoMemory();
        Py_CLEAR(array);
    }
    if (array && values.rows) scale_columns(values.numbers, numbers, room, values.rows, values.columns);
    free(room);
    array_release(&values);
    return array;
}
