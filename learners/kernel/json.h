/* JSON as bytes -> Python objects, but the value of a member "features" becomes `Features`: no object for each word.

   `loads` gives None wherever something is unusual: not an object, wrong JSON, wrong UTF-8, half a surrogate pair, a name
   twice in one object, an integer of more than 18 digits, a number beyond LARGEST among the features, nesting beyond DEEPEST.
   Then the reader in Python decides what it is, or what is wrong with it. The features of items stay plain objects. */

#define DEEPEST 24

typedef struct {
    const unsigned char *start, *at, *end; /* the byte at `end` is 0, as Python keeps its bytes */
    PyObject *source;
    int depth, items;
} Reader;

static PyObject *read_value(Reader *reader);

static inline void skip_space(Reader *reader) {
    while (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\r' || *reader->at == '\t') reader->at++;
}

static inline int next_is(Reader *reader, unsigned char byte) {
    skip_space(reader);
    if (*reader->at != byte) return 0;
    reader->at++;
    return 1;
}

/* The length of the UTF-8 sequence that starts here, 0 if it is none; the bytes end with a 0. */
static int utf8_length(const unsigned char *at) {
    if (at[0] < 0x80) return 1;
    if (at[0] < 0xc2 || at[0] > 0xf4 || (at[1] & 0xc0) != 0x80) return 0;
    if (at[0] < 0xe0) return 2;
    if ((at[2] & 0xc0) != 0x80) return 0;
    if (at[0] < 0xf0) return (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ? 0 : 3;
    if ((at[3] & 0xc0) != 0x80) return 0;
    return (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f) ? 0 : 4;
}

static int hex_digits(const unsigned char *at, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit > 15) return 0;
        *code = *code * 16 + digit;
    }
    return 1;
}

/* One escape, behind its backslash, as UTF-8: the bytes written, 0 if it is none. */
static int unescape(const unsigned char **at, char *out) {
    uint32_t code, low;
    unsigned char kind = *(*at)++;
    switch (kind) {
        case '"': case '\\': case '/': *out = (char)kind; return 1;
        case 'b': *out = '\b'; return 1;
        case 'f': *out = '\f'; return 1;
        case 'n': *out = '\n'; return 1;
        case 'r': *out = '\r'; return 1;
        case 't': *out = '\t'; return 1;
        case 'u': break;
        default: return 0;
    }
    if (!hex_digits(*at, &code)) return 0;
    *at += 4;
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || (*at)[0] != '\\' || (*at)[1] != 'u' || !hex_digits(*at + 2, &low)) return 0;
        if (low < 0xdc00 || low >= 0xe000) return 0;
        *at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code < 0x80) return *out = (char)code, 1;
    int length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00 >> length) | code);
    return length;
}

/* A string behind its quote: its bytes where they stand, or in `*owned` where it has escapes. NULL if it is none. */
static const char *read_text(Reader *reader, size_t *length, char **owned) {
    const unsigned char *start = reader->at, *at = start;
    *owned = NULL;
    while (*at != '"' && *at != '\\') {
        int step = *at < 0x20 ? 0 : utf8_length(at);
        if (!step) return NULL;
        at += step;
    }
    if (*at == '"') {
        reader->at = at + 1;
        *length = (size_t)(at - start);
        return (const char *)start;
    }
    /* An escape is never shorter than the UTF-8 that it stands for; a string ends at the latest where the bytes end. */
    const unsigned char *stop = at;
    while (*stop != '"') {
        if (*stop == '\\') stop++;
        if (stop >= reader->end) return NULL;
        stop++;
    }
    char *copy = malloc((size_t)(stop - start) + 4), *out = copy;
    if (!copy) return (const char *)PyErr_NoMemory();
    memcpy(copy, start, (size_t)(at - start));
    out += at - start;
    while (*at != '"') {
        int step;
        if (*at == '\\') {
            at++;
            step = unescape(&at, out);
        } else {
            step = *at < 0x20 ? 0 : utf8_length(at);
            for (int i = 0; i < step; i++) out[i] = (char)at[i];
            at += step;
        }
        if (!step) {
            free(copy);
            return NULL;
        }
        out += step;
    }
    reader->at = at + 1;
    *length = (size_t)(out - copy);
    return *owned = copy;
}

static PyObject *read_string(Reader *reader) {
    size_t length;
    char *owned;
    const char *text = read_text(reader, &length, &owned);
    PyObject *string = text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "strict") : NULL;
    free(owned);
    return string;
}

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number: 1 if it is an integer of at most 18 digits (in `*whole`), 2 if it is real, 0 if it is none or unusual.

   Up to 15 digits and a power of ten up to 22 are exact, so that one rounding gives the nearest number. */
static int read_number(Reader *reader, double *value, int64_t *whole) {
    const unsigned char *start = reader->at, *at = start;
    int negative = *at == '-', digits = 0, fraction = 0, exponent = 0, real = 0;
    uint64_t mantissa = 0;
    at += negative;
    if (*at == '0' && at[1] >= '0' && at[1] <= '9') return 0;
    for (; *at >= '0' && *at <= '9'; at++, digits++) mantissa = digits < 18 ? mantissa * 10 + (*at - '0') : mantissa;
    if (!digits) return 0;
    if (*at == '.') {
        real = 1;
        const unsigned char *point = ++at;
        for (; *at >= '0' && *at <= '9'; at++, digits++) mantissa = digits < 18 ? mantissa * 10 + (*at - '0') : mantissa;
        fraction = (int)(at - point);
        if (!fraction) return 0;
    }
    if (*at == 'e' || *at == 'E') {
        real = 1;
        at++;
        int below = *at == '-', count = 0;
        if (*at == '-' || *at == '+') at++;
        for (; *at >= '0' && *at <= '9'; at++, count++) exponent = exponent < 9999 ? exponent * 10 + (*at - '0') : exponent;
        if (!count) return 0;
        if (below) exponent = -exponent;
    }
    reader->at = at;
    if (!real) {
        if (digits > 18 || (negative && !mantissa)) return 0;
        *whole = negative ? -(int64_t)mantissa : (int64_t)mantissa;
        *value = (double)*whole;
        return 1;
    }
    exponent -= fraction;
    if (digits <= 15 && exponent >= -22 && exponent <= 22) {
        double size = (double)mantissa;
        size = exponent < 0 ? size / TENS[-exponent] : size * TENS[exponent];
        *value = negative ? -size : size;
        return 2;
    }
    char *stop;
    *value = PyOS_string_to_double((const char *)start, &stop, NULL);
    if (PyErr_Occurred()) PyErr_Clear();
    else if ((const unsigned char *)stop == at && isfinite(*value)) return 2;
    return 0;
}

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

static PyObject *read_features(Reader *reader) {
    const unsigned char *start = reader->at;
    int object = *reader->at++ == '{';
    skip_space(reader);
    Features *features = features_new(128, *reader->at == '"' && !object);
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
        if (!(key = read_string(reader)) || !next_is(reader, ':')) goto wrong;
        skip_space(reader);
        size_t length = (size_t)(reader->at - name);
        int features = length > 9 && !memcmp(name, "features\"", 9) && !reader->items;
        int items = length > 6 && !memcmp(name, "items\"", 6);
        reader->items += items;
        value = features && (*reader->at == '{' || *reader->at == '[') ? read_features(reader) : read_value(reader);
        reader->items -= items;
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

static PyObject *loads(PyObject *module, PyObject *source) {
    (void)module;
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(source, &bytes, &length)) return NULL;
    Reader reader = {(unsigned char *)bytes, (unsigned char *)bytes, (unsigned char *)bytes + length, source, 0, 0};
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
