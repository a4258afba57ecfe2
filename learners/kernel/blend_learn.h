/* What Python calls of blend.h, and the learning half of the round.

   Numbers that are no arrays come with `plan` and go back changed; whoever calls `commit` keeps them. */

/* predict(instance, top, names, size) -> (ranking, margin, label, probabilities), or None. top < 0: all. */
static PyObject *blend_predict(PyObject *self, PyObject *arguments) {
    Blend *blend = (Blend *)self;
    PyObject *instance, *names, *ranking, *probabilities, *result = NULL;
    Py_ssize_t top;
    double size, seen[2];
    if (!PyArg_ParseTuple(arguments, "OnO!d", &instance, &top, &PyList_Type, &names, &size)) return NULL;
    int state = blend_look(blend, instance, size);
    if (state < 0) return NULL;
    if (!state) Py_RETURN_NONE;
    Py_ssize_t count = blend->labels;
    const double *t = blend->t, *scores = t;
    if (PyList_Size(names) != count) return PyErr_SetString(PyExc_ValueError, "one name for every label"), NULL;
    if (blend->view) {
        if (count != 2) Py_RETURN_NONE;
        multiply(blend->view, t, seen, 2, 2, 1);
        scores = seen;
    }
    if (top > count || top < 0) top = count;
    Ranked *ranked = malloc((size_t)(count + 1) * sizeof *ranked);
    if (!ranked) return PyErr_NoMemory();
    rank_scores(scores, count, top, ranked);
    ranking = PyList_New(top);
    probabilities = PyList_New(top);
    int failed = !ranking || !probabilities;
    for (Py_ssize_t k = 0; k < top && !failed; k++) {
        PyObject *score = PyFloat_FromDouble(ranked[k].score), *p = PyFloat_FromDouble(blend->shown[ranked[k].label]);
        PyObject *pair = score && p ? PyTuple_Pack(2, PyList_GetItem(names, ranked[k].label), score) : NULL;
        Py_XDECREF(score);
        failed = !pair;
        if (pair) PyList_SetItem(ranking, k, pair), PyList_SetItem(probabilities, k, p);
        else Py_XDECREF(p);
    }
    free(ranked);
    Py_ssize_t first = highest(t, count, -1), second = highest(t, count, first);
    if (!failed && second < 0) result = Py_BuildValue("OOOO", ranking, Py_None, PyList_GetItem(names, first), probabilities);
    else if (!failed)
        result = Py_BuildValue("OdOO", ranking, (t[first] - t[second]) + 0.0, PyList_GetItem(names, first), probabilities);
    Py_XDECREF(ranking);
    Py_XDECREF(probabilities);
    return result;
}

/* drift.py: the three sums after a loss; whether they raise the alarm. */
typedef struct {
    long long count;
    double sum, evidence[3];
} Alarm;

static int alarm_after(Alarm *alarm, double loss) {
    static const double odds[3] = {2.0, 4.0, 16.0};
    if (alarm->count >= 50) {
        double b = alarm->sum / (double)alarm->count + 0.05;
        b = b < 0.95 ? b : 0.95;
        double least = 1.0 - b, spread = b * (1.0 - b);
        for (int i = 0; i < 3; i++) {
            double c = odds[i];
            alarm->evidence[i] = (alarm->evidence[i] + 1.0) * (1.0 + (c * b / (c * b + least) - b) / spread * (loss - b));
        }
    }
    alarm->count++;
    alarm->sum += loss;
    return !((alarm->evidence[0] + alarm->evidence[1] + alarm->evidence[2]) / 3.0 < 100000.0);
}

/* Whether `more` rows can join without a table that moves. */
static int member_has_room(const Member *own, Py_ssize_t count, Py_ssize_t more) {
    if (!own->present || !more || own->kind == RECENT_ERRORS) return 1;
    if (own->kind == LEAST_SQUARES) return 0;
    return own->weights->room >= count + more && (own->kind != ADAGRAD || own->squares->room >= count + more);
}

/* The pool after this round, in memory of its own: -1 with an exception. */
static int blend_pool(Blend *blend, double *gaps, double *loss) {
    Trust after = blend->pool;
    size_t m = (size_t)blend->members;
    const double *before[5] = {after.a, after.A, after.losses, after.w, after.weights};
    double *own[5] = {blend->a, blend->A, blend->pool_losses, blend->w, blend->weights};
    const size_t counts[5] = {m, m * m, 1 + m, 1 + m, m};
    for (int i = 0; i < 5; i++) memcpy(own[i], before[i], counts[i] * sizeof(double));
    after.a = own[0], after.A = own[1], after.losses = own[2], after.w = own[3], after.weights = own[4];
    after.gaps = *gaps;
    if (trust_round(&after, blend->Z, blend->Y, blend->labels, blend->weight, blend->teaches, blend->spare, loss)) {
        PyErr_SetString(PyExc_ValueError, "the matrix is not positive definite");
        return -1;
    }
    *gaps = after.gaps;
    return 0;
}

