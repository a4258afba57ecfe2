/* JSON as bytes -> Python objects, but the value of a member "features" becomes `Features`: no object for each word; and so do
   the numbers, or the base64, of a member "vector".

   `loads` gives None wherever something is unusual: not an object, wrong JSON, wrong UTF-8, half a surrogate pair, a name
   twice in one object, an integer of more than 18 digits, a number beyond LARGEST among the features, nesting beyond DEEPEST.
   Then the reader in Python decides what it is, or what is wrong with it. What is in items, rows, texts and truths stays plain.

   Feedback mostly repeats the features of its prediction: `loads(bytes, last)` gives `last` itself where its JSON stands again,
   to the byte. */

#define DEEPEST 24

static PyObject *read_value(Reader *reader);

/* A name of a feature: 0 read, 1 unusual, -1 an exception. */
static int read_feature_name(Reader *reader, Features *features, Entry *entry) {
    char *owned;
    size_t length;
    const char *text = read_text(reader, &length, &owned);
    if (!text) return PyErr_Occurred() ? -1 : 1;
    int state = !length;
    if (!state && owned) {
        char *copy = features_space(features, length);
        if (!copy) state = -1;
        else {
            memcpy(copy, owned, length);
            features->used += length;
            text = copy;
        }
    }
    free(owned);
    *entry = (Entry){0, text, length, 1.0};
    return state;
}

static int read_feature(Reader *reader, Features *features, int object) {
    Entry entry;
    int64_t whole;
    int state;
    if (!object && !features->named) {
        char name[24];
        if (!read_number(reader, &entry.value, &whole) || !(fabs(entry.value) <= LARGEST)) return 1;
        int length = PyOS_snprintf(name, sizeof name, "%zd", features->count);
        return features_copy(features, name, (size_t)length, entry.value) < 0 ? -1 : 0;
    }
    if (!next_is(reader, '"')) return 1;
    if ((state = read_feature_name(reader, features, &entry))) return state;
    if (object) {
        if (!next_is(reader, ':')) return 1;
        skip_space(reader);
        if (!read_number(reader, &entry.value, &whole) || !(fabs(entry.value) <= LARGEST)) return 1;
    }
    int new = features_put(features, entry.text, entry.length, entry.value);
    return new < 0 ? -1 : object && !new; /* of two members of one name, JSON readers take the last */
}

/* `last`, if its JSON stands here again; else NULL. */
static PyObject *read_again(Reader *reader) {
    const Features *last = reader->last;
    if (!last || !last->source) return NULL;
    size_t length = (size_t)(last->stop - last->start);
    if ((size_t)(reader->end - reader->at) < length) return NULL;
    if (memcmp(reader->at, PyBytes_AsString(last->source) + last->start, length)) return NULL;
    reader->at += length;
    Py_INCREF((PyObject *)last);
    return (PyObject *)last;
}

/* How many features are to come, by the marks up to the next bracket: memory is taken for no more than can be there. */
static Py_ssize_t room_for(const Reader *reader, int object, int named) {
    const unsigned char *stop = memchr(reader->at, object ? '}' : ']', (size_t)(reader->end - reader->at));
    Py_ssize_t length = (stop ? stop : reader->end) - reader->at, marks = 0;
    for (Py_ssize_t i = 0; i < length; i++) marks += reader->at[i] == (named ? '"' : ',');
    if (named) return (marks + 1) / 2;
    return object || !length ? 0 : marks + 1 < length / 2 + 1 ? marks + 1 : length / 2 + 1;
}

static PyObject *read_features(Reader *reader) {
    PyObject *again = read_again(reader);
    if (again) return again;
    const unsigned char *start = reader->at;
    int object = *reader->at++ == '{';
    skip_space(reader);
    int named = *reader->at == '"';
    Features *features = features_new(room_for(reader, object, named), named && !object, !named && !object);
    if (!features) return NULL;
    Py_INCREF(reader->source);
    features->source = reader->source;
    int state = 0;
    if (!next_is(reader, object ? '}' : ']')) do {
            skip_space(reader);
            state = read_feature(reader, features, object);
        } while (!state && next_is(reader, ','));
    else goto done;
    if (!state && !next_is(reader, object ? '}' : ']')) state = 1;
    if (state) {
        Py_DECREF(features);
        return NULL;
    }
done:
    features->start = start - reader->start;
    features->stop = reader->at - reader->start;
    return features_done(features);
}

/* A vector, behind its quote or bracket: NULL without an exception where it is unusual. Of base64, `json` is as it came. */
static PyObject *read_vector(Reader *reader) {
    const unsigned char *start = reader->at++;
    Features *features = features_new(0, 0, 1);
    if (!features) return NULL;
    int fine = 0;
    if (*start == '"') {
        const unsigned char *stop = memchr(reader->at, '"', (size_t)(reader->end - reader->at));
        fine = stop && vector_of_text(features, (const char *)reader->at, (size_t)(stop - reader->at));
        if (fine) {
            reader->at = stop + 1;
            Py_INCREF(features->source = reader->source);
            features->start = start - reader->start;
            features->stop = reader->at - reader->start;
        }
    } else {
        Py_ssize_t room = 0;
        double value;
        int64_t whole;
        do {
            skip_space(reader);
            if (features->width == room && vector_room(features, room = room ? 2 * room : 512)) break;
            fine = read_number(reader, &value, &whole) && vector_put(features, value);
        } while (fine && next_is(reader, ','));
        fine = fine && next_is(reader, ']');
    }
    if (fine) return (PyObject *)features;
    Py_DECREF(features);
    return NULL;
}

