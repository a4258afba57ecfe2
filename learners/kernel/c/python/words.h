/* words.py: the features of folded text. Words are put as they are found, in the order of the text; pairs are made of their
   numbers, and parts of the distinct words. */

static Kinds kinds;

typedef struct {
    Features *features;
    uint32_t *order; /* the words of a field as they follow each other, by their numbers */
    size_t count, room;
    char *open; /* the word that may go on in the next piece */
    size_t used, capacity;
    const char *prefix; /* what stands before the names of a field */
    size_t before;
} TextReader;

/* The page of kinds that holds a character: Python knows what is a letter. -1 with an exception. */
static int fill_page(uint32_t page) {
    unsigned char *filled = malloc(256);
    if (!filled) return PyErr_NoMemory(), -1;
    for (uint32_t i = 0; i < 256; i++) {
        PyObject *text = PyUnicode_FromOrdinal((int)(page << 8 | i));
        PyObject *is = text ? PyObject_CallMethod(text, "isalnum", NULL) : NULL;
        Py_XDECREF(text);
        if (!is) return free(filled), -1;
        filled[i] = (unsigned char)kind_of(page << 8 | i, is == Py_True);
        Py_DECREF(is);
    }
    if (kinds.pages[page])
        free(filled); /* another thread was first */
    else
        kinds.pages[page] = filled;
    return 0;
}

/* One more name, of two texts behind the field's prefix: its number, -1 with an exception. */
static Py_ssize_t put_name(TextReader *reader, const char *one, size_t first, const char *two, size_t second) {
    size_t length = reader->before + first + second;
    char *name = features_space(reader->features, length);
    if (!name) return -1;
    memcpy(name, reader->prefix, reader->before);
    if (first) memcpy(name + reader->before, one, first); /* `open` may not be there yet */
    memcpy(name + reader->before + first, two, second);
    Py_ssize_t number = features_number(reader->features, name, length, 1.0);
    if (number == reader->features->count - 1 && reader->features->entries[number].text == name)
        reader->features->used += length;
    return number;
}

/* The word that is open, and `more` behind it, ends here. */
static int put_word(TextReader *reader, const char *more, size_t length) {
    if (reader->count == reader->room) {
        size_t room = reader->room ? 2 * reader->room : 256;
        uint32_t *order = realloc(reader->order, room * sizeof *order);
        if (!order) return PyErr_NoMemory(), -1;
        reader->order = order;
        reader->room = room;
    }
    Py_ssize_t number = put_name(reader, reader->open, reader->used, more, length);
    if (number < 0) return -1;
    reader->order[reader->count++] = (uint32_t)number;
    reader->used = 0;
    return 0;
}

static int keep_open(TextReader *reader, const char *text, size_t length) {
    if (reader->used + length > reader->capacity) {
        size_t capacity = 2 * reader->capacity + length + 64;
        char *open = realloc(reader->open, capacity);
        if (!open) return PyErr_NoMemory(), -1;
        reader->open = open;
        reader->capacity = capacity;
    }
    memcpy(reader->open + reader->used, text, length);
    reader->used += length;
    return 0;
}

static int read_piece(TextReader *reader, const char *text, size_t length) {
    size_t at = 0;
    Word word;
    uint32_t missing;
    for (int state; (state = next_word(&kinds, text, length, &at, reader->used > 0, &word, &missing));) {
        if (state < 0)
            state = fill_page(missing);
        else if (word.open)
            state = keep_open(reader, text + word.start, word.stop - word.start);
        else
            state = put_word(reader, text + word.start, word.stop - word.start);
        if (state < 0) return -1;
        if (at >= length) break;
    }
    return 0;
}

