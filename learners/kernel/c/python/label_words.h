/* Features that are words of the labels' names: the labels that each one matches, and how much it adds. See label_words.py.

     m_b(x, l) = sum of x_j / sqrt(k_j) over the features j of block b whose word is in the name of label l
     t_l      += sum_b s_b m_b(x, l)            s_b <- s_b - eta sum_l g_l m_b(x, l)            h = |x|^2 + sum m_b(x, l)^2

   Sums run over the features from the first to the last, blocks stand in the order in which they are met. */

#define MOST 16

typedef struct {
    Names words;
    int64_t *labels; /* MOST a word: the first labels that have it */
    int64_t *counts; /* how many have it */
    size_t room;     /* for words */
    int64_t count;   /* labels that were named */
} LabelWords;

/* What a round has to know of the words of its x: m, a row for each of `blocks`. */
typedef struct {
    int64_t *words; /* the word of every feature but the bias, -1 where it is none */
    int64_t *blocks, *places; /* the block of a row of m, and the row of a block, -1 where it has none */
    double *m, *along; /* rows of one number a label; sum_l g_l m_b of each, once a step is taken */
    size_t features, width, cells; /* room for these */
    size_t rows, labels;
} NameMatches;

static void label_words_clear(LabelWords *own) {
    names_clear(&own->words);
    free(own->labels);
    free(own->counts);
}

static void matches_clear(NameMatches *matches) {
    free(matches->words);
    free(matches->blocks);
    free(matches->m);
}

/* What stands behind the first colon; all of a name that has none. */
static inline const char *word_start(const char *name, size_t length) {
    const char *colon = memchr(name, ':', length);
    return colon ? colon + 1 : name;
}

/* The word of a feature, -1 if no label had it yet. */
static int64_t word_of(const LabelWords *own, const char *name, size_t length) {
    const char *word = word_start(name, length);
    size_t rest = length - (size_t)(word - name);
    return own->words.count ? (int64_t)names_find(&own->words, hash_of(word, rest), word, rest) : -1;
}

/* The labels that a word labels_of_word for: how many. */
static inline size_t labels_with(const LabelWords *own, int64_t word, const int64_t **labels) {
    if (word < 0 || own->counts[word] > MOST) return 0;
    *labels = own->labels + (size_t)word * MOST;
    return (size_t)own->counts[word];
}

/* Room for `more` words of `bytes` bytes in all: -1 with an exception, and nothing changed. */
static int label_words_reserve(LabelWords *own, size_t more, size_t bytes) {
    size_t count = own->words.count + more;
    if (names_reserve(&own->words, more, bytes)) return -1;
    if (count <= own->room) return 0;
    size_t room = count > 2 * own->room ? count : 2 * own->room;
    int64_t *labels = realloc(own->labels, room * MOST * sizeof *labels);
    if (labels) own->labels = labels;
    int64_t *counts = labels ? realloc(own->counts, room * sizeof *counts) : NULL;
    if (!counts) return PyErr_NoMemory(), -1;
    own->counts = counts;
    own->room = room;
    return 0;
}

/* The rows of a table whose word is this one, in any of the blocks, are of that word; -1 with an exception. */
static int word_rows(const Table *table, const Names *blocks, const char *word, size_t length, int64_t number, int64_t *rows,
                     size_t count) {
    size_t longest = 0;
    for (size_t b = 0; b < blocks->count; b++) longest = name_length(blocks, b) > longest ? name_length(blocks, b) : longest;
    char *name = malloc(longest + length + 1);
    if (!name) return PyErr_NoMemory(), -1;
    for (size_t b = 0; b < blocks->count; b++) {
        size_t own = name_length(blocks, b);
        memcpy(name, name_start(blocks, b), own);
        name[own] = ':';
        memcpy(name + own + 1, word, length);
        Py_ssize_t row = names_find(&table->names, hash_of(name, own + 1 + length), name, own + 1 + length);
        if (row >= 0 && (size_t)row < count) rows[row] = number;
    }
    if (!memchr(word, ':', length)) {
        Py_ssize_t row = names_find(&table->names, hash_of(word, length), word, length);
        if (row >= 0 && (size_t)row < count) rows[row] = number;
    }
    free(name);
    return 0;
}

/* One more label, with a list of words: -1 with an exception. Words may have joined then, which no label has. */
static int label_words_name(LabelWords *own, const Table *table, const Names *blocks, PyObject *list, int64_t *rows, size_t count) {
    Py_ssize_t words = PyList_Size(list), length;
    for (int join = 0; join < 2; join++) /* first what can fail */
        for (Py_ssize_t i = 0; i < words; i++) {
            PyObject *text = PyList_GetItem(list, i), *owned = NULL;
            if (!PyUnicode_Check(text)) return PyErr_SetString(PyExc_TypeError, "words are text"), -1;
            const char *word = utf8_of(text, &length, &owned);
            if (!word) return -1;
            uint64_t hash = hash_of(word, (size_t)length);
            int failed = 0;
            if (join) {
                Py_ssize_t number = names_find(&own->words, hash, word, (size_t)length);
                int64_t have = number < 0 ? MOST : own->counts[number];
                if (have < MOST) own->labels[number * MOST + have] = own->count;
                if (number >= 0) own->counts[number]++;
            } else if (!(failed = label_words_reserve(own, 1, (size_t)length))) {
                size_t before = own->words.count, number = names_add(&own->words, hash, word, (size_t)length);
                if (number == before) own->counts[number] = 0;
                failed = word_rows(table, blocks, word, (size_t)length, (int64_t)number, rows, count);
            }
            Py_XDECREF(owned);
            if (failed) return -1;
        }
    own->count++;
    return 0;
}

