/* The table of the features: names, counts, and x of an instance: look up, idf, unit length, bias.

     idf   x_j <- x_j (1 + (log(1 + n) - log(1 + n_j)))      unit  x <- x / max|x|, then x / ||x||

   A vector is one block of neighbouring rows, which join together and to which no text leads; no idf, and unit by itself.
   Rows ascend, unknown features follow in the order in which they were written, sums run from the first to the last. */

typedef struct {
    PyObject_HEAD Py_ssize_t known, unknown; /* `known` rows first, then the unknown features */
    int64_t *rows;                           /* known + unknown: the latter are set when they join */
    double *values;
    uint64_t *hashes; /* of the unknown */
    size_t *ends;
    char *text;
    void *memory;
    PyObject *shared; /* the vector whose memory this one shows, once its features have joined */
    double square;    /* ||x||^2, all features; below 0: not computed yet */
    Py_ssize_t zeros_known, zeros_unknown; /* of those that were named, how many are 0 */
    Py_ssize_t width, late; /* parts of a vector that are among the features; of these, the last of the unknown ones */
} Vector;

typedef struct {
    PyObject_HEAD Names names;
    Block *counts; /* int64, one a name */
    size_t room;
    int64_t events;
    int idf, unit, bias;
} Table;

static PyTypeObject *VectorType, *TableType;

#define LOGS 65536
static double logs[LOGS]; /* log(1 + n) */

static inline double log_1_plus(int64_t n) { return n < LOGS ? logs[n] : log_of(1.0 + (double)n); }

static void vector_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(((Vector *)self)->memory);
    Py_XDECREF(((Vector *)self)->shared);
    PyObject_Free(self);
    Py_DECREF(type);
}

static Vector *vector_new(size_t known, size_t unknown, size_t text) {
    Vector *x = PyObject_New(Vector, VectorType);
    if (!x) return NULL;
    size_t all = known + unknown;
    memset((char *)x + sizeof(PyObject), 0, sizeof *x - sizeof(PyObject));
    x->memory = malloc(16 * all + 16 * unknown + text + 1);
    if (!x->memory) {
        Py_DECREF(x);
        return (Vector *)PyErr_NoMemory();
    }
    x->known = (Py_ssize_t)known;
    x->unknown = (Py_ssize_t)unknown;
    x->rows = x->memory;
    x->values = (double *)(x->rows + all);
    x->hashes = (uint64_t *)(x->values + all);
    x->ends = (size_t *)(x->hashes + unknown);
    x->text = (char *)(x->ends + unknown);
    x->square = -1.0;
    return x;
}

static double vector_square(Vector *x) {
    if (x->square < 0.0) {
        Py_ssize_t count = x->known + x->unknown;
        double sum = count ? x->values[0] * x->values[0] : 0.0;
        for (Py_ssize_t i = 1; i < count; i++) sum += x->values[i] * x->values[i];
        x->square = sum;
    }
    return x->square;
}

typedef struct {
    uint32_t row, entry;
} Place;

/* By row, eight bits at a time; what has equal rows keeps its order. `spare` is as long as `places`. */
static Place *sort_places(Place *places, Place *spare, size_t count, uint32_t largest) {
    for (int shift = 0; shift < 32 && (largest >> shift); shift += 8) {
        uint32_t starts[257] = {0};
        for (size_t i = 0; i < count; i++) starts[((places[i].row >> shift) & 255) + 1]++;
        for (int i = 0; i < 256; i++) starts[i + 1] += starts[i];
        for (size_t i = 0; i < count; i++) spare[starts[(places[i].row >> shift) & 255]++] = places[i];
        Place *sorted = spare;
        spare = places;
        places = sorted;
    }
    return places;
}

/* Unit length of values [first, count) without those of [at, at + width), which are behind `first`. */
static void scale(double *values, size_t first, size_t count, size_t at, size_t width) {
    double top = 0.0, sum = 0.0;
    for (size_t i = first; i < count; i++) {
        if (i == at) i += width;
        if (i < count) top = fabs(values[i]) > top ? fabs(values[i]) : top;
    }
    if (!(top > 0.0)) return;
    for (size_t i = first, begun = 0; i < count; i++) {
        if (i == at) i += width;
        if (i >= count) break;
        values[i] /= top;
        sum = begun ? sum + values[i] * values[i] : values[i] * values[i];
        begun = 1;
    }
    double norm = sqrt(sum);
    for (size_t i = first; i < count; i++) {
        if (i == at) i += width;
        if (i < count) values[i] /= norm;
    }
}

