/* What Python sees of a table and of its vectors. */

static PyObject *vector_rows(PyObject *self, void *closure) {
    (void)closure;
    return array_on(self, ((Vector *)self)->rows, "q", ((Vector *)self)->known, -1, 0);
}

static PyObject *vector_values(PyObject *self, void *closure) {
    (void)closure;
    return array_on(self, ((Vector *)self)->values, "d", ((Vector *)self)->known, -1, 0);
}

static PyObject *vector_unseen(PyObject *self, void *closure) {
    (void)closure;
    Vector *x = (Vector *)self;
    return array_on(self, x->values + x->known, "d", x->unknown, -1, 0);
}

static PyObject *vector_names(PyObject *self, void *closure) {
    (void)closure;
    Vector *x = (Vector *)self;
    PyObject *list = PyList_New(x->unknown);
    for (Py_ssize_t i = 0; list && i < x->unknown; i++) {
        size_t start = i ? x->ends[i - 1] : 0;
        PyObject *name = text_of(x->text + start, x->ends[i] - start);
        if (!name || PyList_SetItem(list, i, name)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *vector_fresh(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSsize_t(((Vector *)self)->unknown);
}

static PyObject *vector_squared_norm(PyObject *self, PyObject *none) {
    (void)none;
    return PyFloat_FromDouble(vector_square((Vector *)self));
}

static PyObject *vector_late(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSsize_t(((Vector *)self)->late);
}

/* Vector(rows, values, unseen, unknown, late): of arrays, by copy; `unknown` names the unseen features, the last `late` of which
   are the parts of a vector. */
static PyObject *vector_make(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)type;
    static char *words[] = {"rows", "values", "unseen", "unknown", "late", NULL};
    PyObject *rows, *values, *unseen = NULL, *unknown = NULL;
    Py_ssize_t late = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|OOn", words, &rows, &values, &unseen, &unknown, &late)) return NULL;
    Py_buffer r, v, u = {0};
    Features *names = NULL;
    Vector *x = NULL;
    size_t text = 0;
    if (numbers_of(rows, &r, 'q', -1, 0)) return NULL;
    if (numbers_of(values, &v, 'd', r.len / 8, 0)) goto rows_only;
    if (unseen && numbers_of(unseen, &u, 'd', -1, 0)) goto both;
    size_t known = (size_t)r.len / 8, rest = (size_t)u.len / 8;
    if (unknown && PySequence_Size(unknown) > 0) {
        PyObject *named = PySequence_GetSlice(unknown, 0, PySequence_Size(unknown) - late);
        if (!named) goto all;
        names = (Features *)PyObject_CallFunctionObjArgs((PyObject *)FeaturesType, named, NULL);
        Py_DECREF(named);
        if (!names) goto all;
        for (Py_ssize_t i = 0; i < names->count; i++) text += names->entries[i].length;
    }
    if (late < 0 || (size_t)late > rest || (names && (size_t)(names->count + late) != rest)) {
        PyErr_SetString(PyExc_ValueError, "every unseen feature needs a name of its own");
        goto all;
    }
    if (!(x = vector_new(known, rest, text + (size_t)late * PART_NAME))) goto all;
    x->width = x->late = late;
    memcpy(x->rows, r.buf, (size_t)r.len);
    memcpy(x->values, v.buf, (size_t)v.len);
    if (rest) memcpy(x->values + known, u.buf, (size_t)u.len);
    text = 0;
    size_t named = rest - (size_t)late;
    for (size_t i = 0; i < named; i++) {
        x->hashes[i] = names ? names->entries[i].hash : 0;
        if (names) memcpy(x->text + text, names->entries[i].text, names->entries[i].length);
        x->ends[i] = text += names ? names->entries[i].length : 0;
    }
    for (size_t i = named; i < rest; i++) {
        char part[PART_NAME];
        size_t length = part_name(part, i - named);
        memcpy(x->text + text, part, length);
        x->hashes[i] = 0;
        x->ends[i] = text += length;
    }
all:
    Py_XDECREF((PyObject *)names);
    if (u.obj) PyBuffer_Release(&u);
both:
    PyBuffer_Release(&v);
rows_only:
    PyBuffer_Release(&r);
    return (PyObject *)x;
}

static PyGetSetDef vector_getset[] = {
    {"rows", vector_rows, NULL, "The rows of the known features, ascending.", NULL},
    {"values", vector_values, NULL, "x on them.", NULL},
    {"unseen", vector_unseen, NULL, "x on the features that have not joined.", NULL},
    {"unknown", vector_names, NULL, "Their names.", NULL},
    {"fresh", vector_fresh, NULL, "How many they are.", NULL},
    {"late", vector_late, NULL, "How many of these, the last ones, are the parts of a vector.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef vector_methods[] = {
    {"squared_norm", vector_squared_norm, METH_NOARGS, "||x||^2, unseen features included."}, {NULL, NULL, 0, NULL}};
static PyType_Slot vector_slots[] = {{Py_tp_new, vector_make},
                                     {Py_tp_dealloc, vector_dealloc},
                                     {Py_tp_getset, vector_getset},
                                     {Py_tp_methods, vector_methods},
                                     {Py_tp_doc, "x of one instance, by row."},
                                     {0, NULL}};
static PyType_Spec vector_spec = {"feedrank.learners.kernel._native.Vector", sizeof(Vector), 0, Py_TPFLAGS_DEFAULT, vector_slots};

static PyObject *table_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"idf", "unit", "bias", NULL};
    int idf = 0, unit = 0, bias = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|ppp", words, &idf, &unit, &bias)) return NULL;
    Table *table = (Table *)PyType_GenericAlloc(type, 0);
    if (!table) return NULL;
    table->idf = idf;
    table->unit = unit;
    table->bias = bias;
    if (names_reserve(&table->names, 1, 0) || counts_reserve(table, 1)) {
        Py_DECREF(table);
        return NULL;
    }
    if (bias) names_add(&table->names, hash_of("", 0), "", 0);
    return (PyObject *)table;
}

static void table_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    names_clear(&((Table *)self)->names);
    Py_XDECREF((PyObject *)((Table *)self)->counts);
    PyObject_Free(self);
    Py_DECREF(type);
}

