/* What Python calls of core/forest.c: see forest.py. A forest is a tuple of arrays, which stay Python's. */

#include "../core/forest.h"

enum { FOREST_ARRAYS = 15 };

typedef struct {
    Forest forest;
    Py_buffer buffers[FOREST_ARRAYS];
    int taken;
} ForestView;

static void forest_release(ForestView *view) {
    while (view->taken) PyBuffer_Release(&view->buffers[--view->taken]);
}

/* Show the arrays of a tuple to the core: -1 with an exception. `inserts` tells that there must be room for one more row. */
static int forest_take(PyObject *arrays, Py_ssize_t features, int inserts, ForestView *view) {
    static const char formats[] = "fBfqddiBqfdqqqd";
    Forest *forest = &view->forest;
    view->taken = 0;
    if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != FOREST_ARRAYS + 1) goto wrong;
    for (int i = 0; i < FOREST_ARRAYS; i++) {
        Py_buffer *own = &view->buffers[i];
        if (PyObject_GetBuffer(PyTuple_GetItem(arrays, i), own, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)) goto failed;
        view->taken++;
        char kind = own->format ? own->format[0] : 'B';
        if (kind != formats[i] && !(formats[i] == 'q' && kind == 'l')) goto wrong;
    }
    Py_buffer *b = view->buffers;
    forest->X = b[0].buf, forest->B = b[1].buf, forest->edges = b[2].buf, forest->Y = b[3].buf, forest->weights = b[4].buf;
    forest->F = b[5].buf, forest->gradients = b[6].buf, forest->code = b[7].buf, forest->splits = b[8].buf;
    forest->cuts = b[9].buf, forest->leaves = b[10].buf, forest->depths = b[11].buf, forest->sizes = b[12].buf;
    forest->clock = b[13].buf, forest->numbers = b[14].buf;
    forest->link = (int)PyLong_AsLong(PyTuple_GetItem(arrays, FOREST_ARRAYS));
    if (PyErr_Occurred()) goto failed;
    Py_ssize_t width = b[1].ndim == 2 ? b[1].shape[0] : -1, room = width < 0 ? 0 : b[1].shape[1];
    if (room < 1 || b[5].ndim != 2) goto wrong;
    forest->features = features, forest->room = room, forest->columns = b[5].shape[1];
    forest->lanes = forest_lanes(forest->columns);
    const Py_ssize_t cells = width * room, trees = (TREES + 1) * DEPTH, lengths[FOREST_ARRAYS] = {
        4 * cells, cells, 4 * width * EDGES, 8 * room, 8 * room, 8 * room * forest->columns, 4 * room * forest->lanes, room, 8 * trees,
        4 * trees, 8 * TREES * LEAVES * forest->columns, 8 * TREES, 8 * TREES * LEAVES, 8 * CLOCK, 8 * NUMBERS};
    for (int i = 0; i < FOREST_ARRAYS; i++)
        if (b[i].len != lengths[i]) goto wrong;
    int64_t events = forest->clock[EVENTS];
    if (forest->columns < 1 || features < 0 || features > width || events < 0 || (events < WINDOW ? events : WINDOW) > room) goto wrong;
    if (!inserts || events % WINDOW < room) return 0;
wrong:
    PyErr_SetString(PyExc_ValueError, "these are not the arrays of a forest");
failed:
    forest_release(view);
    return -1;
}

