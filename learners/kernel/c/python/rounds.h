/* The whole round on one vector and a true label, or several of an order: look up, scale by blocks, score, decide, judge, direction, step: what the
   pieces do (model.py).

   `predict` and `plan` change nothing but what is kept of the last instance; `commit` asks for all memory before it changes
   anything. */

typedef struct {
    PyObject_HEAD Table *table;
    Weights *weights;
    FeatureBlocks *blocks; /* of the features of the table, or NULL */
    int update; /* 0: Predtron; 1, 2, 3: dual ascent; from ORDERS on: kinds of permutations.h */
    int ranks;  /* the order of the labels is the decision, and several of them may be right */
    double C, gamma, eta;
    OrderRule rule;
    double pace; /* what g is multiplied by; 0: SHARE / ||x||^2; negative: nothing */
    Asked asked;
    Shares shares; /* of x of what was asked */
    double *t, *g; /* of `labels`; g is the second part of the memory of t, and the columns in which it is not 0 the third */
    Py_ssize_t labels, room;
    int planned, moves; /* whether `commit` may come, and whether it takes a step along -g */
    double size;
} Rounds;

#define ORDERS 4
/* rates.py: the share of 1 / ||x||^2, and the square of a length that is as good as 0. */
#define SHARE 0.3
#define TINY 1e-200

static PyTypeObject *RoundsType;

static void rounds_drop(Rounds *rounds) {
    rounds->planned = 0;
    asked_drop(&rounds->asked);
}

static PyObject *rounds_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"table", "weights", "update", "C", "gamma", "eta", "ranks", "blocks", "measure", "cutoff", "margin", "pace", NULL};
    PyObject *table, *weights, *blocks = Py_None;
    int update = 0, ranks = 0, measure = 0;
    Py_ssize_t cutoff = 0;
    double C = 1.0, gamma = 1.0, eta = 1.0, margin = 1.0, pace = -1.0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|idddpOindd", words, &table, &weights, &update, &C, &gamma, &eta, &ranks,
                                     &blocks, &measure, &cutoff, &margin, &pace))
        return NULL;
    if (!Py_IS_TYPE(table, TableType) || !Py_IS_TYPE(weights, WeightsType) || update < 0 || update > ORDERS + MINIMAX_ORDER ||
        measure < NDCG_LOSS || measure > AP_LOSS || cutoff < (measure == PRECISION_LOSS) ||
        (blocks != Py_None && !Py_IS_TYPE(blocks, FeatureBlocksType))) {
        PyErr_SetString(PyExc_TypeError, "a round takes a table, weights, an update of 0 to 7, and blocks or None");
        return NULL;
    }
    Rounds *rounds = (Rounds *)PyType_GenericAlloc(type, 0);
    if (!rounds) return NULL;
    Py_INCREF(table);
    Py_INCREF(weights);
    rounds->table = (Table *)table;
    rounds->weights = (Weights *)weights;
    if (blocks != Py_None) {
        Py_INCREF(blocks);
        rounds->blocks = (FeatureBlocks *)blocks;
    }
    rounds->update = update;
    rounds->ranks = ranks;
    rounds->C = C;
    rounds->gamma = gamma;
    rounds->eta = eta;
    rounds->rule = (OrderRule){update - ORDERS, {measure, cutoff, NULL}, margin};
    rounds->pace = pace;
    return (PyObject *)rounds;
}

static void rounds_dealloc(PyObject *self) {
    Rounds *rounds = (Rounds *)self;
    PyTypeObject *type = Py_TYPE(self);
    rounds_drop(rounds);
    Py_XDECREF((PyObject *)rounds->table);
    Py_XDECREF((PyObject *)rounds->weights);
    Py_XDECREF((PyObject *)rounds->blocks);
    shares_clear(&rounds->shares);
    free(rounds->t);
    PyObject_Free(self);
    Py_DECREF(type);
}

WIDE static int all_finite(const double *t, Py_ssize_t count) {
    int64_t wrong = 0;
    for (Py_ssize_t k = 0; k < count; k++) wrong |= !(t[k] - t[k] == 0.0);
    return !wrong;
}