static Py_ssize_t table_length(PyObject *self) { return (Py_ssize_t)((Table *)self)->names.count; }

static PyObject *names_item(const Names *names, Py_ssize_t number) {
    if (number < 0 || (size_t)number >= names->count) {
        PyErr_SetString(PyExc_IndexError, "no name has this number");
        return NULL;
    }
    return text_of(name_start(names, (size_t)number), name_length(names, (size_t)number));
}

static PyObject *names_number(const Names *names, PyObject *name) {
    Py_ssize_t length, number;
    PyObject *owned;
    if (!PyUnicode_Check(name)) return PyLong_FromLong(-1);
    const char *text = utf8_of(name, &length, &owned);
    if (!text) return NULL;
    number = names_find(names, hash_of(text, (size_t)length), text, (size_t)length);
    Py_XDECREF(owned);
    return PyLong_FromSsize_t(number);
}

static PyObject *table_item(PyObject *self, Py_ssize_t number) { return names_item(&((Table *)self)->names, number); }
static PyObject *table_find(PyObject *self, PyObject *name) { return names_number(&((Table *)self)->names, name); }

/* The row of every name of a sequence, -1 for one that has not joined: an array of int64. */
static PyObject *table_rows(PyObject *self, PyObject *names) {
    Py_ssize_t count = PySequence_Size(names);
    Block *block = count < 0 ? NULL : block_new((size_t)count, sizeof(int64_t));
    if (!block) return NULL;
    PyObject *array = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PySequence_GetItem(names, i), *number = name ? table_find(self, name) : NULL;
        Py_XDECREF(name);
        if (!number) goto done;
        ((int64_t *)block->data)[i] = PyLong_AsLongLong(number);
        Py_DECREF(number);
    }
    array = array_on((PyObject *)block, block->data, "q", count, -1, 0);
done:
    Py_DECREF(block);
    return array;
}

static int table_contains(PyObject *self, PyObject *name) {
    PyObject *number = table_find(self, name);
    if (!number) return -1;
    int there = PyLong_AsLong(number) >= 0;
    Py_DECREF(number);
    return there;
}

