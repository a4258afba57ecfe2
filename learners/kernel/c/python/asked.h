/* The last instance that was asked about: feedback mostly follows its prediction, and is not read and looked up again. */

typedef struct {
    PyObject *raw; /* a copy of its names, where it was a list of them */
    Features *features;
    Vector *x;
} Asked;


static void asked_drop(Asked *asked) {
    Py_CLEAR(asked->raw);
    Py_CLEAR(asked->features);
    Py_CLEAR(asked->x);
}

/* x of an instance: 2 where it was asked about last, 1 where it is read and looked up now, 0 where it is unusual, -1 with an
   exception. */
static int asked_look(Asked *asked, PyObject *instance, const Table *table, const Ahead *ahead, int tables) {
    PyObject *value = instance;
    if (Py_IS_TYPE(instance, &PyDict_Type)) {
        if (PyDict_Size(instance) != 1) return 0;
        value = PyDict_GetItemWithError(instance, features_word);
        if (!value) return PyErr_Occurred() ? -1 : 0;
    } else if (!Py_IS_TYPE(instance, FeaturesType))
        return 0;
    if (asked->x && value == (PyObject *)asked->features) return 2;
    Py_INCREF(value);
    int state = 0, list = Py_IS_TYPE(value, &PyList_Type);
    PyObject *read = NULL;
    if (list && asked->raw) {
        PyObject *raw = asked->raw;
        Py_INCREF(raw);
        state = PyObject_RichCompareBool(value, raw, Py_EQ);
        if (state > 0 && asked->raw == raw) state = 2; /* an __eq__ may have asked about another one */
        Py_DECREF(raw);
        if (state < 0 || state > 1) goto done;
        state = 0;
    }
    if (Py_IS_TYPE(value, FeaturesType)) {
        read = value;
        Py_INCREF(read);
    } else
        read = features_of(NULL, value);
    if (!read) state = -1;
    if (!read || !Py_IS_TYPE(read, FeaturesType)) goto done;
    if (asked->x && asked->features && features_same(asked->features, (Features *)read)) {
        state = 2;
        goto done;
    }
    Py_ssize_t width = ((Features *)read)->width;
    if (width && table->names.width && (size_t)width != table->names.width) goto done; /* the pieces refuse it */
    asked_drop(asked);
    Vector *x = look_up(table, (Features *)read, ahead, tables);
    PyObject *raw = x && list && ((Features *)read)->named ? PyList_GetSlice(value, 0, PyList_Size(value)) : NULL;
    if (!x || (list && ((Features *)read)->named && !raw)) {
        Py_XDECREF((PyObject *)x);
        state = -1;
        goto done;
    }
    Py_INCREF(read);
    asked->features = (Features *)read;
    asked->x = x;
    asked->raw = raw;
    state = 1;
done:
    Py_XDECREF(read);
    Py_DECREF(value);
    return state;
}

/* The unknown features of x join: their room was reserved. */
static void asked_join(const Asked *asked, Table *table) {
    names_join(&table->names, asked->x);
}