/* Rows that will be read next, `bytes` apart: memory is asked for them as soon as a name's number is there. */
typedef struct {
    const char *rows;
    size_t bytes;
    Block *const *places; /* where weights keep the places of rows that may be lists (rows.h), else NULL */
    const Store *lists;
} Ahead;

static void fetch_row(const Ahead *ahead, size_t number) {
    if (ahead->places) {
        /* This is read, not only asked for: of the weights as they are now, which may have fewer rows than the table. */
        const Block *places = *ahead->places;
        uint32_t place = number < places->bytes / sizeof place ? ((const uint32_t *)places->data)[number] : 0;
        if (!IS_LONG(place)) {
            int class = place_class(place);
            if (class < 0) return;
            const char *list = (const char *)ahead->lists[class].block->data + place_number(place) * list_bytes(class);
            for (size_t byte = 0; byte < list_bytes(class); byte += 64) PREFETCH_FAR(list + byte);
            return;
        }
        number = place_number(place);
    }
    for (size_t byte = 0; byte < ahead->bytes; byte += 64) PREFETCH_FAR(ahead->rows + number * ahead->bytes + byte);
}

/* The numbers that names have if their hashes say so, plus 1, as rows of `places`; 0 for those that have not joined. Memory is
   waited for side by side: all slots first, then what they point at. */
static void look_ahead(const Names *names, const Features *features, const uint32_t *rows, Place *places) {
    const Entry *entries = features->entries;
    Py_ssize_t count = features->count;
    for (Py_ssize_t i = 0; i < count; i++) PREFETCH(&names->slots[entries[i].hash & names->mask]);
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t at = entries[i].hash & names->mask, slot;
        while ((slot = names->slots[at]) && (slot ^ entries[i].hash) >> 32) at = (at + 1) & names->mask;
        places[i].row = (uint32_t)slot;
        if (slot) PREFETCH(&names->ends[(uint32_t)slot - 1]);
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (places[i].row) {
            PREFETCH(name_start(names, places[i].row - 1));
            if (rows) PREFETCH(&rows[places[i].row - 1]);
        }
}

#define FEW 128 /* features up to which looking them up needs no memory */

/* The vector of the features takes its place behind the `before` known rows below its own, or behind all others. */
static void place_parts(const Table *table, const Features *features, Vector *x, size_t before) {
    size_t at = x->late ? (size_t)(x->known + x->unknown - x->late) : before, width = (size_t)x->width;
    memcpy(x->values + at, features->vector, width * sizeof(double));
    for (size_t i = 0; i < width && !x->late; i++) x->rows[at + i] = (int64_t)(table->names.first + i);
    size_t part = (size_t)(x->unknown - x->late), used = part ? x->ends[part - 1] : 0;
    for (size_t i = 0; i < (size_t)x->late; i++) {
        char text[PART_NAME];
        size_t length = part_name(text, i);
        memcpy(x->text + used, text, length);
        x->hashes[part + i] = 0;
        x->ends[part + i] = used += length;
    }
    if (table->unit) scale(x->values, at, at + width, 0, 0);
}

