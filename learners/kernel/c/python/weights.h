/* Weights of features by labels: t = W' x, W <- W - eta x g'. float64, or float32 with the arithmetic in float64.

   Every score is a sum over the rows of x from the first to the last; the loops run over the labels side by side. */

static PyTypeObject *WeightsType;

/* For `look_up`. */
static Ahead weights_ahead(const Weights *weights) {
    if (!weights->places) return (Ahead){weights->block->data, row_bytes(weights), NULL, NULL};
    return (Ahead){weights->block->data, row_bytes(weights), &weights->places, weights->lists};
}

/* How many columns a block of `labels` columns takes: the next multiple of a step of at most an eighth. */
static Py_ssize_t columns_for(Py_ssize_t labels) {
    if (labels <= 4) return labels;
    int bits = 0;
    while (labels >> bits) bits++;
    Py_ssize_t step = bits > 6 ? (Py_ssize_t)1 << (bits - 4) : 4;
    return (labels + step - 1) / step * step;
}

/* Let rows be lists where they can, for columns that have become many: -1 with an exception, and nothing changed. */
static int weights_shorten(Weights *weights, Py_ssize_t features, Py_ssize_t width) {
    Weights next = *weights;
    size_t before = row_bytes(weights);
    const char *from = weights->block->data;
    next.width = width;
    next.placed = features < 16 ? 16 : (size_t)features;
    next.places = block_new(next.placed, sizeof(uint32_t));
    if (!next.places || rows_reserve_for(&next, from, weights->features, before, weights->labels)) {
        Py_XDECREF((PyObject *)next.places);
        for (int class = 0; class < CLASSES; class++) Py_XDECREF((PyObject *)next.lists[class].block);
        return -1;
    }
    for (Py_ssize_t i = 0; i < weights->features; i++) row_fill(&next, i, from + (size_t)i * before, weights->labels);
    Py_DECREF(weights->block);
    memcpy((char *)weights + sizeof(PyObject), (char *)&next + sizeof(PyObject), sizeof next - sizeof(PyObject));
    return 0;
}

/* `weights_reserve` where rows may be lists. */
static int places_reserve(Weights *weights, Py_ssize_t features, Py_ssize_t width) {
    if ((size_t)features > weights->placed) {
        size_t placed = (size_t)features > 2 * weights->placed ? (size_t)features : 2 * weights->placed;
        Block *places = block_new(placed, sizeof(uint32_t));
        if (!places) return -1;
        memcpy(places->data, weights->places->data, weights->placed * sizeof(uint32_t));
        Py_DECREF(weights->places);
        weights->places = places;
        weights->placed = placed;
    }
    if (width <= weights->width) return 0; /* rows that are free need their beginning */
    size_t after = (size_t)width * number_size(weights), before = row_bytes(weights);
    Block *block = block_new(weights->longs.room, after);
    if (!block) return -1;
    for (size_t i = 0; i < weights->longs.used; i++)
        memcpy((char *)block->data + i * after, (char *)weights->block->data + i * before, before);
    Py_DECREF(weights->block);
    weights->block = weights->longs.block = block;
    weights->width = width;
    return 0;
}

/* Room for so many rows and columns: -1 with an exception, and nothing changed, where there is none. */
static int weights_reserve(Weights *weights, Py_ssize_t features, Py_ssize_t labels) {
    Py_ssize_t width = columns_for(labels), room = weights->room, size = weights->single ? 4 : 8;
    if (features > room) {
        room = features > 2 * room ? features : 2 * room;
        if (room < 16) room = 16;
    }
    if (weights->places) return places_reserve(weights, features, width);
    if (weights->brief && width > weights->brief) return weights_shorten(weights, features, width);
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

/* The same where rows may be lists: long ones four at a time, others one by one. Rows of zeros add nothing. */
#define LONG_ROW(TYPE, place) ((const TYPE *)weights->block->data + (Py_ssize_t)place_number(place) * weights->width)
#define BRIEF_SCORES(NAME, TYPE)                                                                             \
    WIDE static void NAME(const Weights *weights, Py_ssize_t count, const int64_t *rows, const double *x, double *restrict t) { \
        Py_ssize_t labels = weights->labels, i = 0;                                                          \
        const uint32_t *places = weights->places->data;                                                      \
        for (Py_ssize_t k = 0; k < labels; k++) t[k] = 0.0;                                                  \
        while (i < count) {                                                                                  \
            uint32_t place = places[rows[i]];                                                                \
            if (i + 4 <= count && IS_LONG(place) && IS_LONG(places[rows[i + 1]]) && IS_LONG(places[rows[i + 2]]) && \
                IS_LONG(places[rows[i + 3]])) {                                                              \
                const TYPE *a = LONG_ROW(TYPE, place), *b = LONG_ROW(TYPE, places[rows[i + 1]]);             \
                const TYPE *c = LONG_ROW(TYPE, places[rows[i + 2]]), *d = LONG_ROW(TYPE, places[rows[i + 3]]); \
                double p = x[i], q = x[i + 1], r = x[i + 2], s = x[i + 3];                                   \
                i += 4;                                                                                      \
                for (Py_ssize_t n = i; n < i + 4 && n < count; n++)                                          \
                    for (Py_ssize_t k = 0; IS_LONG(places[rows[n]]) && k < labels; k += 64 / (Py_ssize_t)sizeof(TYPE)) \
                        PREFETCH(LONG_ROW(TYPE, places[rows[n]]) + k);                                       \
                for (Py_ssize_t k = 0; k < labels; k++)                                                      \
                    t[k] = (((t[k] + p * (double)a[k]) + q * (double)b[k]) + r * (double)c[k]) + s * (double)d[k]; \
                continue;                                                                                    \
            }                                                                                                \
            double value = x[i++];                                                                           \
            if (IS_LONG(place)) {                                                                            \
                const TYPE *row = LONG_ROW(TYPE, place);                                                     \
                for (Py_ssize_t k = 0; k < labels; k++) t[k] += value * (double)row[k];                      \
            } else if (place) {                                                                              \
                List list = list_of(weights, place);                                                         \
                for (uint32_t n = 0; n < *list.count; n++) t[list.columns[n]] += value * list.values[n];     \
            }                                                                                                \
        }                                                                                                    \
    }
BRIEF_SCORES(brief_double, double)
BRIEF_SCORES(brief_single, float)

static void scores_of(const Weights *weights, Py_ssize_t count, const int64_t *rows, const double *values, double *t) {
    if (weights->places && weights->single) brief_single(weights, count, rows, values, t);
    else if (weights->places) brief_double(weights, count, rows, values, t);
    else if (weights->single) scores_single(weights->block->data, weights->width, count, rows, values, t, weights->labels);
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
                TYPE *row = long_row(weights, rows[i]);                                                        \
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
        double *restrict row = long_row(weights, rows[i]), value = values[i];
        for (Py_ssize_t k = 0; k < weights->labels; k++) row[k] -= (eta * g[k]) * value;
    }
}

static void step_along(Weights *weights, Py_ssize_t count, const int64_t *rows, const double *values, const double *g,
                       double eta) {
    if (weights->places && brief_step(weights, count, rows, values, g, eta)) return;
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
    int failed = weights_prepare(weights, x.known, x.rows, 0, g.buf);
    if (!failed) step_along(weights, x.known, x.rows, x.values, g.buf, eta);
    PyBuffer_Release(&g);
    active_release(&x);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
