/* A feature vector by name, read and checked: hashed once, each name once, in the order in which they were written.

   `features_of` takes what Python has: `{"name": number}`, `["name", ...]`, `[number, ...]`. Where something is unusual
   (another type, an empty name, a number beyond LARGEST) it gives None, and the reader in Python says what is wrong.
   `vector` are numbers without names beside them, already those of float32. */

#define LARGEST 1e100
#define WIDEST 16384 /* numbers of a vector: LONGEST of vectors.py */

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#define PREFETCH_FAR(address) __builtin_prefetch(address, 0, 2) /* no nearer than the second cache */
#else
#define PREFETCH(address) ((void)(address))
#define PREFETCH_FAR(address) ((void)(address))
#endif

typedef struct {
    uint64_t hash;
    const char *text;
    size_t length;
    double value;
} Entry;

typedef struct {
    PyObject_HEAD Entry *entries;
    Py_ssize_t count, room;
    char *arena; /* texts that no other object keeps */
    size_t used, capacity;
    PyObject *source; /* the bytes that the other texts point into, and where in them the features stand */
    Py_ssize_t start, stop;
    uint32_t *seen;   /* while reading: number plus 1 of the entry in each slot of a hash table */
    uint32_t mask;
    int named, distinct; /* names alone: each counts 1; no name can come twice */
    double *vector;
    Py_ssize_t width; /* its length, 0 where there is none */
} Features;

static PyTypeObject *FeaturesType;
static PyObject *features_word; /* "features" */

static void features_dealloc(PyObject *self) {
    Features *features = (Features *)self;
    PyTypeObject *type = Py_TYPE(self);
    free(features->entries);
    free(features->arena);
    free(features->seen);
    free(features->vector);
    Py_XDECREF(features->source);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int features_reserve(Features *features, Py_ssize_t room) {
    if (room > 0x20000000) return PyErr_NoMemory(), -1;
    if (!room) return 0;
    Entry *entries = realloc(features->entries, (size_t)room * sizeof(Entry));
    if (!entries) return PyErr_NoMemory(), -1;
    features->entries = entries;
    features->room = room;
    if (features->distinct) return 0;
    uint32_t slots = 4;
    while (slots < 2 * (uint64_t)room) slots *= 2;
    uint32_t *seen = calloc(slots, sizeof(uint32_t));
    if (!seen) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < features->count; i++) {
        uint32_t at = (uint32_t)(entries[i].hash >> 32) & (slots - 1);
        while (seen[at]) at = (at + 1) & (slots - 1);
        seen[at] = (uint32_t)i + 1;
    }
    free(features->seen);
    features->seen = seen;
    features->mask = slots - 1;
    return 0;
}

/* Room for so many; with `distinct`, who puts names knows that none comes twice. */
static Features *features_new(Py_ssize_t room, int named, int distinct) {
    Features *features = PyObject_New(Features, FeaturesType);
    if (!features) return NULL;
    memset((char *)features + sizeof(PyObject), 0, sizeof *features - sizeof(PyObject));
    features->named = named;
    features->distinct = distinct;
    if (features_reserve(features, room)) Py_CLEAR(features);
    return features;
}

/* The number of a name, put last if it is new; -1 with an exception. */
static Py_ssize_t features_number(Features *features, const char *text, size_t length, double value) {
    if (features->count == features->room && features_reserve(features, features->room ? 2 * features->room : 4)) return -1;
    uint64_t hash = hash_of(text, length);
    if (!features->distinct) {
        uint32_t at = (uint32_t)(hash >> 32) & features->mask;
        for (; features->seen[at]; at = (at + 1) & features->mask) {
            const Entry *entry = &features->entries[features->seen[at] - 1];
            if (entry->hash == hash && entry->length == length && !memcmp(entry->text, text, length))
                return (Py_ssize_t)features->seen[at] - 1;
        }
        features->seen[at] = (uint32_t)features->count + 1;
    }
    features->entries[features->count] = (Entry){hash, text, length, value};
    return features->count++;
}

/* One more name: 1 if it is new, 0 if it was there before, -1 with an exception. */
static int features_put(Features *features, const char *text, size_t length, double value) {
    Py_ssize_t count = features->count;
    return features_number(features, text, length, value) < 0 ? -1 : features->count > count;
}

/* The table of what was seen serves while reading only. */
static PyObject *features_done(Features *features) {
    free(features->seen);
    features->seen = NULL;
    return (PyObject *)features;
}