/* NULL with ValueError where the vector has another length than the table's. */
static Vector *look_up(const Table *table, const Features *features, const Ahead *ahead, int tables) {
    const Names *names = &table->names;
    size_t width = (size_t)features->width, late = names->width ? 0 : width, before = 0;
    if (width && names->width && width != names->width)
        return PyErr_SetString(PyExc_ValueError, "a vector of another length"), NULL;
    size_t count = (size_t)features->count, known = 0, text = 0;
    Place few[2 * (FEW + 1)], *places = count > FEW ? malloc(2 * (count + 1) * sizeof(Place)) : few;
    if (!places) return (Vector *)PyErr_NoMemory();
    Place *others = places + count + 1; /* what was looked ahead, and unknown ones, until the sort needs the place */
    if (names->count) look_ahead(names, features, tables && ahead[0].places ? (*ahead[0].places)->data : NULL, others);
    uint32_t largest = 0;
    size_t unknown = 0;
    Py_ssize_t zeros_known = 0, zeros_unknown = 0;
    for (size_t i = 0; i < count; i++) {
        const Entry *entry = &features->entries[i];
        Py_ssize_t number = names->count ? (Py_ssize_t)others[i].row - 1 : -1;
        if (number >= 0 && !name_is(names, (size_t)number, entry->text, entry->length))
            number = names_find(names, entry->hash, entry->text, entry->length);
        if (number < 0) {
            others[unknown++].entry = (uint32_t)i;
            zeros_unknown += entry->value == 0.0;
            text += entry->length;
        } else {
            places[known++] = (Place){(uint32_t)number, (uint32_t)i};
            zeros_known += entry->value == 0.0;
            if ((uint32_t)number > largest) largest = (uint32_t)number;
            for (int n = 0; n < tables; n++) fetch_row(&ahead[n], (size_t)number);
        }
    }
    size_t bias = table->bias ? 1 : 0, block = width - late;
    Vector *x = vector_new(known + bias + block, unknown + late, text + late * PART_NAME);
    if (!x) {
        if (places != few) free(places);
        return NULL;
    }
    x->zeros_known = zeros_known;
    x->zeros_unknown = zeros_unknown;
    x->width = (Py_ssize_t)width;
    x->late = (Py_ssize_t)late;
    double now = table->idf ? log_1_plus(table->events) : 0.0;
    double *rest = x->values + known + bias + block;
    size_t used = 0;
    for (size_t i = 0; i < unknown; i++) {
        const Entry *entry = &features->entries[others[i].entry];
        rest[i] = table->idf ? entry->value * (1.0 + (now - 0.0)) : entry->value;
        x->hashes[i] = entry->hash;
        memcpy(x->text + used, entry->text, entry->length);
        used += entry->length;
        x->ends[i] = used;
    }
    const Place *sorted = sort_places(places, others, known, largest);
    const int64_t *counts = table->counts ? table->counts->data : NULL;
    if (bias) x->rows[0] = 0, x->values[0] = 1.0;
    for (size_t i = 0; i < known; i++) {
        double value = features->entries[sorted[i].entry].value;
        int behind = block && sorted[i].row > names->first;
        before += !behind;
        size_t at = i + bias + (behind ? block : 0);
        x->rows[at] = sorted[i].row;
        x->values[at] = table->idf ? value * (1.0 + (now - log_1_plus(counts[sorted[i].row]))) : value;
    }
    if (places != few) free(places);
    if (table->unit) scale(x->values, bias, known + bias + block + unknown, block ? bias + before : SIZE_MAX, block);
    if (width) place_parts(table, features, x, bias + before);
    return x;
}

static PyObject *table_look(PyObject *self, PyObject *object) {
    if (Py_IS_TYPE(object, FeaturesType)) return (PyObject *)look_up((Table *)self, (Features *)object, NULL, 0);
    PyErr_SetString(PyExc_TypeError, "a table looks up features that were read");
    return NULL;
}

/* How many features of x other than 0 and the bias are known, and how many are not. */
static void vector_familiar(const Vector *x, const Table *table, Py_ssize_t counts[2]) {
    Py_ssize_t more = x->width ? x->width - 1 : 0; /* a vector counts as one */
    counts[0] = x->known - (table->bias ? 1 : 0) - x->zeros_known - (x->late ? 0 : more);
    counts[1] = x->unknown - x->zeros_unknown - (x->late ? more : 0);
}

/* familiar(features) -> (known, unknown): how many other than 0 have joined, and how many have not. */
static PyObject *table_familiar(PyObject *self, PyObject *object) {
    const Table *table = (Table *)self;
    if (!Py_IS_TYPE(object, FeaturesType)) return PyErr_SetString(PyExc_TypeError, "a table knows features that were read"), NULL;
    const Features *features = (Features *)object;
    Py_ssize_t known = 0, unknown = 0;
    for (Py_ssize_t i = 0; i < features->count; i++) {
        const Entry *entry = &features->entries[i];
        if (entry->value == 0.0) continue;
        if (names_find(&table->names, entry->hash, entry->text, entry->length) < 0) unknown++;
        else known++;
    }
    if (features->width && table->names.width) known++;
    else if (features->width) unknown++;
    return Py_BuildValue("(nn)", known, unknown);
}

