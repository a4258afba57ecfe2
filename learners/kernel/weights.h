/* Weights of features by labels: t = W' x, W <- W - eta x g'. float64, or float32 with the arithmetic in float64.

   Every score is a sum over the rows of x from the first to the last; the loops run over the labels side by side. */

typedef struct {
    PyObject_HEAD Block *block;
    Py_ssize_t features, labels, width, room;
    int single; /* float32 */
} Weights;

static PyTypeObject *WeightsType;

static PyObject *weights_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"single", NULL};
    int single = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|p", words, &single)) return NULL;
    Weights *weights = (Weights *)PyType_GenericAlloc(type, 0);
    if (!weights) return NULL;
    weights->single = single;
    weights->block = block_new(0, 8);
    if (!weights->block) Py_CLEAR(weights);
    return (PyObject *)weights;
}

static void weights_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)((Weights *)self)->block);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* For `look_up`. */
static Ahead weights_ahead(const Weights *weights) {
    return (Ahead){weights->block->data, (size_t)weights->width * (weights->single ? 4 : 8)};
}

/* How many columns a block of `labels` columns takes: the next multiple of a step of at most an eighth. */
static Py_ssize_t columns_for(Py_ssize_t labels) {
    if (labels <= 4) return labels;
    int bits = 0;
    while (labels >> bits) bits++;
    Py_ssize_t step = bits > 6 ? (Py_ssize_t)1 << (bits - 4) : 4;
    return (labels + step - 1) / step * step;
}