/* Space for a text of at most `length` bytes that no other object keeps. Earlier texts may move. */
static char *features_space(Features *features, size_t length) {
    if (features->used + length > features->capacity) {
        size_t capacity = 2 * features->capacity + length + 12 * (size_t)features->room;
        char *before = features->arena, *arena = malloc(capacity);
        if (!arena) return (char *)PyErr_NoMemory();
        if (features->used) memcpy(arena, before, features->used);
        for (Py_ssize_t i = 0; before && i < features->count; i++) {
            const char *text = features->entries[i].text;
            if (text >= before && text < before + features->used) features->entries[i].text = arena + (text - before);
        }
        free(before);
        features->arena = arena;
        features->capacity = capacity;
    }
    return features->arena + features->used;
}

static int features_copy(Features *features, const char *text, size_t length, double value) {
    char *copy = features_space(features, length);
    if (!copy) return -1;
    memcpy(copy, text, length);
    int new = features_put(features, copy, length, value);
    if (new > 0) features->used += length;
    return new;
}

/* A number of plain Python: 0 if it is one, 1 if it is unusual. */
static int plain_number(PyObject *object, double *value) {
    if (Py_IS_TYPE(object, &PyFloat_Type) || Py_IS_TYPE(object, &PyLong_Type)) {
        *value = PyFloat_AsDouble(object);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return 1;
        }
        return !(fabs(*value) <= LARGEST);
    }
    return 1;
}

/* 0: read; 1: unusual; -1: an exception. */
static int read_name(Features *features, PyObject *name, double value) {
    if (!PyUnicode_Check(name)) return 1;
    PyObject *owned;
    Py_ssize_t length;
    const char *text = utf8_of(name, &length, &owned);
    int state = !text ? -1 : !length ? 1 : features_copy(features, text, (size_t)length, value) < 0 ? -1 : 0;
    Py_XDECREF(owned);
    return state;
}

/* How many texts ahead of the one that is read: they lie scattered, and memory is waited for side by side. */
#define AHEAD 8

static int read_list(Features *features, PyObject *list, Py_ssize_t count) {
    int named = features->named, state = 0;
    for (Py_ssize_t i = 0; i < AHEAD && i < count && named; i++) PREFETCH(PyList_GetItem(list, i));
    for (Py_ssize_t i = 0; i < count && !state; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (!item) return -1;
        if (i + AHEAD < count) PREFETCH(PyList_GetItem(list, i + AHEAD));
        if (named) {
            state = read_name(features, item, 1.0);
            continue;
        }
        double value;
        char name[24];
        if ((state = plain_number(item, &value))) break;
        int length = PyOS_snprintf(name, sizeof name, "%zd", i);
        state = features_copy(features, name, (size_t)length, value) < 0 ? -1 : 0;
    }
    return state;
}

static int read_dict(Features *features, PyObject *dict) {
    PyObject *key, *item;
    Py_ssize_t at = 0;
    double value;
    while (PyDict_Next(dict, &at, &key, &item)) {
        int state = plain_number(item, &value);
        if (!state) state = read_name(features, key, value);
        if (state) return state;
    }
    return 0;
}

static PyObject *features_of(PyObject *module, PyObject *object) {
    (void)module;
    Features *features;
    int state;
    if (Py_IS_TYPE(object, &PyList_Type)) {
        Py_ssize_t count = PyList_Size(object);
        int named = count && PyUnicode_Check(PyList_GetItem(object, 0));
        if (!(features = features_new(count, named, !named))) return NULL;
        state = read_list(features, object, count);
    } else if (Py_IS_TYPE(object, &PyDict_Type)) {
        if (!(features = features_new(PyDict_Size(object), 0, 1))) return NULL;
        state = read_dict(features, object);
    } else
        Py_RETURN_NONE;
    if (!state) return features_done(features);
    Py_DECREF(features);
    if (state < 0) return NULL;
    Py_RETURN_NONE;
}

/* matrix(rows, width): lists of `width` numbers each as an array, or None where one of them is unusual. */
static PyObject *matrix_of(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *rows;
    Py_ssize_t width;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(arguments, "On", &rows, &width)) return NULL;
    if (!Py_IS_TYPE(rows, &PyList_Type)) Py_RETURN_NONE;
    Py_ssize_t count = PyList_Size(rows);
    PyObject *matrix = PyObject_CallFunction(empty_array, "((nn))", count, width);
    if (!matrix || PyObject_GetBuffer(matrix, &buffer, PyBUF_WRITABLE)) {
        Py_XDECREF(matrix);
        return NULL;
    }
    double *numbers = buffer.buf;
    int unusual = 0;
    for (Py_ssize_t i = 0; i < count && !unusual; i++) {
        PyObject *row = PyList_GetItem(rows, i);
        unusual = !row || !Py_IS_TYPE(row, &PyList_Type) || PyList_Size(row) != width;
        for (Py_ssize_t j = 0; j < width && !unusual; j++) unusual = plain_number(PyList_GetItem(row, j), numbers++);
    }
    PyBuffer_Release(&buffer);
    if (!unusual) return matrix;
    Py_DECREF(matrix);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* read_singles(text, count): an array, or None. */
