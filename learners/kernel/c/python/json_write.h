/* A ranking -> JSON, in the very bytes that the service's JSON library writes: no object for each entry.

   ranking_json(key, ranking, probabilities): entries {key: name, "score": score} and, where there are any, "probability". None
   where something is unusual: a name that must be escaped, a number that is not finite. Then the service writes it. */

typedef struct {
    char *bytes;
    size_t used, room;
} Writing;

static int writing_room(Writing *out, size_t more) {
    if (out->used + more <= out->room) return 0;
    size_t room = 2 * out->room + more + 256;
    char *bytes = realloc(out->bytes, room);
    if (!bytes) return PyErr_NoMemory(), -1;
    out->bytes = bytes;
    out->room = room;
    return 0;
}

static int write_bytes(Writing *out, const char *bytes, size_t length) {
    if (writing_room(out, length)) return -1;
    memcpy(out->bytes + out->used, bytes, length);
    out->used += length;
    return 0;
}

#define WRITE(out, literal) write_bytes(out, literal, sizeof literal - 1)

/* The bytes of a positive whole number; the end of them. */
static char *write_whole(char *at, uint64_t number) {
    char digits[20];
    int count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count) *at++ = digits[--count];
    return at;
}

/* 0: written; 1: not finite; -1: an exception. */
static int write_number(Writing *out, double value) {
    char digits[32];
    int point, count;
    if (!isfinite(value)) return 1;
    if (writing_room(out, 64)) return -1;
    char *at = out->bytes + out->used;
    if (signbit(value)) *at++ = '-', value = -value;
    if (value < 1e15 && value == (double)(uint64_t)value) {
        at = write_whole(at, (uint64_t)value);
        *at++ = '.', *at++ = '0';
    } else {
        uint64_t number;
        point = shortest(value, &number);
        for (; number % 10 == 0; point++) number /= 10;
        count = (int)(write_whole(digits, number) - digits);
        point += count; /* 0.digits * 10^point */
        if (point > 0 && point <= 16) {
            for (int i = 0; i < count || i < point; i++) {
                if (i == point) *at++ = '.';
                *at++ = i < count ? digits[i] : '0';
            }
            if (count <= point) *at++ = '.', *at++ = '0';
        } else if (point <= 0 && point > -5) {
            *at++ = '0', *at++ = '.';
            for (int i = point; i < 0; i++) *at++ = '0';
            for (int i = 0; i < count; i++) *at++ = digits[i];
        } else {
            *at++ = digits[0];
            if (count > 1) *at++ = '.';
            for (int i = 1; i < count; i++) *at++ = digits[i];
            *at++ = 'e';
            *at++ = --point < 0 ? '-' : '+';
            if (point < 0) point = -point;
            at = write_whole(at, (uint64_t)point);
        }
    }
    out->used = (size_t)(at - out->bytes);
    return 0;
}

/* A text in quotes: 0, 1 if something in it must be escaped, -1 with an exception. */
static int write_text(Writing *out, PyObject *object) {
    PyObject *owned;
    Py_ssize_t length;
    if (!PyUnicode_Check(object)) return 1;
    const char *text = utf8_of(object, &length, &owned);
    if (!text) return -1;
    int state = 0;
    for (Py_ssize_t i = 0; i < length && !state; i++)
        state = (unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\';
    if (!state) state = WRITE(out, "\"") || write_bytes(out, text, (size_t)length) || WRITE(out, "\"") ? -1 : 0;
    Py_XDECREF(owned);
    return state;
}

static int write_entry(Writing *out, PyObject *key, PyObject *pair, PyObject *probability) {
    if (!Py_IS_TYPE(pair, &PyTuple_Type) || PyTuple_Size(pair) != 2) return 1;
    PyObject *score = PyTuple_GetItem(pair, 1);
    if (!Py_IS_TYPE(score, &PyFloat_Type) || (probability && !Py_IS_TYPE(probability, &PyFloat_Type))) return 1;
    int state = WRITE(out, "{") ? -1 : write_text(out, key);
    if (!state) state = WRITE(out, ":") ? -1 : write_text(out, PyTuple_GetItem(pair, 0));
    if (!state) state = WRITE(out, ",\"score\":") ? -1 : write_number(out, PyFloat_AsDouble(score));
    if (!state && probability)
        state = WRITE(out, ",\"probability\":") ? -1 : write_number(out, PyFloat_AsDouble(probability));
    return state ? state : WRITE(out, "}");
}

static PyObject *ranking_json(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (count != 3 || !PyUnicode_Check(arguments[0]) || !Py_IS_TYPE(arguments[1], &PyList_Type) ||
        !Py_IS_TYPE(arguments[2], &PyList_Type)) {
        PyErr_SetString(PyExc_TypeError, "ranking_json(key, ranking, probabilities)");
        return NULL;
    }
    PyObject *ranking = arguments[1], *probabilities = arguments[2], *result = NULL;
    Py_ssize_t entries = PyList_Size(ranking), likely = PyList_Size(probabilities);
    if (likely && likely != entries) Py_RETURN_NONE;
    Writing out = {0};
    int state = WRITE(&out, "[") ? -1 : 0;
    for (Py_ssize_t i = 0; i < entries && !state; i++) {
        if (i && WRITE(&out, ",")) state = -1;
        else state = write_entry(&out, arguments[0], PyList_GetItem(ranking, i), likely ? PyList_GetItem(probabilities, i) : NULL);
    }
    if (!state && WRITE(&out, "]")) state = -1;
    if (!state) result = PyBytes_FromStringAndSize(out.bytes, (Py_ssize_t)out.used);
    free(out.bytes);
    if (state > 0) Py_RETURN_NONE;
    return result;
}
