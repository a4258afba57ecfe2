/* What Python calls of blend.h, and the learning half of the round.

   Numbers that are no arrays come with `plan` and go back changed; whoever calls `commit` keeps them. */

/* The grade of the highest sum of log-odds, those of the bits below it for it; the gap to the next in `*gap`. */
static Py_ssize_t grade_of(const double *t, Py_ssize_t count, double *gap) {
    double sum = 0.0, best = 0.0, second = -INFINITY;
    Py_ssize_t first = 0;
    for (Py_ssize_t g = 1; g <= count; g++) {
        sum = g == 1 ? t[0] : sum + t[g - 1];
        if (sum > best) second = best, best = sum, first = g;
        else if (sum > second) second = sum;
    }
    if (gap) *gap = best - second;
    return first;
}

/* The label of least expected cost under p, `labels` for rejecting all; the gap to the next in `*gap`, NAN where there is none. */
static Py_ssize_t cheapest(const Blend *blend, const double *p, double *gap) {
    Py_ssize_t labels = blend->labels, first = 0;
    double best = INFINITY, second = INFINITY, all = 0.0;
    for (Py_ssize_t k = 0; k < labels + blend->rejects; k++) {
        double expected = k == labels ? all : blend->rejects ? 1.0 - p[k] : -(p[k] * blend->costs[k]);
        if (k < labels) all = k ? all + p[k] * blend->costs[k] : p[k] * blend->costs[k];
        if (!k || expected < best) second = best, best = expected, first = k;
        else if (expected < second) second = expected;
    }
    if (gap) *gap = labels + blend->rejects < 2 ? NAN : second - best;
    return first;
}

/* What deciding by the log-odds t, whose probabilities are p, costs. */
static double loss_of(const Blend *blend, const double *t, const double *p) {
    Py_ssize_t labels = blend->labels, wrong = 0;
    if (blend->costs) {
        Py_ssize_t first = cheapest(blend, p, NULL);
        double cost = blend->costs[blend->label];
        return first == labels ? cost : first == blend->label ? 0.0 : blend->rejects ? 1.0 : cost;
    }
    if (blend->mode == ONE) return highest(t, labels, -1) != blend->label ? 1.0 : 0.0;
    if (blend->mode == ORDER) {
        places_of(t, labels, blend->right, blend->rights, blend->places, blend->places + labels);
        return places_loss(&blend->order, blend->places, blend->rights, labels, blend->spare);
    }
    if (blend->mode == GRADE) {
        wrong = grade_of(t, labels, NULL) - blend->label;
        return (double)(wrong < 0 ? -wrong : wrong);
    }
    for (Py_ssize_t k = 0; k < labels; k++) wrong += (t[k] > 0.0) != (blend->Y[k] > 0.5);
    return blend->mode == SET ? (double)wrong : wrong ? 1.0 : 0.0;
}

/* The named decision and, in `*gap`, the gap that another one would have to close: NAN where there is none. */
static PyObject *decision_of(const Blend *blend, PyObject *names, double *gap) {
    const double *t = blend->t;
    Py_ssize_t labels = blend->labels, first, second;
    PyObject *decision;
    if (blend->mode == GRADE) {
        first = grade_of(t, labels, gap);
    } else if (blend->costs) {
        first = cheapest(blend, blend->shown, gap);
    } else if (blend->mode == ONE) {
        first = highest(t, labels, -1), second = highest(t, labels, first);
        *gap = second < 0 ? NAN : t[first] - t[second];
    } else if (blend->mode == ORDER) {
        *gap = NAN;
        if (labels > 1) {
            order_of(t, blend->places, blend->places + labels, labels);
            *gap = order_gap(&blend->order, t, blend->places, labels);
        }
        first = blend->names;
    } else {
        *gap = fabs(t[0]);
        decision = PyList_New(0);
        for (Py_ssize_t k = 0; k < labels && decision; k++) {
            *gap = fabs(t[k]) < *gap ? fabs(t[k]) : *gap;
            if (t[k] > 0.0 && PyList_Append(decision, PyList_GetItem(names, k))) Py_CLEAR(decision);
        }
        return decision;
    }
    decision = first == blend->names ? Py_None : PyList_GetItem(names, first);
    Py_XINCREF(decision);
    return decision;
}