static PyObject *singles_of(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *text;
    Py_ssize_t count, length;
    double *numbers;
    if (!PyArg_ParseTuple(arguments, "Un", &text, &count)) return NULL;
    const char *letters = PyUnicode_AsUTF8AndSize(text, &length);
    if (!letters) { /* half a surrogate pair, which is no base64 */
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    if (count < 0 || length < count) Py_RETURN_NONE; /* before room is made for them */
    PyObject *array = array_new(count, &numbers);
    if (!array || read_singles(letters, (size_t)length, numbers, (size_t)count)) return array;
    Py_DECREF(array);
    Py_RETURN_NONE;
}

/* listed_grades(grades, places, largest): an array, or None. */
static PyObject *listed_grades(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *grades, *places, *name, *grade;
    Py_ssize_t at = 0;
    double largest, *y;
    if (!PyArg_ParseTuple(arguments, "OO!d", &grades, &PyDict_Type, &places, &largest)) return NULL;
    if (!PyDict_CheckExact(grades)) Py_RETURN_NONE;
    Py_ssize_t count = PyDict_Size(places);
    PyObject *array = array_new(count, &y);
    if (!array) return NULL;
    memset(y, 0, (size_t)count * sizeof *y);
    while (PyDict_Next(grades, &at, &name, &grade)) {
        PyObject *place = PyUnicode_CheckExact(name) ? PyDict_GetItemWithError(places, name) : NULL;
        if (!place || !(PyFloat_CheckExact(grade) || PyLong_CheckExact(grade))) goto other;
        Py_ssize_t i = PyLong_AsSsize_t(place);
        double number = PyFloat_AsDouble(grade);
        if (!(number >= 0.0 && number <= largest) || i < 0 || i >= count) goto other;
        y[i] = number;
    }
    return array;
other:
    PyErr_Clear();
    Py_DECREF(array);
    Py_RETURN_NONE;
}

static Py_ssize_t features_length(PyObject *self) { return ((Features *)self)->count + ((Features *)self)->width; }

static PyObject *features_width(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSsize_t(((Features *)self)->width);
}

static PyObject *features_vector(PyObject *self, void *closure) {
    (void)closure;
    Features *features = (Features *)self;
    double *numbers;
    if (!features->width) Py_RETURN_NONE;
    PyObject *array = array_new(features->width, &numbers);
    if (array) memcpy(numbers, features->vector, (size_t)features->width * sizeof *numbers);
    return array;
}

/* Room for so many numbers of a vector: -1 with an exception. */
static int vector_room(Features *features, Py_ssize_t room) {
    double *vector = realloc(features->vector, (size_t)room * sizeof *vector);
    if (!vector) return PyErr_NoMemory(), -1;
    features->vector = vector;
    return 0;
}

/* Whether one more number, for which there is room, is finite in float32 and not one too many. */
static inline int vector_put(Features *features, double value) {
    float single = (float)value;
    features->vector[features->width++] = (double)single;
    return isfinite(single) && features->width <= WIDEST;
}

/* Whether a text is the base64 of a vector that may be, which is taken in. */
static int vector_of_text(Features *features, const char *text, size_t length) {
    size_t count = (length / 4 * 3 - (length && text[length - 1] == '=') - (length > 1 && text[length - 2] == '=')) / 4;
    int finite = 1;
    if (!count || length % 4 || count > WIDEST) return 0;
    if (vector_room(features, (Py_ssize_t)count)) return PyErr_Clear(), 0;
    if (!read_singles(text, length, features->vector, count)) return 0;
    for (size_t i = 0; i < count; i++) finite &= fabs(features->vector[i]) <= (double)FLT_MAX;
    features->width = (Py_ssize_t)count;
    return finite;
}

/* vector_of(value): `Features` of a vector alone, of a list of plain numbers or of base64; None where something is unusual. */
static PyObject *vector_of(PyObject *module, PyObject *value) {
    (void)module;
    Features *features = features_new(0, 0, 1);
    int fine = 0;
    if (!features) return NULL;
    if (Py_IS_TYPE(value, &PyUnicode_Type)) {
        Py_ssize_t length;
        const char *text = PyUnicode_AsUTF8AndSize(value, &length);
        if (!text) PyErr_Clear();
        fine = text && vector_of_text(features, text, (size_t)length);
    } else if (Py_IS_TYPE(value, &PyList_Type)) {
        Py_ssize_t count = PyList_Size(value);
        double number;
        fine = count > 0 && count <= WIDEST;
        if (fine && vector_room(features, count)) {
            Py_DECREF(features);
            return NULL;
        }
        for (Py_ssize_t i = 0; i < count && fine; i++)
            fine = !plain_number(PyList_GetItem(value, i), &number) && vector_put(features, number);
    }
    if (fine) return features_done(features);
    Py_DECREF(features);
    Py_RETURN_NONE;
}

/* Take in a copy of the numbers of a vector: -1 with an exception. */
static int features_set_vector(Features *features, PyObject *vector) {
    Py_buffer buffer;
    if (numbers_of(vector, &buffer, 'd', -1, 0)) return -1;
    features->width = buffer.len / (Py_ssize_t)sizeof(double);
    features->vector = malloc((size_t)buffer.len + 1);
    if (features->vector) memcpy(features->vector, buffer.buf, (size_t)buffer.len);
    PyBuffer_Release(&buffer);
    return features->vector ? 0 : (PyErr_NoMemory(), -1);
}

static PyObject *features_names(PyObject *self, void *closure) {
    (void)closure;
    Features *features = (Features *)self;
    PyObject *list = PyList_New(features->count);
    for (Py_ssize_t i = 0; list && i < features->count; i++) {
        PyObject *name = text_of(features->entries[i].text, features->entries[i].length);
        if (!name || PyList_SetItem(list, i, name)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *features_values(PyObject *self, void *closure) {
    (void)closure;
    Features *features = (Features *)self;
    double *numbers;
    if (features->named) Py_RETURN_NONE;
    PyObject *array = array_new(features->count, &numbers);
    for (Py_ssize_t i = 0; array && i < features->count; i++) numbers[i] = features->entries[i].value;
    return array;
}

/* Features(names, values, vector): names that were checked, and an array of their values, or None where each counts 1. */
static PyObject *features_make(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)type;
    static char *words[] = {"names", "values", "vector", NULL};
    PyObject *names, *values = Py_None, *vector = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|OO", words, &names, &values, &vector)) return NULL;
    Py_ssize_t count = PySequence_Size(names);
    Py_buffer buffer = {0};
    if (count < 0 || (values != Py_None && numbers_of(values, &buffer, 'd', count, 0))) return NULL;
    Features *features = features_new(count, values == Py_None, 0);
    int state = features ? 0 : -1;
    for (Py_ssize_t i = 0; i < count && !state; i++) {
        PyObject *name = PySequence_GetItem(names, i);
        state = name ? read_name(features, name, buffer.buf ? ((const double *)buffer.buf)[i] : 1.0) : -1;
        Py_XDECREF(name);
    }
    if (buffer.obj) PyBuffer_Release(&buffer);
    if (!state && vector != Py_None) state = features_set_vector(features, vector);
    if (!state) return features_done(features);
    if (state > 0) PyErr_SetString(PyExc_ValueError, "a name must be text that is not empty");
    Py_XDECREF((PyObject *)features);
    return NULL;
}

static PyObject *features_json(PyObject *self, void *closure) {
    (void)closure;
    Features *features = (Features *)self;
    if (!features->source) Py_RETURN_NONE;
    const char *bytes = PyBytes_AsString(features->source);
    return bytes ? PyBytes_FromStringAndSize(bytes + features->start, features->stop - features->start) : NULL;
}

/* Whether two were read from the same names with the same values in the same order. */
static int features_same(const Features *one, const Features *two) {
    if (one->count != two->count || one->named != two->named || one->width != two->width) return 0;
    for (Py_ssize_t i = 0; i < one->width; i++)
        if (one->vector[i] != two->vector[i]) return 0;
    for (Py_ssize_t i = 0; i < one->count; i++) {
        const Entry *a = &one->entries[i], *b = &two->entries[i];
        if (a->hash != b->hash || a->value != b->value || a->length != b->length || memcmp(a->text, b->text, a->length))
            return 0;
    }
    return 1;
}

static PyObject *features_compare(PyObject *self, PyObject *other, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || !Py_IS_TYPE(other, FeaturesType)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong(features_same((Features *)self, (Features *)other) == (operation == Py_EQ));
}

static PyGetSetDef features_getset[] = {
    {"json", features_json, NULL, "The JSON that they were read from, or None.", NULL},
    {"names", features_names, NULL, "The names, each once, in the order in which they were written.", NULL},
    {"vector", features_vector, NULL, "The numbers without names, or None.", NULL},
    {"width", features_width, NULL, "How many they are.", NULL},
    {"values", features_values, NULL, "Their values, or None where each counts 1.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot features_slots[] = {{Py_tp_new, features_make},
                                       {Py_tp_dealloc, features_dealloc},
                                       {Py_tp_getset, features_getset},
                                       {Py_tp_richcompare, features_compare},
                                       {Py_tp_hash, PyObject_HashNotImplemented},
                                       {Py_mp_length, features_length},
                                       {Py_tp_doc, "A feature vector by name, read and checked."},
                                       {0, NULL}};
static PyType_Spec features_spec = {"feedrank.learners.kernel._native.Features", sizeof(Features), 0, Py_TPFLAGS_DEFAULT,
                                    features_slots};