static PyObject *table_add(PyObject *self, PyObject *name) {
    Table *table = (Table *)self;
    Py_ssize_t length;
    PyObject *owned;
    if (!PyUnicode_Check(name)) return PyErr_SetString(PyExc_TypeError, "a name must be text"), NULL;
    const char *text = utf8_of(name, &length, &owned);
    if (!text) return NULL;
    PyObject *number = NULL;
    if (!names_reserve(&table->names, 1, (size_t)length) && !counts_reserve(table, table->names.count + 1))
        number = PyLong_FromSize_t(names_add(&table->names, hash_of(text, (size_t)length), text, (size_t)length));
    Py_XDECREF(owned);
    return number;
}

/* All names one behind the other, as bytes, and where each of them ends: what a snapshot holds. */
static PyObject *table_text(PyObject *self, PyObject *none) {
    (void)none;
    const Names *names = &((Table *)self)->names;
    PyObject *ends = PyBytes_FromStringAndSize((const char *)names->ends, (Py_ssize_t)(names->count * sizeof *names->ends));
    size_t used = names->count ? (size_t)names->ends[names->count - 1] : 0;
    PyObject *text = PyBytes_FromStringAndSize(names->text, (Py_ssize_t)used), *both = NULL;
    if (ends && text) both = PyTuple_Pack(2, text, ends);
    Py_XDECREF(ends);
    Py_XDECREF(text);
    return both;
}

/* add_vector(width): the first row of the parts of a vector, which join if they are new. */
static PyObject *table_add_vector(PyObject *self, PyObject *number) {
    Table *table = (Table *)self;
    Py_ssize_t width = PyLong_AsSsize_t(number);
    if (width < 0) return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_ValueError, "a length is at least 0"), NULL);
    if (width && !table->names.width) {
        size_t count = (size_t)width;
        if (count > 0x1000000 || names_reserve(&table->names, count, count * PART_NAME) || counts_reserve(table, table->names.count + count))
            return PyErr_Occurred() ? NULL : PyErr_NoMemory();
        names_add_parts(&table->names, count);
    }
    return PyLong_FromSize_t(table->names.first);
}

static PyObject *table_vector(PyObject *self, void *closure) {
    (void)closure;
    const Names *names = &((Table *)self)->names;
    return Py_BuildValue("(nn)", (Py_ssize_t)names->first, (Py_ssize_t)names->width);
}

/* restore(text, ends, counts, events, vector): all as it was; ValueError, and an unchanged table, if they do not fit together. */
static PyObject *table_restore(PyObject *self, PyObject *arguments) {
    Table *table = (Table *)self;
    Py_buffer text, ends, counts;
    PyObject *count_array;
    long long events;
    Py_ssize_t first = 0, width = 0;
    if (!PyArg_ParseTuple(arguments, "y*y*OL|(nn)", &text, &ends, &count_array, &events, &first, &width)) return NULL;
    Names names = {0};
    PyObject *result = NULL;
    size_t count = (size_t)ends.len / 8, start = 0, used = (size_t)text.len;
    if (numbers_of(count_array, &counts, 'q', (Py_ssize_t)count, 0)) goto texts;
    int fits = ends.len % 8 == 0 && events >= 0 && (count || !table->bias) &&
               (!count ? !used : ((const uint64_t *)ends.buf)[count - 1] == used);
    fits = fits && first >= 0 && width >= 0 && (size_t)first <= count && (size_t)width <= count - (size_t)first;
    if (fits && names_reserve(&names, count, used + (size_t)width * PART_NAME)) goto all; /* what parts take where they are checked */
    for (size_t i = 0; i < count && fits; i++) {
        size_t end = (size_t)((const uint64_t *)ends.buf)[i];
        const char *name = (const char *)text.buf + start;
        int64_t own = ((const int64_t *)counts.buf)[i];
        fits = end >= start && end <= used && own >= 0 && own <= events; /* no feature is in more events than there were */
        fits = fits && (end == start) == (table->bias && !i); /* the bias, and nothing else, has no name */
        if (fits && width && i >= (size_t)first && i < (size_t)(first + width)) {
            char part[PART_NAME];
            fits = part_name(part, i - (size_t)first) == end - start && !memcmp(part, name, end - start);
            if (fits && i == (size_t)first) names_add_parts(&names, (size_t)width);
            start = end;
            continue;
        }
        if (fits && utf8_sound(name, end - start)) names_add(&names, hash_of(name, end - start), name, end - start);
        fits = fits && names.count == i + 1;
        start = end;
    }
    if (fits && !counts_reserve(table, count)) {
        Names before = table->names;
        table->names = names;
        names = before;
        memcpy(table->counts->data, counts.buf, count * sizeof(int64_t));
        table->events = events;
        result = Py_None;
        Py_INCREF(result);
    } else if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the names or their counts do not fit together");
all:
    names_clear(&names);
    PyBuffer_Release(&counts);
texts:
    PyBuffer_Release(&text);
    PyBuffer_Release(&ends);
    return result;
}