/* Room for so many rows and columns: -1 with an exception, and nothing changed, where there is none. */
static int weights_reserve(Weights *weights, Py_ssize_t features, Py_ssize_t labels) {
    Py_ssize_t width = columns_for(labels), room = weights->room, size = weights->single ? 4 : 8;
    if (features > room) {
        room = features > 2 * room ? features : 2 * room;
        if (room < 16) room = 16;
    }
    if (width == weights->width && room == weights->room) return 0;
    if (width && room > PY_SSIZE_T_MAX / 8 / width) return PyErr_NoMemory(), -1;
    Block *block = block_new((size_t)(room * width), (size_t)size);
    if (!block) return -1;
    const char *from = weights->block->data;
    char *to = block->data;
    for (Py_ssize_t i = 0; i < weights->features; i++)
        memcpy(to + i * width * size, from + i * weights->width * size, (size_t)(weights->labels * size));
    Py_DECREF(weights->block);
    weights->block = block;
    weights->width = width;
    weights->room = room;
    return 0;
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

/* Take growth back: what leaves is zeroed, so that it can join again. It needs no memory. */
static PyObject *weights_shrink(PyObject *self, PyObject *arguments) {
    Weights *weights = (Weights *)self;
    Py_ssize_t features, labels;
    if (!PyArg_ParseTuple(arguments, "nn", &features, &labels)) return NULL;
    if (features < 0 || labels < 0 || features > weights->features || labels > weights->labels) {
        PyErr_SetString(PyExc_ValueError, "weights cannot shrink to more than they have");
        return NULL;
    }
    Py_ssize_t size = weights->single ? 4 : 8;
    char *data = weights->block->data;
    for (Py_ssize_t i = 0; i < weights->features; i++) {
        Py_ssize_t first = i < features ? labels : 0;
        memset(data + (i * weights->width + first) * size, 0, (size_t)((weights->labels - first) * size));
    }
    weights->features = features;
    weights->labels = labels;
    Py_RETURN_NONE;
}

/* The rows and values of x: of a vector of this kernel, or of any object that has `rows` and `values` as arrays. */
typedef struct {
    Py_ssize_t known;
    const int64_t *rows;
    const double *values;
    Py_buffer buffers[2];
    int taken;
} Active;

static void active_release(Active *x) {
    while (x->taken) PyBuffer_Release(&x->buffers[--x->taken]);
}

static int active_of(PyObject *object, size_t features, Active *x) {
    x->taken = 0;
    if (Py_IS_TYPE(object, VectorType)) {
        const Vector *vector = (Vector *)object;
        x->known = vector->known;
        x->rows = vector->rows;
        x->values = vector->values;
    } else {
        static const char *const parts[2] = {"rows", "values"};
        for (int i = 0; i < 2; i++) {
            PyObject *array = PyObject_GetAttrString(object, parts[i]);
            Py_ssize_t count = i ? x->buffers[0].len / 8 : -1;
            int failed = !array || numbers_of(array, &x->buffers[i], i ? 'd' : 'q', count, 0);
            Py_XDECREF(array);
            if (failed) {
                active_release(x);
                return -1;
            }
            x->taken++;
        }
        x->known = x->buffers[0].len / 8;
        x->rows = x->buffers[0].buf;
        x->values = x->buffers[1].buf;
    }
    for (Py_ssize_t i = 0; i < x->known; i++)
        if ((uint64_t)x->rows[i] >= features) {
            PyErr_SetString(PyExc_IndexError, "a feature of the vector is not in the table");
            active_release(x);
            return -1;
        }
    return 0;
}

/* Four rows in one pass: every label still adds them one after the other. */
#define SCORES(NAME, TYPE)                                                                                   \
    WIDE static void NAME(const TYPE *W, Py_ssize_t width, Py_ssize_t count, const int64_t *all, const double *x, \
                     double *restrict t, Py_ssize_t labels) {                                                \
        Py_ssize_t i = 1;                                                                                    \
        if (!count) {                                                                                        \
            for (Py_ssize_t k = 0; k < labels; k++) t[k] = 0.0;                                              \
            return;                                                                                          \
        }                                                                                                    \
        const TYPE *row = W + all[0] * width;                                                                \
        for (Py_ssize_t k = 0; k < labels; k++) t[k] = 0.0 + x[0] * (double)row[k];                          \
        for (; i + 4 <= count; i += 4) {                                                                     \
            const int64_t *rows = all + i;                                                                   \
            const TYPE *a = W + rows[0] * width, *b = W + rows[1] * width;                                   \
            const TYPE *c = W + rows[2] * width, *d = W + rows[3] * width;                                   \
            double p = x[i], q = x[i + 1], r = x[i + 2], s = x[i + 3];                                       \
            if (i + 8 <= count)                                                                              \
                for (int n = 4; n < 8; n++)                                                                  \
                    for (Py_ssize_t k = 0; k < labels; k += 64 / (Py_ssize_t)sizeof(TYPE))                   \
                        PREFETCH(W + rows[n] * width + k);                                                   \
            for (Py_ssize_t k = 0; k < labels; k++)                                                          \
                t[k] = (((t[k] + p * (double)a[k]) + q * (double)b[k]) + r * (double)c[k]) + s * (double)d[k];\
        }                                                                                                    \
        for (; i < count; i++) {                                                                             \
            row = W + all[i] * width;                                                                        \
            for (Py_ssize_t k = 0; k < labels; k++) t[k] += x[i] * (double)row[k];                           \
        }                                                                                                    \
    }
SCORES(scores_double, double)
SCORES(scores_single, float)

static void scores_of(const Weights *weights, Py_ssize_t count, const int64_t *rows, const double *values, double *t) {
    if (weights->single) scores_single(weights->block->data, weights->width, count, rows, values, t, weights->labels);
    else scores_double(weights->block->data, weights->width, count, rows, values, t, weights->labels);
}

/* t = W' x, a new array. */
static PyObject *weights_scores(PyObject *self, PyObject *object) {
    const Weights *weights = (Weights *)self;
    double *t;
    Active x;
    if (active_of(object, (size_t)weights->features, &x)) return NULL;
    PyObject *scores = array_new(weights->labels, &t);
    if (scores) scores_of(weights, x.known, x.rows, x.values, t);
    active_release(&x);
    return scores;
}

/* The nearest float32; beyond its range, its end. */
static inline float as_single(double number) {
    return (float)(number < -FLT_MAX ? -FLT_MAX : number > FLT_MAX ? FLT_MAX : number);
}

#define AS_DOUBLE(number) (number)
#define CHANGED 64 /* so many columns at a time, mostly all: a step needs no memory */
#define STEP(NAME, TYPE, AS)                                                                                   \
    static void NAME(const Weights *weights, Py_ssize_t count, const int64_t *rows, const double *values,      \
                     const double *g, double eta) {                                                            \
        Py_ssize_t columns[CHANGED], changed = 0, from = 0;                                                    \
        double deltas[CHANGED];                                                                                \
        do {                                                                                                   \
            for (changed = 0; from < weights->labels && changed < CHANGED; from++)                             \
                if (g[from] != 0.0) columns[changed] = from, deltas[changed++] = eta * g[from];                \
            for (Py_ssize_t i = 0; i < count && changed; i++) {                                                \
                TYPE *row = (TYPE *)weights->block->data + rows[i] * weights->width;                           \
                for (Py_ssize_t k = 0; k < changed; k++)                                                       \
                    row[columns[k]] = AS((double)row[columns[k]] - deltas[k] * values[i]);                     \
            }                                                                                                  \
        } while (from < weights->labels);                                                                      \
    }
STEP(step_double, double, AS_DOUBLE)
STEP(step_single, float, as_single)

/* All columns at a time, where many change: where g is 0 a weight stays what it is, for no weight is ever -0. */
WIDE static void step_wide(const Weights *weights, Py_ssize_t count, const int64_t *rows, const double *values,
                           const double *restrict g, double eta) {
    for (Py_ssize_t i = 0; i < count; i++) {
        double *restrict row = (double *)weights->block->data + rows[i] * weights->width, value = values[i];
        for (Py_ssize_t k = 0; k < weights->labels; k++) row[k] -= (eta * g[k]) * value;
    }
}

static void step_along(Weights *weights, Py_ssize_t count, const int64_t *rows, const double *values, const double *g,
                       double eta) {
    if (weights->single) step_single(weights, count, rows, values, g, eta);
    else {
        Py_ssize_t changed = 0;
        for (Py_ssize_t k = 0; k < weights->labels; k++) changed += g[k] != 0.0;
        if (4 * changed > weights->labels) step_wide(weights, count, rows, values, g, eta);
        else step_double(weights, count, rows, values, g, eta);
    }
}

/* W <- W - eta x g', in the rows of x and the columns in which g is not 0. */
static PyObject *weights_step(PyObject *self, PyObject *arguments) {
    Weights *weights = (Weights *)self;
    PyObject *object, *direction;
    double eta;
    Py_buffer g;
    Active x;
    if (!PyArg_ParseTuple(arguments, "OOd", &object, &direction, &eta)) return NULL;
    if (active_of(object, (size_t)weights->features, &x)) return NULL;
    if (numbers_of(direction, &g, 'd', weights->labels, 0)) {
        active_release(&x);
        return NULL;
    }
    step_along(weights, x.known, x.rows, x.values, g.buf, eta);
    PyBuffer_Release(&g);
    active_release(&x);
    Py_RETURN_NONE;
}

/* Copy the cells that a step along g touches: out of the weights (into = 0), or into them. */
static void cells_copy(Weights *weights, const Active *x, const double *g, double *cells, int into) {
    double *W = weights->block->data;
    for (Py_ssize_t i = 0; i < x->known; i++)
        for (Py_ssize_t k = 0; k < weights->labels; k++)
            if (g[k] != 0.0) {
                double *cell = W + x->rows[i] * weights->width + k;
                if (into) *cell = *cells++;
                else *cells++ = *cell;
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

static PyObject *weights_theta(PyObject *self, void *closure) {
    (void)closure;
    const Weights *weights = (Weights *)self;
    return array_on((PyObject *)weights->block, weights->block->data, weights->single ? "f" : "d", weights->features,
                    weights->labels, weights->width);
}

static PyObject *weights_nbytes(PyObject *self, PyObject *none) {
    (void)none;
    const Weights *weights = (Weights *)self;
    return PyLong_FromSsize_t(weights->features * columns_for(weights->labels) * (weights->single ? 4 : 8));
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
    {"theta", weights_theta, NULL, "The weights (features, labels) as an array on the same memory, until they grow.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef weights_methods[] = {
    {"grow", weights_grow, METH_VARARGS, "Zero rows and columns for what is new."},
    {"shrink", weights_shrink, METH_VARARGS, "Take growth back."},
    {"scores", weights_scores, METH_O, "t = W' x."},
    {"cells", weights_cells, METH_VARARGS, "The cells that a step touches, to be put back."},
    {"step", weights_step, METH_VARARGS, "W <- W - eta x g'."},
    {"nbytes", weights_nbytes, METH_NOARGS, "Bytes of the weights in use."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot weights_slots[] = {{Py_tp_new, weights_new},
                                      {Py_tp_dealloc, weights_dealloc},
                                      {Py_tp_getset, weights_getset},
                                      {Py_tp_methods, weights_methods},
                                      {Py_tp_doc, "Weights of features by labels: Weights(single=False)."},
                                      {0, NULL}};
static PyType_Spec weights_spec = {"feedrank.learners.kernel._native.Weights", sizeof(Weights), 0, Py_TPFLAGS_DEFAULT,
                                   weights_slots};