/* The step of dual ascent on the scores Z / scale: -1 with an exception. */
static int blend_ascend(Blend *blend, Sums *sums) {
    const Member *own = NULL;
    Py_ssize_t count = blend->asked.x->known + blend->asked.x->unknown, labels = blend->labels;
    double square = 0.0, *s = blend->spare;
    blend->moves = 0;
    for (int i = 0; i < blend->members; i++)
        if (blend->member[i].kind == DUAL_ASCENT) {
            own = &blend->member[i];
            for (Py_ssize_t k = 0; k < labels; k++) s[k] = blend->Z[i * labels + k] / own->scale;
        }
    if (!own) return 0;
    for (Py_ssize_t i = 0; i < count; i++) square += blend->x.values[i] * blend->x.values[i];
    return ascend_label(s, labels, blend->label, square, 3, blend->weight, 1.0, blend->weight, blend->g, sums, &blend->moves);
}

/* plan(instance, label, weight, (gaps, loss), drift, sums, words, size) -> (mistake, the five after it, the features then), or None. */
static PyObject *blend_plan(PyObject *self, PyObject *arguments) {
    Blend *blend = (Blend *)self;
    PyObject *instance;
    double gaps, loss, more, words, events, size;
    long long curved;
    Alarm alarm;
    Sums sums;
    if (!PyArg_ParseTuple(arguments, "Ond(dd)(Ldddd)(Ldddp)(dd)(dL)", &instance, &blend->label, &blend->weight, &gaps, &loss,
                          &alarm.count, &alarm.sum, &alarm.evidence[0], &alarm.evidence[1], &alarm.evidence[2], &sums.mistakes,
                          &sums.total, &sums.conjugate, &sums.promised, &sums.held, &words, &events, &size, &curved))
        return NULL;
    int state = blend_look(blend, instance, size);
    if (state < 0) return NULL;
    if (!state) Py_RETURN_NONE;
    const Vector *x = blend->asked.x;
    Py_ssize_t labels = blend->labels, y = blend->label, count = (Py_ssize_t)blend->table->names.count;
    if (y < 0 || y >= labels) return PyErr_SetString(PyExc_IndexError, "no such label"), NULL;
    int mistake = highest(blend->t, labels, -1) != y;
    if (alarm_after(&alarm, (double)mistake) || blend->rows < count + x->unknown) Py_RETURN_NONE;
    for (int i = 0; i < blend->members; i++)
        if (!member_has_room(&blend->member[i], count, x->unknown)) Py_RETURN_NONE;
    if (x->unknown && (names_reserve(&blend->table->names, (size_t)x->unknown, x->ends[x->unknown - 1]) ||
                       counts_reserve(blend->table, (size_t)(count + x->unknown))))
        return NULL;
    for (Py_ssize_t k = 0; k < labels; k++) blend->Y[k] = k == y ? 1.0 : 0.0;
    blend->teaches = blend->seen[y] > 0.0;
    if (blend_pool(blend, &gaps, &more) || blend_ascend(blend, &sums) < 0) return NULL;
    double z = 0.0, pace = 1.0 / ((double)curved + 2.0);
    for (Py_ssize_t i = 0; i < x->known + x->unknown; i++) z += blend->x.z[i] * blend->x.z[i];
    size += (z - size) * (pace > 0.01 ? pace : 0.01);
    double counted = blend->weight * (double)blend->words.all;
    PyObject *result = Py_BuildValue(
        "O(dd)(Ldddd)(LdddO)(dd)(dL)n", mistake ? Py_True : Py_False, gaps, loss + more, alarm.count, alarm.sum, alarm.evidence[0],
        alarm.evidence[1], alarm.evidence[2], sums.mistakes, sums.total, sums.conjugate, sums.promised,
        sums.held ? Py_True : Py_False, words + counted, events + blend->weight, size, curved + 1, count + x->unknown);
    blend->planned = result != NULL;
    return result;
}