static int read_pieces(TextReader *reader, PyObject *pieces) {
    PyObject *iterator = PyObject_GetIter(pieces), *piece;
    int state = iterator ? 0 : -1;
    while (!state && (piece = PyIter_Next(iterator))) {
        PyObject *owned = NULL;
        Py_ssize_t length;
        const char *text = PyUnicode_Check(piece) ? utf8_of(piece, &length, &owned) : NULL;
        if (!text && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a piece of text must be text");
        state = text ? read_piece(reader, text, (size_t)length) : -1;
        Py_XDECREF(owned);
        Py_DECREF(piece);
    }
    Py_XDECREF(iterator);
    if (!state && PyErr_Occurred()) state = -1;
    return !state && reader->used ? put_word(reader, "", 0) : state;
}

/* Other threads get their turn, if they wait for it: once in some hundred names. Nobody else has these features yet. */
static void let_others_run(size_t names) {
    if (names % 512 != 511) return;
    PyThreadState *own = PyEval_SaveThread();
    PyEval_RestoreThread(own);
}

/* The pairs of neighbours. A name may move while others are put, so that it is looked for each time. */
static int put_pairs(TextReader *reader) {
    for (size_t i = 1; i < reader->count; i++) {
        let_others_run(i);
        const Entry *one = &reader->features->entries[reader->order[i - 1]],
                    *two = &reader->features->entries[reader->order[i]];
        size_t before = reader->before, length = one->length + 1 + two->length - before;
        char *pair = features_space(reader->features, length);
        if (!pair) return -1;
        memcpy(pair, one->text, one->length);
        pair[one->length] = ' ';
        memcpy(pair + one->length + 1, two->text + before, two->length - before);
        int new = features_put(reader->features, pair, length, 1.0);
        if (new < 0) return -1;
        if (new) reader->features->used += length;
    }
    return 0;
}

/* The parts of one word, which is entry `number`. */
static int put_parts(TextReader *reader, Py_ssize_t number) {
    size_t length = reader->features->entries[number].length - reader->before, bounds[LONGEST + PART + 1], count = 0;
    let_others_run((size_t)number);
    reader->used = 0;
    if (keep_open(reader, "^", 1)) return -1;
    if (keep_open(reader, reader->features->entries[number].text + reader->before, length) || keep_open(reader, "$", 1)) return -1;
    for (size_t at = 0; count < LONGEST + PART; at = behind(reader->open, reader->used, at)) {
        bounds[count++] = at;
        if (at >= reader->used) break;
    }
    reader->used = 0; /* its bytes stay where they are */
    for (size_t i = 0; i + PART < count; i++)
        if (put_name(reader, "~", 1, reader->open + bounds[i], bounds[i + PART] - bounds[i]) < 0) return -1;
    return 0;
}

/* text_features(fields, parts): the features of (prefix, pieces of folded text) each. */
static PyObject *text_features(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *fields;
    int parts, state = 0;
    if (!PyArg_ParseTuple(arguments, "O!p", &PyList_Type, &fields, &parts)) return NULL;
    TextReader reader = {.features = features_new(256, 1, 0)};
    if (!reader.features) return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(fields) && !state; i++) {
        PyObject *field = PyList_GetItem(fields, i), *prefix, *pieces, *owned = NULL;
        Py_ssize_t length;
        Py_XINCREF(field);
        if (field && PyArg_ParseTuple(field, "UO", &prefix, &pieces) && (reader.prefix = utf8_of(prefix, &length, &owned))) {
            Py_ssize_t start = reader.features->count, stop;
            reader.before = (size_t)length;
            reader.count = 0;
            state = read_pieces(&reader, pieces);
            stop = reader.features->count;
            if (!state) state = put_pairs(&reader);
            for (Py_ssize_t word = start; word < stop && parts && !state; word++) state = put_parts(&reader, word);
        } else
            state = -1;
        Py_XDECREF(owned);
        Py_XDECREF(field);
    }
    free(reader.order);
    free(reader.open);
    if (!state) return features_done(reader.features);
    Py_DECREF(reader.features);
    return NULL;
}

/* beside(features, vector): a copy with a vector. */
static PyObject *features_beside(PyObject *module, PyObject *arguments) {
    (void)module;
    Features *one;
    PyObject *vector;
    if (!PyArg_ParseTuple(arguments, "O!O", FeaturesType, &one, &vector)) return NULL;
    Features *both = features_new(one->count, one->named, 1);
    size_t length = 0;
    for (Py_ssize_t i = 0; i < one->count; i++) length += one->entries[i].length;
    char *text = both ? features_space(both, length + 1) : NULL; /* never of no bytes, which have no place */
    if (!text || features_set_vector(both, vector)) {
        Py_XDECREF((PyObject *)both);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < one->count; i++) {
        const Entry *entry = &one->entries[i];
        memcpy(text + both->used, entry->text, entry->length);
        both->entries[both->count++] = (Entry){entry->hash, text + both->used, entry->length, entry->value};
        both->used += entry->length;
    }
    return features_done(both);
}

/* together(features, words): a word that is named as a feature adds 1 to it. */
static PyObject *features_together(PyObject *module, PyObject *arguments) {
    (void)module;
    Features *one, *two;
    if (!PyArg_ParseTuple(arguments, "O!O!", FeaturesType, &one, FeaturesType, &two)) return NULL;
    Features *both = features_new(one->count + two->count, 0, 0);
    int state = both ? 0 : -1;
    for (Py_ssize_t i = 0; i < one->count + two->count && !state; i++) {
        const Entry *entry = i < one->count ? &one->entries[i] : &two->entries[i - one->count];
        double value = i < one->count ? entry->value : 1.0;
        int new = features_copy(both, entry->text, entry->length, value);
        if (!new && i >= one->count)
            both->entries[features_number(both, entry->text, entry->length, value)].value += 1.0;
        state = new < 0 ? -1 : 0;
    }
    if (!state) return features_done(both);
    Py_XDECREF((PyObject *)both);
    return NULL;
}