static PyObject *table_counts(PyObject *self, void *closure) {
    (void)closure;
    Table *table = (Table *)self;
    return array_on((PyObject *)table->counts, table->counts->data, "q", (Py_ssize_t)table->names.count, -1, 0);
}

static PyObject *table_events(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromLongLong(((Table *)self)->events);
}

static int table_set_events(PyObject *self, PyObject *value, void *closure) {
    (void)closure;
    long long events = value ? PyLong_AsLongLong(value) : -1;
    if (PyErr_Occurred()) return -1;
    if (events < 0) return PyErr_SetString(PyExc_ValueError, "a number of events is at least 0"), -1;
    ((Table *)self)->events = events;
    return 0;
}

static PyObject *table_nbytes(PyObject *self, PyObject *none) {
    (void)none;
    const Names *names = &((Table *)self)->names;
    size_t used = names->count ? (size_t)names->ends[names->count - 1] : 0;
    return PyLong_FromSize_t(used + (((Table *)self)->idf ? 48 : 40) * names->count);
}

static PyGetSetDef table_getset[] = {
    {"counts", table_counts, NULL, "n_j of every feature.", NULL},
    {"events", table_events, table_set_events, "n, the events counted.", NULL},
    {"vector", table_vector, NULL, "The first row of the parts of a vector, and how many they are, 0 until there are any.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef table_methods[] = {
    {"familiar", table_familiar, METH_O, "How many features other than 0 are known, and how many are not."},
    {"look", table_look, METH_O, "x of features that were read."},
    {"join", table_join, METH_O, "x with every feature known: the unknown ones join."},
    {"count", table_count, METH_O, "One more event."},
    {"uncount", table_uncount, METH_O, "Take the last count of x back."},
    {"forget", table_forget, METH_O, "The features beyond the first so many leave."},
    {"add", table_add, METH_O, "The number of a name, given now if it is new."},
    {"add_vector", table_add_vector, METH_O, "The first row of the parts of a vector, which join if they are new."},
    {"find", table_find, METH_O, "The number of a name, -1 if it has not joined."},
    {"rows", table_rows, METH_O, "The row of every name, -1 for one that has not joined."},
    {"text", table_text, METH_NOARGS, "The bytes of all names, and where each ends."},
    {"restore", table_restore, METH_VARARGS, "All as it was, of text, ends, counts, events and the place of the vector."},
    {"nbytes", table_nbytes, METH_NOARGS, "Roughly the memory in use: a function of the names alone."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot table_slots[] = {{Py_tp_new, table_new},
                                    {Py_tp_dealloc, table_dealloc},
                                    {Py_tp_getset, table_getset},
                                    {Py_tp_methods, table_methods},
                                    {Py_sq_length, table_length},
                                    {Py_sq_item, table_item},
                                    {Py_sq_contains, table_contains},
                                    {Py_tp_doc, "Features by name: Table(idf=False, unit=False, bias=False)."},
                                    {0, NULL}};
static PyType_Spec table_spec = {"feedrank.learners.kernel._native.Table", sizeof(Table), 0, Py_TPFLAGS_DEFAULT, table_slots};