/* Whether table, weights and blocks have the same features. */
static int rounds_fit(const Rounds *rounds) {
    size_t count = rounds->table->names.count;
    const FeatureBlocks *blocks = rounds->blocks;
    if (blocks && blocks->words && blocks->label_words.count != rounds->weights->labels) return 0;
    return (size_t)rounds->weights->features == count && (!blocks || blocks->rows == count);
}

/* What words of labels' names add to the scores of x: -1 with an exception. */
static int rounds_hear(Rounds *rounds) {
    const FeatureBlocks *blocks = rounds->blocks;
    Shares *shares = &rounds->shares;
    if (!blocks || !blocks->words) return 0;
    if (matches_find(&shares->matches, &blocks->label_words, blocks->words->data, rounds->asked.x, (size_t)rounds->table->bias,
                    shares->own, shares->known + shares->late.count, (size_t)rounds->labels))
        return -1;
    matches_score(&shares->matches, blocks->shared->data, shares->known, rounds->t);
    return 0;
}

/* The curvature h of a step on x. */
static double rounds_square(const Rounds *rounds) {
    double square = vector_square(rounds->asked.x);
    return rounds->blocks && rounds->blocks->words ? square + matches_square(&rounds->shares.matches) : square;
}

/* Scores of features that were looked up: 1, 0 where a round cannot be done here, -1 with an exception. */
static int rounds_score(Rounds *rounds) {
    const Weights *weights = rounds->weights;
    Vector *x = rounds->asked.x;
    if (!weights->labels || !rounds_fit(rounds)) return 0;
    if (rounds->blocks && blocks_scale(rounds->blocks, x, (size_t)rounds->table->bias, &rounds->shares)) return -1;
    if (weights->labels > rounds->room) {
        double *t = malloc((size_t)weights->labels * (2 * sizeof *t + sizeof(Py_ssize_t)));
        if (!t) return PyErr_NoMemory(), -1;
        free(rounds->t);
        rounds->t = t;
        rounds->room = weights->labels;
    }
    rounds->g = rounds->t + weights->labels;
    rounds->labels = weights->labels;
    scores_of(weights, x->known, x->rows, x->values, rounds->t);
    if (rounds_hear(rounds)) return -1;
    return all_finite(rounds->t, rounds->labels);
}

/* x and the scores of an instance: 1, 0 where it is unusual, -1 with an exception. */
static int rounds_look(Rounds *rounds, PyObject *instance) {
    rounds->planned = 0;
    const FeatureBlocks *blocks = rounds->blocks;
    Ahead ahead[3] = {weights_ahead(rounds->weights)};
    if (blocks && blocks->rows == rounds->table->names.count) {
        ahead[1] = (Ahead){blocks->numbers->data, sizeof(int64_t), NULL, NULL};
        if (blocks->words) ahead[2] = (Ahead){blocks->words->data, sizeof(int64_t), NULL, NULL};
    }
    int state = asked_look(&rounds->asked, instance, rounds->table, ahead, blocks ? 2 + (blocks->words != NULL) : 1);
    if (state != 1) return state > 1 ? 1 : state;
    state = rounds_score(rounds);
    if (state <= 0) rounds_drop(rounds);
    return state;
}

static inline Py_ssize_t highest(const double *t, Py_ssize_t count, Py_ssize_t but) {
    Py_ssize_t first = but == 0;
    if (first >= count) return -1;
    double top = top_of(t + first, but > first ? but - first : count - first);
    if (but > first && but + 1 < count) {
        double behind = top_of(t + but + 1, count - but - 1);
        top = behind > top ? behind : top;
    }
    for (Py_ssize_t k = first; k < count; k++)
        if (k != but && t[k] == top) return k;
    return first; /* scores that are no numbers */
}

/* predict(instance, top, names) -> (ranking, margin, label, known, unknown), or None where it is left to the pieces. top < 0: all. Of an order
   the margin is the least gap of neighbours, and there is no label. */