/* The label that joined last, with a list of words, leaves: -1 with an exception. */
static int label_words_unname(LabelWords *own, PyObject *list) {
    Py_ssize_t length;
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        PyObject *owned = NULL;
        const char *word = utf8_of(PyList_GetItem(list, i), &length, &owned);
        if (!word) return -1;
        Py_ssize_t number = names_find(&own->words, hash_of(word, (size_t)length), word, (size_t)length);
        if (number >= 0 && own->counts[number] > 0) own->counts[number]--;
        Py_XDECREF(owned);
    }
    if (own->count > 0) own->count--;
    return 0;
}

/* Room for so many features and blocks: -1 with an exception. */
static int matches_reserve(NameMatches *matches, size_t features, size_t width) {
    if (features > matches->features || !matches->words) {
        int64_t *words = malloc((2 * features + 1) * sizeof *words);
        if (!words) return PyErr_NoMemory(), -1;
        free(matches->words);
        matches->words = words;
        matches->features = 2 * features;
    }
    if (width > matches->width || !matches->blocks) {
        int64_t *blocks = malloc((4 * width + 2) * sizeof *blocks);
        if (!blocks) return PyErr_NoMemory(), -1;
        free(matches->blocks);
        matches->blocks = blocks;
        matches->places = blocks + 2 * width + 1;
        matches->width = 2 * width;
    }
    return 0;
}

/* m of x, whose features are in the blocks `own` of `width` in all; `rows` are the words of rows. -1 with an exception. */
static int matches_find(NameMatches *matches, const LabelWords *label_words, const int64_t *rows, const Vector *x, size_t first,
                       const int64_t *own, size_t width, size_t labels) {
    size_t known = (size_t)x->known - first, features = known + (size_t)x->unknown;
    const int64_t *labels_of_word = NULL;
    if (matches_reserve(matches, features, width)) return -1;
    for (size_t i = 0; i < known; i++) matches->words[i] = rows[x->rows[i + first]];
    for (size_t i = 0, start = 0; i < (size_t)x->unknown; start = x->ends[i++])
        matches->words[known + i] = word_of(label_words, x->text + start, x->ends[i] - start);
    for (size_t b = 0; b < width; b++) matches->places[b] = -1;
    matches->rows = 0;
    matches->labels = labels;
    for (size_t i = 0; i < features; i++)
        if (matches->words[i] >= 0 && matches->places[own[i]] < 0 && labels_with(label_words, matches->words[i], &labels_of_word)) {
            matches->places[own[i]] = (int64_t)matches->rows;
            matches->blocks[matches->rows++] = own[i];
        }
    size_t cells = matches->rows * (labels + 1);
    if (cells > matches->cells) {
        double *m = malloc(2 * cells * sizeof *m);
        if (!m) return PyErr_NoMemory(), -1;
        free(matches->m);
        matches->m = m;
        matches->cells = 2 * cells;
    }
    matches->along = matches->m + matches->rows * labels;
    for (size_t i = 0; i < cells; i++) matches->m[i] = 0.0;
    if (matches->rows)
        for (size_t i = 0; i < features; i++) {
            size_t count = labels_with(label_words, matches->words[i], &labels_of_word);
            if (!count) continue;
            double *m = matches->m + (size_t)matches->places[own[i]] * labels, part = x->values[i + first] / sqrt((double)count);
            for (size_t k = 0; k < count; k++) m[labels_of_word[k]] += part;
        }
    return 0;
}

/* t with what the matches add; blocks from `known` on have not joined. */
static void matches_score(const NameMatches *matches, const double *shared, size_t known, double *t) {
    for (size_t i = 0; i < matches->rows; i++) {
        const double *m = matches->m + i * matches->labels;
        if ((size_t)matches->blocks[i] >= known) continue;
        double s = shared[matches->blocks[i]];
        for (size_t l = 0; l < matches->labels; l++) t[l] += s * m[l];
    }
}

static double matches_square(const NameMatches *matches) {
    double sum = 0.0;
    for (size_t i = 0; i < matches->rows * matches->labels; i++) sum += matches->m[i] * matches->m[i];
    return sum;
}

/* sum_l g_l m_b of each block; what they add along g is taken from the sums of the `known` blocks. */
static void matches_agree(NameMatches *matches, const double *shared, size_t known, const double *g, double *sums) {
    for (size_t i = 0; i < matches->rows; i++) {
        const double *m = matches->m + i * matches->labels;
        double along = 0.0;
        for (size_t l = 0; l < matches->labels; l++) along += g[l] * m[l];
        matches->along[i] = along;
        if ((size_t)matches->blocks[i] < known) sums[matches->blocks[i]] -= shared[matches->blocks[i]] * along;
    }
}

/* s <- s - eta M g, after `matches_agree`; all blocks have joined. */
static void matches_step(const NameMatches *matches, double *shared, double eta) {
    for (size_t i = 0; i < matches->rows; i++) shared[matches->blocks[i]] -= eta * matches->along[i];
}