/* One expert's step. */
static void member_learn(Blend *blend, Member *own, const double *z) {
    const Vector *x = blend->asked.x;
    Py_ssize_t labels = blend->labels, count = x->known + x->unknown;
    double *miss = blend->spare;
    if (own->weights && own->present) own->weights->features = (Py_ssize_t)blend->table->names.count;
    if (own->squares && own->present) own->squares->features = (Py_ssize_t)blend->table->names.count;
    if (!own->present) return;
    if (own->kind == DUAL_ASCENT) {
        if (blend->moves) step_along(own->weights, count, x->rows, blend->x.values, blend->g, 1.0);
    } else if (own->kind == NAIVE_BAYES) {
        const Words *words = &blend->words;
        double *cells = (double *)own->weights->block->data + blend->label;
        for (Py_ssize_t i = 0; i < words->all; i++) {
            double *cell = cells + words->rows[i] * own->weights->width;
            *cell = log_of(exp_of(*cell) + blend->weight / own->setting);
        }
        own->words[blend->label] += blend->weight * (double)words->all;
        own->events[blend->label] += blend->weight;
    } else if (own->kind == RECENT_ERRORS) {
        double step = blend->weight / (blend->weight + own->setting);
        for (Py_ssize_t k = 0; k < labels; k++) own->words[k] += step * ((blend->Y[k] - blend->p[k]) - own->words[k]);
    } else if (own->kind == ADAGRAD) {
        for (Py_ssize_t k = 0; k < labels; k++) miss[k] = z[k] / own->scale;
        softmax_of(miss, blend->shown, labels);
        for (Py_ssize_t k = 0; k < labels; k++) miss[k] = (blend->shown[k] - blend->Y[k]) * blend->weight;
        for (Py_ssize_t i = 0; i < count; i++) {
            Py_ssize_t row = x->rows[i] * own->weights->width;
            adapt_row((double *)own->weights->block->data + row, (double *)own->squares->block->data + row, blend->x.values[i], miss,
                      own->setting, labels);
        }
    } else {
        curves_product(blend->phi, own->curves.R, own->curves.width, own->curves.stride, labels, miss);
        for (Py_ssize_t k = 0; k < labels; k++) miss[k] = blend->Y[k] - miss[k];
        curves_step(&own->curves, blend->phi, miss, labels, blend->weight, blend->q);
    }
}

/* commit(): what was planned, all of it. */
static PyObject *blend_commit(PyObject *self, PyObject *none) {
    (void)none;
    Blend *blend = (Blend *)self;
    if (!blend->planned) return PyErr_SetString(PyExc_RuntimeError, "no round was planned on this state"), NULL;
    const Vector *x = blend->asked.x;
    Py_ssize_t labels = blend->labels, y = blend->label, m = blend->members;
    asked_join(&blend->asked, blend->table);
    for (Py_ssize_t i = x->known, k = blend->words.known; i < x->known + x->unknown; i++)
        if (blend->x.values[i] > 0.0) blend->words.rows[k++] = x->rows[i];
    blend->table->events++;
    tally_values(blend->counted, x->rows + blend->bias, x->values + blend->bias, x->known + x->unknown - blend->bias);
    for (int i = 0; i < m; i++)
        if (blend->pool.present[i]) blend->losses[i] += highest(blend->Z + i * labels, labels, -1) != y ? 1.0 : 0.0;
    Py_ssize_t first = highest(blend->p, labels, -1);
    count_calibration(blend->p[first], blend->teaches && first == y, blend->sums);
    for (int i = 0; i < m; i++) member_learn(blend, &blend->member[i], blend->Z + i * labels);
    memcpy(blend->pool.a, blend->a, (size_t)m * sizeof(double));
    memcpy(blend->pool.A, blend->A, (size_t)(m * m) * sizeof(double));
    memcpy(blend->pool.losses, blend->pool_losses, (size_t)(1 + m) * sizeof(double));
    memcpy(blend->pool.w, blend->w, (size_t)(1 + m) * sizeof(double));
    memcpy(blend->pool.weights, blend->weights, (size_t)m * sizeof(double));
    blend->seen[y] += 1.0;
    blend_drop(blend);
    Py_RETURN_NONE;
}

static PyObject *blend_clear(PyObject *self, PyObject *none) {
    (void)none;
    blend_unbind((Blend *)self);
    Py_RETURN_NONE;
}

static PyMethodDef blend_methods[] = {
    {"bind", blend_bind, METH_O, "Show it the arrays of the pieces."},
    {"predict", blend_predict, METH_VARARGS, "The ranking, the margin, the label and the probabilities of an instance, or None."},
    {"plan", blend_plan, METH_VARARGS, "What a round would do, or None."},
    {"commit", blend_commit, METH_NOARGS, "Do what was planned."},
    {"clear", blend_clear, METH_NOARGS, "Forget the last instance and the arrays: they are about to change."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot blend_slots[] = {{Py_tp_new, blend_new},
                                    {Py_tp_dealloc, blend_dealloc},
                                    {Py_tp_methods, blend_methods},
                                    {Py_tp_doc, "Whole rounds of the automatic learner: Blend(table)."},
                                    {0, NULL}};
static PyType_Spec blend_spec = {"feedrank.learners.kernel._native.Blend", sizeof(Blend), 0, Py_TPFLAGS_DEFAULT, blend_slots};