/* predict(instance, top, names, words, size) -> (ranking, margin, decision, known, unknown, probabilities), or None. top < 0: all. */
static PyObject *blend_predict(PyObject *self, PyObject *arguments) {
    Blend *blend = (Blend *)self;
    PyObject *instance, *names, *ranking, *probabilities, *decision, *result = NULL;
    Py_ssize_t top;
    double gap = 0.0, *scores;
    if (!PyArg_ParseTuple(arguments, "OnO!(dd)d", &instance, &top, &PyList_Type, &names, &blend->all_words, &blend->all_events,
                          &blend->size))
        return NULL;
    int state = blend_look(blend, instance);
    if (state < 0) return NULL;
    if (!state) Py_RETURN_NONE;
    Py_ssize_t count = blend->names;
    if (PyList_Size(names) != count) return PyErr_SetString(PyExc_ValueError, "one name for every label"), NULL;
    scores = blend->t;
    if (blend->view) multiply(blend->view, blend->t, scores = blend->g, count, blend->labels, 1);
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
    decision = failed ? NULL : decision_of(blend, names, &gap);
    Py_ssize_t familiar[2];
    vector_familiar(blend->asked.x, blend->table, familiar);
    if (decision && isnan(gap))
        result = Py_BuildValue("OOOnnO", ranking, Py_None, decision, familiar[0], familiar[1], probabilities);
    else if (decision)
        result = Py_BuildValue("OdOnnO", ranking, gap + 0.0, decision, familiar[0], familiar[1], probabilities);
    Py_XDECREF(decision);
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

/* lead.py: what the gamblers have after a round in which the pool lost d less than its first expert. */
static void lead_round(double *wealth, double d) {
    static const double shares[3] = {0.1, 0.3, 0.6};
    d = d > 1.0 ? 1.0 : d < -1.0 ? -1.0 : d;
    for (int i = 0; i < 3; i++) {
        double own = wealth[i] * (1.0 + shares[i] * d);
        wealth[i] = own < 1e12 ? own : 1e12;
    }
}

/* Whether `more` rows can join without a table that moves. */
static int member_has_room(const Member *own, Py_ssize_t count, Py_ssize_t more, Py_ssize_t bias) {
    if (own->present && own->kind == FOREST) return bound_forest_has_room(&own->forest, count + more - bias);
    if (!own->present || !more || own->kind == RECENT_ERRORS || own->kind == BY_PIECES) return 1;
    if (own->kind == LEAST_SQUARES) return own->curves.features >= count + more - bias;
    if (own->kind == NAIVE_BAYES && own->room < count + more) return 0;
    if (own->kind == ADAGRAD && own->room && count + more > own->room) return 0; /* it leaves */
    if (own->weights->places) return (Py_ssize_t)own->weights->placed >= count + more;
    return own->weights->room >= count + more && (own->kind != ADAGRAD || own->squares->room >= count + more);
}

/* The pair that is most wrong, the lowest label that is right and the highest other one: whether entropy takes a step on it. */
static int entropy_pair(Blend *blend, const Member *own, const double *z, Py_ssize_t *pair) {
    Py_ssize_t r = -1, s = -1;
    double *scores = blend->spare;
    for (Py_ssize_t k = 0; k < blend->labels; k++) {
        scores[k] = z[k] / own->scale;
        if (blend->mask[k] && (r < 0 || scores[k] < scores[r])) r = k;
        if (!blend->mask[k] && (s < 0 || scores[k] > scores[s])) s = k;
    }
    pair[0] = r, pair[1] = s;
    return own->present && blend->words.all && r >= 0 && s >= 0 && !(scores[r] - scores[s] >= own->setting);
}

/* Room for the numbers that the steps of dual ascent, naive Bayes and entropy will bring where rows may be lists: -1 with an exception. */
static int blend_prepare(Blend *blend) {
    const Vector *x = blend->asked.x;
    const Words *words = &blend->words;
    for (int i = 0; i < blend->members; i++) {
        const Member *own = &blend->member[i];
        if (own->kind == DUAL_ASCENT && blend->moves && weights_prepare(own->weights, x->known, x->rows, x->unknown, blend->g)) return -1;
        if (!own->present || (own->kind != NAIVE_BAYES && own->kind != ENTROPY) || !own->weights->places) continue;
        if (changes_reserve(own->weights)) return -1;
        uint32_t *columns = own->weights->changed;
        size_t count = own->kind == NAIVE_BAYES ? (size_t)blend->rights : 2;
        Py_ssize_t pair[2];
        if (own->kind == NAIVE_BAYES)
            for (Py_ssize_t n = 0; n < blend->rights; n++) columns[n] = (uint32_t)blend->right[n];
        else if (entropy_pair(blend, own, blend->Z + i * blend->labels, pair))
            for (int n = 0; n < 2; n++) columns[n] = (uint32_t)pair[(pair[0] < pair[1]) == n ? 1 : 0];
        else
            continue;
        if (rows_prepare(own->weights, words->known, words->rows, words->all - words->known, columns, count)) return -1;
    }
    return 0;
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
    if (blend->pool.bits) { /* every bit by itself */
        blend->moves = square > 0.0;
        for (Py_ssize_t k = 0; k < labels && blend->moves; k++) {
            double sign = blend->Y[k] > 0.5 ? 1.0 : -1.0, amount = (1.0 - sign * s[k]) / square;
            amount = amount < 0.0 ? 0.0 : amount;
            blend->g[k] = -(sign * (amount > blend->weight ? blend->weight : amount));
        }
        return 0;
    }
    Relevant relevant = {blend->rights > 1 ? blend->mask : NULL, blend->right[0], {0}};
    return ascend_labels(s, labels, &relevant, square, 3, blend->weight, 1.0, blend->weight, blend->g, sums, &blend->moves);
}

/* Y of a truth: a label's or a grade's number, or a mask of the labels. -1 with an exception. */
static int blend_target(Blend *blend, PyObject *truth) {
    Py_ssize_t labels = blend->labels;
    Py_buffer mask;
    blend->rights = 0;
    if (blend->mode == ONE || blend->mode == GRADE) {
        blend->label = PyLong_AsSsize_t(truth);
        if (PyErr_Occurred()) return -1;
        if (blend->label < 0 || blend->label >= blend->names) return PyErr_SetString(PyExc_IndexError, "no such label"), -1;
        for (Py_ssize_t k = 0; k < labels; k++) blend->mask[k] = blend->mode == GRADE ? k < blend->label : k == blend->label;
    } else {
        if (numbers_of(truth, &mask, '?', labels, 0)) return -1;
        memcpy(blend->mask, mask.buf, (size_t)labels);
        PyBuffer_Release(&mask);
    }
    for (Py_ssize_t k = 0; k < labels; k++)
        if (blend->mask[k]) blend->right[blend->rights++] = k;
    double each = blend->mode == ORDER && blend->rights ? 1.0 / (double)blend->rights : 1.0;
    for (Py_ssize_t k = 0; k < labels; k++) blend->Y[k] = blend->mask[k] ? each : 0.0;
    return 0;
}

/* plan(instance, truth, weight, (gaps, loss), drift, sums, words, size) -> (loss, the five after it, the features then), or None. */
static PyObject *blend_plan(PyObject *self, PyObject *arguments) {
    Blend *blend = (Blend *)self;
    PyObject *instance, *truth;
    double gaps, loss, more, own;
    long long curved;
    Alarm alarm;
    Sums sums;
    if (!PyArg_ParseTuple(arguments, "OOd(dd)(Ldddd)(Ldddp)(dd)(dL)", &instance, &truth, &blend->weight, &gaps, &loss,
                          &alarm.count, &alarm.sum, &alarm.evidence[0], &alarm.evidence[1], &alarm.evidence[2], &sums.mistakes,
                          &sums.total, &sums.conjugate, &sums.promised, &sums.held, &blend->all_words, &blend->all_events,
                          &blend->size, &curved))
        return NULL;
    int state = blend_look(blend, instance);
    if (state < 0) return NULL;
    if (!state) Py_RETURN_NONE;
    const Vector *x = blend->asked.x;
    Py_ssize_t count = (Py_ssize_t)blend->table->names.count;
    if (x->late) Py_RETURN_NONE; /* experts that wait for a vector enter */
    if (blend_target(blend, truth)) return NULL;
    if (blend->mode == ORDER && !blend->rights) Py_RETURN_NONE;
    own = loss_of(blend, blend->t, blend->shown);
    double most = blend->mode == SET || blend->mode == GRADE ? (double)blend->labels : 1.0;
    for (Py_ssize_t k = 0; k < blend->labels && blend->costs; k++) most = blend->costs[k] > most ? blend->costs[k] : most;
    double share = own / most;
    if (alarm_after(&alarm, share < 1.0 ? share : 1.0) || blend->rows < count + x->unknown) Py_RETURN_NONE;
    for (int i = 0; i < blend->members; i++)
        if (!member_has_room(&blend->member[i], count, x->unknown, blend->bias)) Py_RETURN_NONE;
    if (x->unknown && (names_reserve(&blend->table->names, (size_t)x->unknown, x->ends[x->unknown - 1]) ||
                       counts_reserve(blend->table, (size_t)(count + x->unknown))))
        return NULL;
    blend->teaches = blend->pool.bits;
    for (Py_ssize_t n = 0; n < blend->rights; n++) blend->teaches |= blend->seen[blend->right[n]] > 0.0;
    if (blend_pool(blend, &gaps, &more) || blend_ascend(blend, &sums) < 0 || blend_prepare(blend)) return NULL;
    double z = 0.0, size = blend->size, pace = 1.0 / ((double)curved + 2.0);
    for (Py_ssize_t i = 0; i < x->known + x->unknown; i++) z += blend->x.z[i] * blend->x.z[i];
    size += (z - size) * (pace > 0.01 ? pace : 0.01);
    double counted = blend->weight * (double)blend->words.all;
    PyObject *result = Py_BuildValue(
        "d(dd)(Ldddd)(LdddO)(dd)(dL)n", own, gaps, loss + more, alarm.count, alarm.sum, alarm.evidence[0],
        alarm.evidence[1], alarm.evidence[2], sums.mistakes, sums.total, sums.conjugate, sums.promised,
        sums.held ? Py_True : Py_False, blend->all_words + counted, blend->all_events + blend->weight, size, curved + 1, count + x->unknown);
    blend->planned = result != NULL;
    blend->count = blend->table->names.count;
    return result;
}

/* L <- log(exp(L) + more). */
static inline void raise_count(double *cell, double more) { *cell = log_of(exp_of(*cell) + more); }

/* The step of entropy on the pair that is most wrong, on copies of its columns; no memory is asked for. */
static void entropy_learn(Blend *blend, const Member *own, const double *z) {
    const Words *words = &blend->words;
    Py_ssize_t pair[2];
    if (!entropy_pair(blend, own, z, pair)) return;
    double *cells = blend->columns, sums[2] = {own->words[pair[0]], own->words[pair[1]]};
    int64_t *rows = (int64_t *)(cells + 2 * words->all);
    for (Py_ssize_t i = 0; i < words->all; i++) {
        rows[i] = i;
        for (int n = 0; n < 2; n++) cells[2 * i + n] = weights_cell(own->weights, words->rows[i], pair[n]);
    }
    const Entropic weights = {cells, sums, 2, entropy_size(blend, own)};
    const EntropicWords x = {rows, words->values, (size_t)words->all, blend->powers};
    entropic_step(&weights, &x, 0, 1, own->most * blend->weight, own->setting);
    for (int n = 0; n < 2; n++) {
        for (Py_ssize_t i = 0; i < words->all; i++) column_set(own->weights, words->rows[i], (uint32_t)pair[n], cells[2 * i + n]);
        own->words[pair[n]] = sums[n];
    }
}

/* One expert's step. */
static void member_learn(Blend *blend, Member *own, const double *z) {
    const Vector *x = blend->asked.x;
    Py_ssize_t labels = blend->labels, count = x->known + x->unknown;
    double *miss = blend->spare;
    if (own->weights && own->present) own->weights->features = (Py_ssize_t)blend->table->names.count;
    if (own->squares && own->present) own->squares->features = (Py_ssize_t)blend->table->names.count;
    if (!own->present || own->kind == BY_PIECES) return;
    if (own->kind == DUAL_ASCENT) {
        if (blend->moves) step_along(own->weights, count, x->rows, blend->x.values, blend->g, 1.0);
    } else if (own->kind == NAIVE_BAYES) {
        const Words *words = &blend->words;
        double more = blend->weight / own->setting, seen = blend->weight * (double)words->all;
        for (Py_ssize_t n = 0; n < blend->rights; n++) {
            Py_ssize_t k = blend->right[n];
            for (Py_ssize_t i = 0; i < words->all; i++) raise_count(weights_place(own->weights, words->rows[i], (uint32_t)k), more);
            own->words[k] += seen;
            own->events[k] += blend->weight;
        }
        for (Py_ssize_t i = 0; i < words->all && blend->pool.bits; i++) raise_count(own->background + words->rows[i], more);
    } else if (own->kind == RECENT_ERRORS) {
        double step = blend->weight / (blend->weight + own->setting);
        for (Py_ssize_t k = 0; k < labels; k++) own->words[k] += step * ((blend->Y[k] - blend->linked[k]) - own->words[k]);
    } else if (own->kind == FOREST) {
        bound_forest_show(&own->forest, (Py_ssize_t)blend->table->names.count - blend->bias, blend->bias, x->rows, x->values, count);
        bound_forest_learn(&own->forest, labels, blend->mask, blend->weight);
    } else if (own->kind == ENTROPY) {
        entropy_learn(blend, own, z);
    } else if (own->kind == ADAGRAD) {
        for (Py_ssize_t k = 0; k < labels; k++) miss[k] = z[k] / own->scale;
        if (!blend->pool.bits) softmax_of(miss, blend->shown, labels);
        else
            for (Py_ssize_t k = 0; k < labels; k++) blend->shown[k] = sigmoid_of(miss[k]);
        for (Py_ssize_t k = 0; k < labels; k++) miss[k] = (blend->shown[k] - blend->Y[k]) * blend->weight;
        for (Py_ssize_t i = 0; i < count; i++) {
            Py_ssize_t row = x->rows[i] * own->weights->width;
            adapt_row((double *)own->weights->block->data + row, (double *)own->squares->block->data + row, blend->x.values[i], miss,
                      own->setting, labels);
        }
    } else {
        if (x->unknown) { /* phi of every feature, where those that were unknown have joined */
            curves_show(&own->curves, (Py_ssize_t)blend->table->names.count - blend->bias);
            curves_phi(&own->curves, x->rows, blend->x.z, count, blend->bias, blend->size, blend->phi);
        }
        curves_product(blend->phi, own->curves.R, own->curves.width, own->curves.stride, labels, miss);
        for (Py_ssize_t k = 0; k < labels; k++) miss[k] = blend->Y[k] - miss[k];
        curves_step(&own->curves, blend->phi, miss, labels, blend->weight, blend->q);
    }
}

/* commit(): what was planned, all of it. */
static PyObject *blend_commit(PyObject *self, PyObject *none) {
    (void)none;
    Blend *blend = (Blend *)self;
    if (!blend->planned || blend->count != blend->table->names.count || !blend_fits(blend))
        return PyErr_SetString(PyExc_RuntimeError, "no round was planned on this state"), NULL;
    const Vector *x = blend->asked.x;
    Py_ssize_t labels = blend->labels, m = blend->members;
    asked_join(&blend->asked, blend->table);
    for (Py_ssize_t i = x->known, k = blend->words.known; i < x->known + x->unknown; i++)
        if (blend->x.values[i] > 0.0) blend->words.rows[k++] = x->rows[i];
    blend->table->events++;
    tally_values(blend->counted, x->rows + blend->bias, x->values + blend->bias, x->known + x->unknown - blend->bias);
    double leader = 0.0;
    for (int i = 0; i < m; i++)
        if (blend->pool.present[i]) {
            if (blend->costs) softmax_of(blend->Z + i * labels, blend->spare, labels);
            double own = loss_of(blend, blend->Z + i * labels, blend->spare);
            blend->losses[i] += own;
            if (!i) leader = own;
        }
    if (blend->wealth) lead_round(blend->wealth, leader - loss_of(blend, blend->pooled, blend->spare));
    Py_ssize_t first = highest(blend->p, blend->names, -1);
    if (blend->mode == ONE || blend->mode == GRADE)
        count_calibration(blend->p[first], blend->teaches && first == blend->label, blend->sums);
    else if (blend->mode != ORDER && all_finite(blend->p, labels)) count_bits(blend->p, blend->mask, labels, blend->sums);
    for (int i = 0; i < m; i++) member_learn(blend, &blend->member[i], blend->Z + i * labels);
    memcpy(blend->pool.a, blend->a, (size_t)m * sizeof(double));
    memcpy(blend->pool.A, blend->A, (size_t)(m * m) * sizeof(double));
    memcpy(blend->pool.losses, blend->pool_losses, (size_t)(1 + m) * sizeof(double));
    memcpy(blend->pool.w, blend->w, (size_t)(1 + m) * sizeof(double));
    memcpy(blend->pool.weights, blend->weights, (size_t)m * sizeof(double));
    for (Py_ssize_t n = 0; n < blend->rights; n++) blend->seen[blend->right[n]] += 1.0;
    blend_drop(blend);
    Py_RETURN_NONE;
}

static PyObject *blend_clear(PyObject *self, PyObject *none) {
    (void)none;
    blend_unbind((Blend *)self);
    Py_RETURN_NONE;
}

/* linked(): the probabilities of the bits or labels before calibration, of the instance that was asked about last. */
static PyObject *blend_linked(PyObject *self, PyObject *none) {
    (void)none;
    const Blend *blend = (Blend *)self;
    double *numbers;
    PyObject *array = array_new(blend->labels, &numbers);
    if (array) memcpy(numbers, blend->linked, (size_t)blend->labels * sizeof *numbers);
    return array;
}

static PyMethodDef blend_methods[] = {
    {"linked", blend_linked, METH_NOARGS, "The probabilities of the instance that was asked about last."},
    {"bind", blend_bind, METH_O, "Show it the arrays of the pieces."},
    {"predict", blend_predict, METH_VARARGS, "The ranking, the margin, the label and the probabilities of an instance, or None."},
    {"plan", blend_plan, METH_VARARGS, "What a round would do, or None."},
    {"commit", blend_commit, METH_NOARGS, "Do what was planned."},
    {"clear", blend_clear, METH_NOARGS, "Forget the last instance and the arrays: they are about to change."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot blend_slots[] = {{Py_tp_new, blend_new},
                                    {Py_tp_dealloc, blend_dealloc},
                                    {Py_tp_methods, blend_methods},
                                    {Py_tp_doc, "Whole rounds of the automatic learner: BlendRounds(table)."},
                                    {0, NULL}};
static PyType_Spec blend_spec = {"feedrank.learners.kernel._native.BlendRounds", sizeof(Blend), 0, Py_TPFLAGS_DEFAULT, blend_slots};