/* forest_scores(forest, x) -> the scores of a number for every feature. */
static PyObject *forest_scores_of(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *arrays, *numbers, *result = NULL;
    ForestView view;
    Py_buffer x;
    double *scores;
    if (!PyArg_ParseTuple(arguments, "OO", &arrays, &numbers)) return NULL;
    if (PyObject_GetBuffer(numbers, &x, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return NULL;
    if (!forest_take(arrays, x.len / 4, 0, &view)) {
        if ((result = array_new(view.forest.columns, &scores))) forest_scores(&view.forest, x.buf, scores);
        forest_release(&view);
    }
    PyBuffer_Release(&x);
    return result;
}

/* forest_insert(forest, x, truth, weight): one more row. */
static PyObject *forest_insert_row(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *arrays, *numbers;
    long long truth;
    double weight;
    ForestView view;
    Py_buffer x;
    if (!PyArg_ParseTuple(arguments, "OOLd", &arrays, &numbers, &truth, &weight)) return NULL;
    if (PyObject_GetBuffer(numbers, &x, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return NULL;
    int failed = forest_take(arrays, x.len / 4, 1, &view);
    if (!failed) {
        forest_insert(&view.forest, x.buf, truth, weight);
        forest_release(&view);
    }
    PyBuffer_Release(&x);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* forest_due(forest, features) -> the steps that are due. */
static PyObject *forest_due_steps(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *arrays;
    Py_ssize_t features;
    ForestView view;
    if (!PyArg_ParseTuple(arguments, "On", &arrays, &features) || forest_take(arrays, features, 0, &view)) return NULL;
    long long due = forest_due(&view.forest);
    forest_release(&view);
    return PyLong_FromLongLong(due);
}

/* forest_step(forest, features): one step of growth. */
static PyObject *forest_take_step(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *arrays;
    Py_ssize_t features;
    ForestView view;
    if (!PyArg_ParseTuple(arguments, "On", &arrays, &features) || forest_take(arrays, features, 0, &view)) return NULL;
    void *scratch = malloc(forest_scratch(view.forest.columns));
    if (scratch) forest_step(&view.forest, scratch);
    else PyErr_NoMemory();
    free(scratch);
    forest_release(&view);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* A forest among the experts of a round: bound to its arrays, with memory for x and for growing. */
typedef struct {
    ForestView view;
    float *x;
    void *scratch;
} BoundForest;

static void bound_forest_release(BoundForest *own) {
    forest_release(&own->view);
    free(own->x);
    free(own->scratch);
    own->x = NULL, own->scratch = NULL;
}

/* -1 with an exception. */
static int bound_forest_take(BoundForest *own, PyObject *arrays, Py_ssize_t labels) {
    if (forest_take(arrays, 0, 0, &own->view)) return -1;
    const Forest *forest = &own->view.forest;
    if (forest->columns != labels && !(forest->link == SOFTMAX && labels <= 2 && forest->columns == 1))
        return PyErr_SetString(PyExc_ValueError, "the trees have other columns than labels"), -1;
    own->x = malloc((size_t)(own->view.buffers[1].shape[0] + 1) * sizeof *own->x);
    own->scratch = malloc(forest_scratch(forest->columns));
    return own->x && own->scratch ? 0 : (PyErr_NoMemory(), -1);
}

/* Whether there is room for so many features, and for one more row. */
static int bound_forest_has_room(const BoundForest *own, Py_ssize_t features) {
    const Forest *forest = &own->view.forest;
    return features <= own->view.buffers[1].shape[0] && forest->clock[EVENTS] % WINDOW < forest->room;
}

/* Raw values by row of the table, whose first `bias` are no features. */
static void bound_forest_show(BoundForest *own, Py_ssize_t features, Py_ssize_t bias, const int64_t *rows, const double *values,
                              Py_ssize_t count) {
    own->view.forest.features = features;
    for (Py_ssize_t j = 0; j < features; j++) own->x[j] = 0.0f;
    for (Py_ssize_t i = bias; i < count; i++) {
        double value = values[i] < -3e38 ? -3e38 : values[i] > 3e38 ? 3e38 : values[i];
        own->x[rows[i] - bias] = (float)value + 0.0f;
    }
}

/* One score a label. */
static void bound_forest_scores(const BoundForest *own, Py_ssize_t labels, double *z) {
    const Forest *forest = &own->view.forest;
    if (forest->link != SOFTMAX || labels > 2) return forest_scores(forest, own->x, z);
    double f;
    forest_scores(forest, own->x, &f);
    z[0] = -0.5 * f;
    if (labels == 2) z[1] = 0.5 * f;
}

/* One event on which the bits of `mask` are right. */
static void bound_forest_learn(BoundForest *own, Py_ssize_t labels, const char *mask, double weight) {
    Forest *forest = &own->view.forest;
    int64_t truth = 0;
    if (forest->link == SOFTMAX && labels <= 2) truth = labels == 2 && mask[1];
    else
        for (Py_ssize_t k = 0; k < labels; k++) truth |= (int64_t)(mask[k] != 0) << k;
    forest_insert(forest, own->x, truth, weight);
    for (int64_t due = forest_due(forest); due > 0; due--) forest_step(forest, own->scratch);
}