/* Whether a member, whose name ends with its quote, holds what is no instance. */
static int is_plain(const unsigned char *name, size_t length) {
    static const char *const names[] = {"items\"", "row\"", "text\"", "relevance\"", "truth\"", "served\""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t own = strlen(names[i]);
        if (length > own && !memcmp(name, names[i], own)) return 1;
    }
    return 0;
}

static PyObject *read_array(Reader *reader) {
    PyObject *list = PyList_New(0);
    if (!list || next_is(reader, ']')) return list;
    do {
        PyObject *value = read_value(reader);
        if (!value || PyList_Append(list, value)) {
            Py_XDECREF(value);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(value);
    } while (next_is(reader, ','));
    if (next_is(reader, ']')) return list;
    Py_DECREF(list);
    return NULL;
}

static PyObject *read_object(Reader *reader) {
    PyObject *dict = PyDict_New(), *key = NULL, *value = NULL;
    if (!dict || next_is(reader, '}')) return dict;
    do {
        if (!next_is(reader, '"')) goto wrong;
        const unsigned char *name = reader->at;
        int features = reader->end - name > 9 && !memcmp(name, "features\"", 9);
        if (features) { /* one text for all of them */
            reader->at += 9;
            Py_INCREF(key = features_word);
        } else
            key = read_string(reader);
        if (!key || !next_is(reader, ':')) goto wrong;
        skip_space(reader);
        size_t length = (size_t)(reader->at - name);
        features = features && !reader->plain;
        int plain = is_plain(name, length), vector = !reader->plain && length > 7 && !memcmp(name, "vector\"", 7);
        reader->plain += plain;
        value = features && (*reader->at == '{' || *reader->at == '[') ? read_features(reader)
                : vector && (*reader->at == '"' || *reader->at == '[') ? read_vector(reader)
                                                                        : read_value(reader);
        reader->plain -= plain;
        if (!value || PyDict_GetItemWithError(dict, key) || PyErr_Occurred() || PyDict_SetItem(dict, key, value)) goto wrong;
        Py_CLEAR(key);
        Py_CLEAR(value);
    } while (next_is(reader, ','));
    if (next_is(reader, '}')) return dict;
wrong:
    Py_XDECREF(key);
    Py_XDECREF(value);
    Py_DECREF(dict);
    return NULL;
}

static PyObject *read_word(Reader *reader, const char *word, PyObject *value) {
    size_t length = strlen(word);
    if (strncmp((const char *)reader->at, word, length)) return NULL;
    reader->at += length;
    Py_INCREF(value);
    return value;
}

/* NULL without an exception: unusual. */
static PyObject *read_value(Reader *reader) {
    skip_space(reader);
    double value;
    int64_t whole;
    switch (*reader->at) {
        case '"': reader->at++; return read_string(reader);
        case 't': return read_word(reader, "true", Py_True);
        case 'f': return read_word(reader, "false", Py_False);
        case 'n': return read_word(reader, "null", Py_None);
        case '{': case '[': {
            if (reader->depth == DEEPEST) return NULL;
            reader->depth++;
            PyObject *whole_value = *reader->at++ == '{' ? read_object(reader) : read_array(reader);
            reader->depth--;
            return whole_value;
        }
        default:
            switch (read_number(reader, &value, &whole)) {
                case 1: return PyLong_FromLongLong(whole);
                case 2: return PyFloat_FromDouble(value);
                default: return NULL;
            }
    }
}

/* The sentence is body_cost.py's. */
static PyObject *refuse_body(void) {
    PyObject *module = PyImport_ImportModule("feedrank.learners.kernel.body_cost");
    PyObject *none = module ? PyObject_CallMethod(module, "refuse_body", NULL) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(none);
    return NULL;
}

static PyObject *loads(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    char *bytes;
    Py_ssize_t length;
    if (count < 1 || count > 2) return PyErr_SetString(PyExc_TypeError, "loads(bytes, last=None)"), NULL;
    if (PyBytes_AsStringAndSize(arguments[0], &bytes, &length)) return NULL;
    const unsigned char *start = (unsigned char *)bytes;
    if (!body_affordable(start, (size_t)length)) return refuse_body();
    Features *last = count > 1 && Py_IS_TYPE(arguments[1], FeaturesType) ? (Features *)arguments[1] : NULL;
    Reader reader = {start, start, start + length, arguments[0], last, 0, 0};
    skip_space(&reader);
    PyObject *value = *reader.at == '{' ? read_value(&reader) : NULL;
    if (value) {
        skip_space(&reader);
        if (reader.at == reader.end) return value;
        Py_DECREF(value);
    }
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}