/* The unknown features of x join, a vector as one block: their room was reserved. */
static void names_join(Names *names, const Vector *x) {
    size_t named = (size_t)(x->unknown - x->late);
    for (size_t i = 0, start = 0; i < named; start = x->ends[i++])
        x->rows[x->known + (Py_ssize_t)i] = (int64_t)names_add(names, x->hashes[i], x->text + start, x->ends[i] - start);
    if (!x->late) return;
    if (!names->width) names_add_parts(names, (size_t)x->late);
    for (size_t i = 0; i < (size_t)x->late; i++) x->rows[x->known + (Py_ssize_t)(named + i)] = (int64_t)(names->first + i);
}

static int counts_reserve(Table *table, size_t count) {
    if (table->counts && count <= table->room) return 0;
    size_t room = count > 2 * table->room ? count : 2 * table->room;
    if (room < 16) room = 16;
    Block *counts = block_new(room, sizeof(int64_t));
    if (!counts) return -1;
    if (table->counts) {
        memcpy(counts->data, table->counts->data, table->room * sizeof(int64_t));
        Py_DECREF(table->counts);
    }
    table->counts = counts;
    table->room = room;
    return 0;
}

static int vector_check(PyObject *object) {
    if (Py_IS_TYPE(object, VectorType)) return 0;
    PyErr_SetString(PyExc_TypeError, "not a vector of the native kernel");
    return -1;
}

/* Whether all rows of x are below `count`: a vector of another table must not reach beyond this one. */
static int rows_within(const Vector *x, size_t count) {
    for (Py_ssize_t i = 0; i < x->known; i++)
        if ((uint64_t)x->rows[i] >= count) {
            PyErr_SetString(PyExc_IndexError, "a feature of the vector is not in the table");
            return 0;
        }
    return 1;
}

/* Every unknown feature joins; x with all of them known. All of it, or nothing. */
static PyObject *table_join(PyObject *self, PyObject *object) {
    Table *table = (Table *)self;
    if (vector_check(object)) return NULL;
    Vector *x = (Vector *)object;
    if (!x->unknown) {
        Py_INCREF(object);
        return object;
    }
    size_t unknown = (size_t)x->unknown;
    if (names_reserve(&table->names, unknown, x->ends[unknown - 1])) return NULL;
    if (counts_reserve(table, table->names.count + unknown)) return NULL;
    Vector *joined = PyObject_New(Vector, VectorType);
    if (!joined) return NULL;
    memcpy((char *)joined + sizeof(PyObject), (char *)x + sizeof(PyObject), sizeof *x - sizeof(PyObject));
    joined->memory = NULL;
    Py_INCREF(object);
    joined->shared = object;
    joined->known = x->known + x->unknown;
    joined->unknown = 0;
    joined->late = 0;
    names_join(&table->names, x);
    return (PyObject *)joined;
}

/* One more event: n and, under idf, n_j of every feature that is not 0. */
static PyObject *table_count(PyObject *self, PyObject *object) {
    Table *table = (Table *)self;
    if (vector_check(object)) return NULL;
    const Vector *x = (Vector *)object;
    if (!rows_within(x, table->names.count)) return NULL;
    table->events++;
    if (table->idf) {
        int64_t *counts = table->counts->data;
        for (Py_ssize_t i = 0; i < x->known; i++) counts[x->rows[i]] += x->values[i] != 0.0;
    }
    Py_RETURN_NONE;
}

/* Take the last `count` of x back. */
static PyObject *table_uncount(PyObject *self, PyObject *object) {
    Table *table = (Table *)self;
    if (vector_check(object)) return NULL;
    const Vector *x = (Vector *)object;
    if (!rows_within(x, table->names.count)) return NULL;
    table->events--;
    if (table->idf) {
        int64_t *counts = table->counts->data;
        for (Py_ssize_t i = 0; i < x->known; i++) counts[x->rows[i]] -= x->values[i] != 0.0;
    }
    Py_RETURN_NONE;
}

/* The features beyond the first `count` leave. */
static PyObject *table_forget(PyObject *self, PyObject *number) {
    Table *table = (Table *)self;
    Py_ssize_t count = PyLong_AsSsize_t(number);
    if (count < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a number of names is at least 0");
        return NULL;
    }
    if (table->counts)
        for (size_t i = (size_t)count; i < table->names.count; i++) ((int64_t *)table->counts->data)[i] = 0;
    names_forget(&table->names, (size_t)count);
    Py_RETURN_NONE;
}