static PyObject *rounds_predict(PyObject *self, PyObject *arguments) {
    Rounds *rounds = (Rounds *)self;
    PyObject *instance, *names, *ranking = NULL, *result = NULL;
    Py_ssize_t top;
    if (!PyArg_ParseTuple(arguments, "OnO!", &instance, &top, &PyList_Type, &names)) return NULL;
    int state = rounds_look(rounds, instance);
    if (state < 0) return NULL;
    if (!state) Py_RETURN_NONE;
    Py_ssize_t count = rounds->labels;
    const double *t = rounds->t;
    if (PyList_Size(names) != count) {
        PyErr_SetString(PyExc_ValueError, "one name for every label");
        return NULL;
    }
    if (top > count || top < 0) top = count;
    Ranked *ranked = malloc((size_t)(count + 1) * sizeof *ranked);
    if (!ranked) return PyErr_NoMemory();
    rank_scores(t, count, rounds->ranks ? count : top, ranked);
    double gap = INFINITY;
    Py_ssize_t last = rounds->rule.loss.cutoff && rounds->rule.loss.cutoff < count - 1 ? rounds->rule.loss.cutoff : count - 1;
    for (Py_ssize_t k = 0; k < last && rounds->ranks; k++)
        if (ranked[k].score - ranked[k + 1].score < gap) gap = ranked[k].score - ranked[k + 1].score;
    if ((ranking = PyList_New(top)))
        for (Py_ssize_t k = 0; k < top; k++) {
            PyObject *name = PyList_GetItem(names, ranked[k].label), *score = PyFloat_FromDouble(ranked[k].score);
            PyObject *pair = name && score ? PyTuple_Pack(2, name, score) : NULL;
            Py_XDECREF(score);
            if (!pair || PyList_SetItem(ranking, k, pair)) {
                Py_CLEAR(ranking);
                break;
            }
        }
    free(ranked);
    if (!ranking) return NULL;
    Py_ssize_t first = highest(t, count, -1), second = highest(t, count, first);
    if (second >= 0 && !rounds->ranks) gap = t[first] - t[second];
    PyObject *margin = second < 0 ? Py_None : PyFloat_FromDouble(gap + 0.0);
    Py_ssize_t familiar[2];
    vector_familiar(rounds->asked.x, rounds->table, familiar);
    if (margin)
        result = Py_BuildValue("OOOnn", ranking, margin, rounds->ranks ? Py_None : PyList_GetItem(names, first), familiar[0], familiar[1]);
    if (second >= 0) Py_XDECREF(margin);
    Py_DECREF(ranking);
    return result;
}

/* What the certificate adds up: mistakes, total, conjugate, promised, whether the lemma's condition held. */
typedef struct {
    long long mistakes;
    double total, conjugate, promised;
    int held;
} Sums;

/* Dual ascent: g, whether it moves anything, and the sums after this round; whether it is a mistake, -1 with an exception. C
   is that of an event that counts `weight` times. */
static int ascend_labels(const double *t, Py_ssize_t labels, const Relevant *relevant, double h, int update, double C,
                         double gamma, double weight, double *g, Sums *sums, int *moves) {
    double total = 0.0, linear = 0.0, quadratic = 0.0;
    Py_ssize_t r, s;
    *moves = 0;
    worst_pair(t, relevant, labels, &r, &s);
    if (r < 0 || s < 0) return 0;
    int mistake = t[r] <= t[s];
    if (mistake) {
        sums->mistakes++;
        sums->held = sums->held && h <= 0.5 + 1e-12 && weight == 1.0;
        double tau = update == 1 || h == 0.0 ? C : 0.5 * gamma / h < C ? 0.5 * gamma / h : C;
        sums->promised += gamma * tau - tau * tau * h;
    }
    for (Py_ssize_t k = 0; k < labels; k++) g[k] = 0.0;
    *moves = direction_of(t, relevant, labels, r, s, h, update, C, gamma, g);
    if (*moves < 0) return -1;
    if (!*moves) {
        if (h == 0.0) sums->total += C;
        return mistake;
    }
    for (Py_ssize_t k = 0; k < labels; k++)
        if (g[k] != 0.0) {
            if (is_relevant(relevant, k)) total -= g[k];
            linear -= g[k] * t[k];
            quadratic += g[k] * g[k];
        }
    sums->total += total;
    sums->conjugate += linear + 0.5 * h * quadratic;
    return mistake;
}

