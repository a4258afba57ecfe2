/* What Python sees of the blocks of features: see feature_blocks.py. */

static PyObject *blocks_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"named", NULL};
    int named = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|p", words, &named)) return NULL;
    FeatureBlocks *blocks = (FeatureBlocks *)PyType_GenericAlloc(type, 0);
    if (!blocks) return NULL;
    blocks->numbers = block_new(16, 8);
    blocks->right = block_new(16, 8);
    blocks->wrong = block_new(16, 8);
    blocks->room = blocks->width = 16;
    blocks->words = named ? block_new(16, 8) : NULL;
    blocks->shared = named ? block_new(16, 8) : NULL;
    if (!blocks->numbers || !blocks->right || !blocks->wrong || (named && (!blocks->words || !blocks->shared))) Py_CLEAR(blocks);
    return (PyObject *)blocks;
}

static void blocks_dealloc(PyObject *self) {
    FeatureBlocks *blocks = (FeatureBlocks *)self;
    PyTypeObject *type = Py_TYPE(self);
    names_clear(&blocks->names);
    Py_XDECREF((PyObject *)blocks->numbers);
    Py_XDECREF((PyObject *)blocks->right);
    Py_XDECREF((PyObject *)blocks->wrong);
    Py_XDECREF((PyObject *)blocks->words);
    Py_XDECREF((PyObject *)blocks->shared);
    label_words_clear(&blocks->label_words);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Take in the blocks of the features of a table that have joined; all of them, or nothing. */
static PyObject *blocks_grow(PyObject *self, PyObject *object) {
    FeatureBlocks *blocks = (FeatureBlocks *)self;
    if (!Py_IS_TYPE(object, TableType)) return PyErr_SetString(PyExc_TypeError, "blocks are those of a table"), NULL;
    const Names *names = &((Table *)object)->names;
    size_t rows = blocks->rows, count = blocks->names.count;
    for (size_t row = rows; row < names->count; row++) {
        const char *name = name_start(names, row);
        size_t whole = name_length(names, row), length = block_length(name, whole);
        if (blocks_reserve(blocks, names->count, 1, length)) {
            blocks_cut(blocks, rows, count);
            return NULL;
        }
        ((int64_t *)blocks->numbers->data)[row] = (int64_t)names_add(&blocks->names, hash_of(name, length), name, length);
        if (blocks->words) ((int64_t *)blocks->words->data)[row] = word_of(&blocks->label_words, name, whole);
        blocks->rows = row + 1;
    }
    Py_RETURN_NONE;
}

/* shrink(rows, count): take growth back. It needs no memory. */
static PyObject *blocks_shrink(PyObject *self, PyObject *arguments) {
    FeatureBlocks *blocks = (FeatureBlocks *)self;
    Py_ssize_t rows, count;
    if (!PyArg_ParseTuple(arguments, "nn", &rows, &count)) return NULL;
    if (rows < 0 || count < 0 || (size_t)rows > blocks->rows || (size_t)count > blocks->names.count) {
        PyErr_SetString(PyExc_ValueError, "blocks cannot shrink to more than they are");
        return NULL;
    }
    blocks_cut(blocks, (size_t)rows, (size_t)count);
    Py_RETURN_NONE;
}

static int blocks_named(const FeatureBlocks *blocks) {
    if (blocks->words) return 1;
    PyErr_SetString(PyExc_ValueError, "these blocks do not look at the names of labels");
    return 0;
}

/* name(table, words): one more label joins. */
static PyObject *blocks_name(PyObject *self, PyObject *arguments) {
    FeatureBlocks *blocks = (FeatureBlocks *)self;
    PyObject *table, *words;
    if (!blocks_named(blocks) || !PyArg_ParseTuple(arguments, "O!O!", TableType, &table, &PyList_Type, &words)) return NULL;
    if (label_words_name(&blocks->label_words, (Table *)table, &blocks->names, words, blocks->words->data, blocks->rows)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *blocks_unname(PyObject *self, PyObject *words) {
    FeatureBlocks *blocks = (FeatureBlocks *)self;
    if (!blocks_named(blocks)) return NULL;
    if (!PyList_Check(words)) return PyErr_SetString(PyExc_TypeError, "words are a list"), NULL;
    if (label_words_unname(&blocks->label_words, words)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *blocks_find_word(PyObject *self, PyObject *word) {
    return blocks_named((FeatureBlocks *)self) ? names_number(&((FeatureBlocks *)self)->label_words.words, word) : NULL;
}

static PyObject *blocks_labels_of(PyObject *self, PyObject *number) {
    const FeatureBlocks *blocks = (FeatureBlocks *)self;
    const int64_t *labels = NULL;
    Py_ssize_t word = PyLong_AsSsize_t(number);
    if (PyErr_Occurred() || !blocks_named(blocks)) return NULL;
    if (word < 0 || (size_t)word >= blocks->label_words.words.count) return PyErr_SetString(PyExc_IndexError, "no such word"), NULL;
    size_t count = labels_with(&blocks->label_words, word, &labels);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t k = 0; list && k < count; k++) {
        PyObject *label = PyLong_FromLongLong(labels[k]);
        if (!label || PyList_SetItem(list, (Py_ssize_t)k, label)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *blocks_is_named(PyObject *self, void *none) { return (void)none, PyBool_FromLong(((FeatureBlocks *)self)->words != NULL); }

static Py_ssize_t blocks_length(PyObject *self) { return (Py_ssize_t)((FeatureBlocks *)self)->names.count; }
static PyObject *blocks_item(PyObject *self, Py_ssize_t number) { return names_item(&((FeatureBlocks *)self)->names, number); }
static PyObject *blocks_find(PyObject *self, PyObject *name) { return names_number(&((FeatureBlocks *)self)->names, name); }
static PyObject *blocks_rows(PyObject *self, void *none) { return (void)none, PyLong_FromSize_t(((FeatureBlocks *)self)->rows); }

static PyObject *blocks_numbers(PyObject *self, void *none) {
    Block *numbers = ((FeatureBlocks *)self)->numbers;
    return (void)none, array_on((PyObject *)numbers, numbers->data, "q", (Py_ssize_t)((FeatureBlocks *)self)->rows, -1, 0);
}

static PyObject *blocks_right(PyObject *self, void *none) {
    Block *right = ((FeatureBlocks *)self)->right;
    return (void)none, array_on((PyObject *)right, right->data, "d", blocks_length(self), -1, 0);
}

static PyObject *blocks_wrong(PyObject *self, void *none) {
    Block *wrong = ((FeatureBlocks *)self)->wrong;
    return (void)none, array_on((PyObject *)wrong, wrong->data, "d", blocks_length(self), -1, 0);
}

static PyObject *blocks_labels(PyObject *self, void *none) {
    const FeatureBlocks *blocks = (FeatureBlocks *)self;
    return (void)none, blocks_named(blocks) ? PyLong_FromLongLong(blocks->label_words.count) : NULL;
}

static PyObject *blocks_words(PyObject *self, void *none) {
    Block *words = ((FeatureBlocks *)self)->words;
    if (!blocks_named((FeatureBlocks *)self)) return NULL;
    return (void)none, array_on((PyObject *)words, words->data, "q", (Py_ssize_t)((FeatureBlocks *)self)->rows, -1, 0);
}

static PyObject *blocks_shared(PyObject *self, void *none) {
    Block *shared = ((FeatureBlocks *)self)->shared;
    if (!blocks_named((FeatureBlocks *)self)) return NULL;
    return (void)none, array_on((PyObject *)shared, shared->data, "d", blocks_length(self), -1, 0);
}

static PyGetSetDef blocks_getset[] = {{"rows", blocks_rows, NULL, "Rows in use.", NULL},
                                      {"numbers", blocks_numbers, NULL, "The block of every row.", NULL},
                                      {"right", blocks_right, NULL, "How often each was right.", NULL},
                                      {"wrong", blocks_wrong, NULL, "How often each was wrong.", NULL},
                                      {"named", blocks_is_named, NULL, "Whether words of labels' names count for them.", NULL},
                                      {"labels", blocks_labels, NULL, "The labels whose names are known.", NULL},
                                      {"words", blocks_words, NULL, "The word of every row, -1 where it is none.", NULL},
                                      {"shared", blocks_shared, NULL, "The weights that all labels share.", NULL},
                                      {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef blocks_methods[] = {{"grow", blocks_grow, METH_O, "Take in the blocks of the features that have joined."},
                                       {"shrink", blocks_shrink, METH_VARARGS, "Take growth back."},
                                       {"find", blocks_find, METH_O, "The number of a block, -1 if it has not joined."},
                                       {"name", blocks_name, METH_VARARGS, "One more label joins, with these words."},
                                       {"unname", blocks_unname, METH_O, "The label that joined last, with these words, leaves."},
                                       {"find_word", blocks_find_word, METH_O, "The number of a word, -1 if no label had it yet."},
                                       {"labels_of", blocks_labels_of, METH_O, "The labels that a word labels_of_word for."},
                                       {NULL, NULL, 0, NULL}};
static PyType_Slot blocks_slots[] = {{Py_tp_new, blocks_new},
                                     {Py_tp_dealloc, blocks_dealloc},
                                     {Py_tp_getset, blocks_getset},
                                     {Py_tp_methods, blocks_methods},
                                     {Py_sq_length, blocks_length},
                                     {Py_sq_item, blocks_item},
                                     {Py_tp_doc, "Blocks of the features of a table: FeatureBlocks(named=False)."},
                                     {0, NULL}};
static PyType_Spec blocks_spec = {"feedrank.learners.kernel._native.FeatureBlocks", sizeof(FeatureBlocks), 0, Py_TPFLAGS_DEFAULT,
                                  blocks_slots};
