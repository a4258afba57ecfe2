/* Blocks of features by name: the block of every row, how often each was right and wrong, and what they make of x.
   See feature_blocks.py.

     x_j = v_j sqrt(1/2 / |v|^2 + 1/2 s_b / |v_b|^2),    s_b = w_b / sum_b w_b,    w_b = ((1 + right_b) / (1 + wrong_b))^2
     a_b = - sum_{j in b} sum_r g_r x_j W_jr;    right_b += 1 if a_b > 0,    wrong_b += 1 if a_b < 0

   Sums run over the features of a block, and over the blocks, from the first to the last. */

#define ALIKE 0.5
#define TINY 1e-200

typedef struct {
    PyObject_HEAD Names names;
    Block *numbers;       /* int64: the block of every row */
    Block *right, *wrong; /* float64, one a block */
    size_t rows, room, width; /* rows in use, room for rows and for blocks */
    Block *words, *shared;    /* int64: the word of every row; float64, one a block. NULL without label_words */
    LabelWords label_words;
} FeatureBlocks;

/* What a round has to know of the blocks of its x. */
typedef struct {
    int64_t *own;    /* the block of every feature but the bias */
    size_t room;
    double *sums;    /* one a block; the second half of the memory are the factors */
    size_t width;
    size_t known;    /* blocks that there were */
    Names late;      /* the blocks that x brings: they stand behind the known ones */
    NameMatches matches;
} Shares;

static PyTypeObject *FeatureBlocksType;

/* What stands before the first colon; nothing for a plain feature. */
static inline size_t block_length(const char *name, size_t length) {
    const char *colon = memchr(name, ':', length);
    return colon ? (size_t)(colon - name) : 0;
}

static void shares_clear(Shares *shares) {
    free(shares->own);
    free(shares->sums);
    names_clear(&shares->late);
    matches_clear(&shares->matches);
}

/* `block` with room for so many numbers of 8 bytes, of which it has `room`: -1 with an exception, and nothing changed. */
static int numbers_widen(Block **block, size_t room, size_t wanted) {
    Block *wider = block_new(wanted, 8);
    if (!wider) return -1;
    memcpy(wider->data, (*block)->data, room * 8);
    Py_DECREF(*block);
    *block = wider;
    return 0;
}

/* Room for so many rows, and for `more` blocks whose names have `bytes` bytes in all: -1 with an exception, nothing changed. */
static int blocks_reserve(FeatureBlocks *blocks, size_t rows, size_t more, size_t bytes) {
    size_t count = blocks->names.count + more;
    if (names_reserve(&blocks->names, more, bytes)) return -1;
    if (rows > blocks->room) {
        size_t room = rows > 2 * blocks->room ? rows : 2 * blocks->room;
        if (numbers_widen(&blocks->numbers, blocks->room, room) || (blocks->words && numbers_widen(&blocks->words, blocks->room, room)))
            return -1;
        blocks->room = room;
    }
    if (count > blocks->width) {
        size_t width = count > 2 * blocks->width ? count : 2 * blocks->width;
        if (numbers_widen(&blocks->right, blocks->width, width) || numbers_widen(&blocks->wrong, blocks->width, width) ||
            (blocks->shared && numbers_widen(&blocks->shared, blocks->width, width)))
            return -1;
        blocks->width = width;
    }
    return 0;
}

static void blocks_cut(FeatureBlocks *blocks, size_t rows, size_t count) {
    for (size_t b = count; b < blocks->names.count; b++) {
        ((double *)blocks->right->data)[b] = ((double *)blocks->wrong->data)[b] = 0.0;
        if (blocks->shared) ((double *)blocks->shared->data)[b] = 0.0;
    }
    names_forget(&blocks->names, count);
    blocks->rows = rows;
}

/* The block of every feature of x: -1 with an exception. */
static int shares_number(Shares *shares, const FeatureBlocks *blocks, const Vector *x, size_t first) {
    size_t known = (size_t)x->known - first, unknown = (size_t)x->unknown;
    names_forget(&shares->late, 0);
    if (known + unknown > shares->room) {
        int64_t *own = malloc(2 * (known + unknown) * sizeof *own);
        if (!own) return PyErr_NoMemory(), -1;
        free(shares->own);
        shares->own = own;
        shares->room = 2 * (known + unknown);
    }
    const int64_t *numbers = blocks->numbers->data;
    shares->known = blocks->names.count;
    for (size_t i = 0; i < known; i++) {
        shares->own[i] = numbers[x->rows[i + first]];
        if ((uint64_t)shares->own[i] >= shares->known) return PyErr_SetString(PyExc_IndexError, "a feature is in no block"), -1;
    }
    for (size_t i = 0, start = 0; i < unknown; start = x->ends[i++]) {
        const char *name = x->text + start;
        size_t length = block_length(name, x->ends[i] - start);
        uint64_t hash = hash_of(name, length);
        Py_ssize_t number = names_find(&blocks->names, hash, name, length);
        if (number < 0) {
            if (names_reserve(&shares->late, 1, length)) return -1;
            number = (Py_ssize_t)(blocks->names.count + names_add(&shares->late, hash, name, length));
        }
        shares->own[known + i] = number;
    }
    size_t count = blocks->names.count + shares->late.count;
    if (count > shares->width) {
        double *sums = malloc(4 * count * sizeof *sums);
        if (!sums) return PyErr_NoMemory(), -1;
        free(shares->sums);
        shares->sums = sums;
        shares->width = 2 * count;
    }
    return 0;
}