/* Room for what the planned round changes: -1 with an exception, and nothing changed. */
static int rounds_reserve(Rounds *rounds) {
    const Vector *x = rounds->asked.x;
    size_t unknown = (size_t)x->unknown, count = rounds->table->names.count + unknown;
    const Names *late = &rounds->shares.late;
    if (!unknown) return 0;
    if (rounds->blocks && blocks_reserve(rounds->blocks, count, late->count, late->count ? late->ends[late->count - 1] : 0)) return -1;
    return names_reserve(&rounds->table->names, unknown, x->ends[unknown - 1]) || counts_reserve(rounds->table, count) ||
                   weights_reserve(rounds->weights, (Py_ssize_t)count, rounds->weights->labels)
               ? -1
               : 0;
}

/* The round of an order: 1, 0 where it is left to the pieces, -1 with an exception. `more` are F and the discounts. */
static int rounds_order(Rounds *rounds, PyObject *truth, PyObject **more, double *loss) {
    Py_buffer mask, F, D;
    Py_ssize_t labels = rounds->labels, *right = (Py_ssize_t *)(rounds->g + labels), rights = 0; /* in the memory of the columns */
    if (!more[0] || !more[1]) return PyErr_SetString(PyExc_TypeError, "an order needs the weights of its places and discounts"), -1;
    if (numbers_of(truth, &mask, '?', labels, 0)) return -1;
    for (Py_ssize_t k = 0; k < labels; k++)
        if (((const char *)mask.buf)[k]) right[rights++] = k;
    PyBuffer_Release(&mask);
    if (rounds->rule.kind == PREDTRON_ORDER && rights * (labels - rights) > MOST_PAIRS) return 0;
    if (numbers_of(more[0], &F, 'd', labels, 0)) return -1;
    int state = numbers_of(more[1], &D, 'd', labels, 0);
    if (!state) {
        OrderRule rule = rounds->rule;
        rule.loss.discounts = D.buf;
        state = rounds->moves = order_direction(&rule, rounds->t, labels, right, rights, F.buf, rounds->g, loss);
        PyBuffer_Release(&D);
        if (state < 0) PyErr_NoMemory();
    }
    PyBuffer_Release(&F);
    if (state < 0) return -1;
    double pace = rounds->pace, square = pace == 0.0 ? vector_square(rounds->asked.x) : 0.0;
    if (pace == 0.0) pace = square > TINY ? SHARE / square : 0.0;
    for (Py_ssize_t k = 0; k < labels && pace >= 0.0; k++) rounds->g[k] *= pace;
    return 1;
}

/* plan(instance, truth, weight, size, sums, F, D) -> (loss, updated, sums), or None where it is left to the pieces. The truth is the
   number of a label, or for dual ascent and orders a mask of those that are right; the loss is 1 or 0 but for orders. */
static PyObject *rounds_plan(PyObject *self, PyObject *arguments) {
    Rounds *rounds = (Rounds *)self;
    PyObject *instance, *truth, *before, *more[2] = {NULL, NULL}, *after = NULL;
    double weight, size, loss = 0.0;
    Sums sums = {0};
    Relevant relevant = {0};
    if (!PyArg_ParseTuple(arguments, "OOddO!|OO", &instance, &truth, &weight, &size, &PyTuple_Type, &before, &more[0], &more[1])) return NULL;
    int state = rounds_look(rounds, instance), mistake;
    if (state < 0) return NULL;
    if (!state) Py_RETURN_NONE;
    int orders = rounds->update >= ORDERS;
    if (!rounds->update && !PyLong_Check(truth)) return PyErr_SetString(PyExc_TypeError, "one label is right"), NULL;
    if (orders && (state = rounds_order(rounds, truth, more, &loss)) <= 0) {
        if (state < 0) return NULL;
        Py_RETURN_NONE;
    }
    if (!orders && relevant_of(truth, &relevant, rounds->labels)) return NULL;
    if (rounds->update && !orders) {
        mistake = -1;
        if (PyArg_ParseTuple(before, "Ldddp", &sums.mistakes, &sums.total, &sums.conjugate, &sums.promised, &sums.held))
            mistake = ascend_labels(rounds->t, rounds->labels, &relevant, rounds_square(rounds), rounds->update,
                                    rounds->C * weight, rounds->gamma, weight, rounds->g, &sums, &rounds->moves);
        if (relevant.mask) PyBuffer_Release(&relevant.buffer);
        if (mistake < 0) return NULL;
        loss = (double)mistake;
        rounds->size = rounds->eta;
        after = Py_BuildValue("(LdddO)", sums.mistakes, sums.total, sums.conjugate, sums.promised, sums.held ? Py_True : Py_False);
    } else {
        if (!orders) {
            Py_ssize_t first = highest(rounds->t, rounds->labels, -1);
            rounds->moves = first != relevant.label;
            loss = (double)rounds->moves;
            for (Py_ssize_t k = 0; k < rounds->labels; k++) rounds->g[k] = 0.0;
            if (rounds->moves) rounds->g[first] = size, rounds->g[relevant.label] = -size;
        }
        rounds->size = rounds->eta * weight;
        Py_INCREF(before);
        after = before;
    }
    if (!after || rounds_reserve(rounds)) {
        Py_XDECREF(after);
        return NULL;
    }
    PyObject *result = Py_BuildValue("dOO", loss, rounds->moves ? Py_True : Py_False, after);
    Py_DECREF(after);
    if (result) rounds->planned = 1;
    return result;
}

/* Which blocks pointed where the weights go now. */
static void rounds_judge(Rounds *rounds) {
    Py_ssize_t *columns = (Py_ssize_t *)(rounds->g + rounds->labels), changed = 0;
    for (Py_ssize_t k = 0; k < rounds->labels; k++)
        if (rounds->g[k] != 0.0) columns[changed++] = k;
    blocks_judge(rounds->blocks, rounds->asked.x, (size_t)rounds->table->bias, &rounds->shares, rounds->weights, rounds->g, columns,
                 changed);
}

/* commit(): what was planned, all of it. */
static PyObject *rounds_commit(PyObject *self, PyObject *none) {
    (void)none;
    Rounds *rounds = (Rounds *)self;
    Table *table = rounds->table;
    Weights *weights = rounds->weights;
    if (!rounds->planned || !rounds_fit(rounds) || weights->labels != rounds->labels ||
        (rounds->blocks && rounds->blocks->names.count != rounds->shares.known)) {
        PyErr_SetString(PyExc_RuntimeError, "no round was planned on this state");
        return NULL;
    }
    Vector *x = rounds->asked.x;
    if (rounds_reserve(rounds) || (rounds->moves && weights_prepare(weights, x->known, x->rows, x->unknown, rounds->g))) return NULL;
    if (rounds->blocks && rounds->moves) rounds_judge(rounds);
    asked_join(&rounds->asked, table);
    if (rounds->blocks) blocks_join(rounds->blocks, x, (size_t)table->bias, &rounds->shares);
    if (rounds->moves && rounds->blocks && rounds->blocks->shared) matches_step(&rounds->shares.matches, rounds->blocks->shared->data, rounds->size);
    weights->features += x->unknown;
    Py_ssize_t count = x->known + x->unknown;
    table->events++;
    if (table->idf) {
        int64_t *counts = table->counts->data;
        for (Py_ssize_t i = 0; i < count; i++) counts[x->rows[i]] += x->values[i] != 0.0;
    }
    if (rounds->moves) step_along(weights, count, x->rows, x->values, rounds->g, rounds->size);
    rounds_drop(rounds);
    Py_RETURN_NONE;
}

static PyObject *rounds_clear(PyObject *self, PyObject *none) {
    (void)none;
    rounds_drop((Rounds *)self);
    Py_RETURN_NONE;
}

static PyMethodDef rounds_methods[] = {
    {"predict", rounds_predict, METH_VARARGS, "The ranking, the margin and the label of an instance, or None."},
    {"plan", rounds_plan, METH_VARARGS, "What a round would do, or None."},
    {"commit", rounds_commit, METH_NOARGS, "Do what was planned."},
    {"clear", rounds_clear, METH_NOARGS, "Forget the last instance: names or weights have changed."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot rounds_slots[] = {{Py_tp_new, rounds_new},
                                     {Py_tp_dealloc, rounds_dealloc},
                                     {Py_tp_methods, rounds_methods},
                                     {Py_tp_doc, "Whole rounds: Rounds(table, weights, update=0, C=1.0, gamma=1.0, eta=1.0, ranks=False, blocks=None, measure=0, cutoff=0, margin=1.0, pace=-1.0)."},
                                     {0, NULL}};
static PyType_Spec rounds_spec = {"feedrank.learners.kernel._native.Rounds", sizeof(Rounds), 0, Py_TPFLAGS_DEFAULT, rounds_slots};