/* v <- x: -1 with an exception. */
static int blocks_scale(const FeatureBlocks *blocks, Vector *x, size_t first, Shares *shares) {
    if (shares_number(shares, blocks, x, first)) return -1;
    size_t features = (size_t)(x->known + x->unknown) - first, known = blocks->names.count;
    size_t count = known + shares->late.count;
    double *v = x->values + first, *squares = shares->sums, *factors = squares + shares->width;
    const double *right = blocks->right->data, *wrong = blocks->wrong->data;
    const int64_t *own = shares->own;
    double top = 0.0, all = 0.0, worth = 0.0;
    for (size_t i = 0; i < features; i++) top = fabs(v[i]) > top ? fabs(v[i]) : top;
    if (!(top > 0.0)) return 0;
    for (size_t b = 0; b < count; b++) squares[b] = 0.0;
    for (size_t i = 0; i < features; i++) {
        v[i] /= top; /* first, so that squares of large numbers do not overflow */
        squares[own[i]] += v[i] * v[i];
    }
    for (size_t b = 0; b < count; b++) {
        double odds = b < known ? (1.0 + right[b]) / (1.0 + wrong[b]) : 1.0;
        factors[b] = squares[b] > TINY ? odds * odds : 0.0;
        all += squares[b];
        worth += factors[b];
    }
    double alike = ALIKE / all, part = (1.0 - ALIKE) / worth;
    for (size_t b = 0; b < count; b++) {
        double share = factors[b] * part / (squares[b] > TINY ? squares[b] : 1.0);
        factors[b] = sqrt(alike + share);
    }
    for (size_t i = 0; i < features; i++) v[i] *= factors[own[i]];
    return 0;
}

/* Count who was right about the step along -g, whose columns that are not 0 are `changed`. Features of x that are unknown had no
   part in the scores. */
static void blocks_judge(FeatureBlocks *blocks, const Vector *x, size_t first, Shares *shares, const Weights *weights,
                         const double *g, const Py_ssize_t *columns, Py_ssize_t changed) {
    size_t known = (size_t)x->known - first, count = blocks->names.count;
    double *right = blocks->right->data, *wrong = blocks->wrong->data, *sums = shares->sums;
    for (size_t b = 0; b < count; b++) sums[b] = 0.0;
    for (size_t i = 0; i < known; i++) {
        double value = x->values[i + first], agreement = 0.0;
        for (Py_ssize_t k = 0; k < changed; k++) {
            Py_ssize_t r = columns[k];
            double W = weights_cell(weights, x->rows[i + first], r);
            agreement -= g[r] * (W * value);
        }
        sums[shares->own[i]] += agreement;
    }
    if (blocks->shared) matches_agree(&shares->matches, blocks->shared->data, count, g, sums);
    for (size_t b = 0; b < count; b++) {
        right[b] += sums[b] > 0.0;
        wrong[b] += sums[b] < 0.0;
    }
}

/* The blocks that x brings join, and its features that were unknown, now in their rows, are in theirs: room was reserved. */
static void blocks_join(FeatureBlocks *blocks, const Vector *x, size_t first, const Shares *shares) {
    const Names *late = &shares->late;
    int64_t *numbers = blocks->numbers->data;
    for (size_t i = 0; i < late->count; i++) {
        const char *name = name_start(late, i);
        size_t length = name_length(late, i);
        names_add(&blocks->names, hash_of(name, length), name, length);
    }
    for (Py_ssize_t i = x->known; i < x->known + x->unknown; i++) {
        numbers[x->rows[i]] = shares->own[i - (Py_ssize_t)first];
        if (blocks->words) ((int64_t *)blocks->words->data)[x->rows[i]] = shares->matches.words[i - (Py_ssize_t)first];
    }
    blocks->rows += (size_t)x->unknown;
}
