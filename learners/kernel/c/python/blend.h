/* The round of the automatic learner as a whole: what its pieces in algorithms/auto do, in three calls, with the same bits.

     predict   look up, scale, score with every expert, pool, calibrate, decide
     plan      judge, and all that could be refused or asks for memory
     commit    all steps: from here on nothing can fail

   `bind` shows it the arrays of the pieces, which stay theirs; `clear` must be called before they are replaced. Whatever is
   unusual (a table that has to grow, an alarm of drift, scores that are not finite) gives None: the pieces do it. */

/* One label is right (softmax), or any bits are: of a set, judged by how many are wrong or whether any is, or of a grade, whose
   bit k says that it is above k (sigmoid). One label may have costs: of missing it, or of rejecting all. Or all labels are put in
   order, and those that are right share one unit (softmax). */
enum { ONE, SET, WHOLE_SET, GRADE, WEIGHTED, REJECTING, ORDER };
#define PROVED 20.0 /* lead.py: what the gamblers have on average where the pool's lead is proved */
enum { DUAL_ASCENT, NAIVE_BAYES, ADAGRAD, LEAST_SQUARES, RECENT_ERRORS, BY_PIECES, FOREST, ENTROPY };

typedef struct {
    int kind, present;
    double scale, setting; /* log-odds over scores; smoothing of naive Bayes, rate of AdaGrad, memory of recent errors, margin of
                              entropy */
    Weights *weights, *squares;
    double *words, *events; /* of naive Bayes, one a label; `words` are the errors of recent errors, the sums of entropy */
    double *background;     /* of naive Bayes on bits, `room` of them */
    double most;            /* the largest step of entropy */
    Py_ssize_t room;        /* features that AdaGrad stays with, 0 for any number; that entropy counts with, at least */
    Curves curves;
    BoundForest forest;
} Member;

#define BUFFERS (16 + 5 * MEMBERS)

typedef struct {
    PyObject_HEAD Table *table;
    Asked asked;
    PyObject *state;  /* what was bound, and keeps it alive */
    PyObject *pieces; /* called with an instance, gives the log-odds of the experts that have no round here; part of `state` */
    Py_buffer buffers[BUFFERS];
    int taken, idf, members, planned, mode;
    Py_ssize_t bias, rows, labels; /* labels: columns, one fewer than grades */
    double bias_size, all_words, all_events, size; /* numbers of naive Bayes and least squares */
    Counted *counted; /* `rows` of them */
    Member member[MEMBERS];
    Trust pool;
    double *sums, *losses, *seen;
    const double *view;  /* (names, labels), or NULL where names are labels */
    const double *costs; /* one a label, or NULL */
    int rejects;
    OrderLoss order;
    double *wealth; /* of lead.py, or NULL */
    Py_ssize_t names;
    /* the last instance: scaled, its words, log-odds Z of every expert, t, its link, and p before and after calibration */
    double *memory;
    size_t room;
    Scaled x;
    Words words;
    double *Z, *t, *linked, *p, *shown, *g, *Y, *pooled, *spare, *phi, *q; /* pooled: t of all experts, of whom one may lead */
    double *powers, *columns; /* room for one a word, and for three */
    Py_ssize_t *right, *places, rights; /* the labels or bits that are right, and room for places */
    char *mask;                         /* of those that are right */
    /* what was planned: the pool after it, in memory of its own, and the step of dual ascent */
    double a[MEMBERS], A[MEMBERS * MEMBERS], pool_losses[1 + MEMBERS], w[1 + MEMBERS], weights[MEMBERS];
    size_t count; /* of names then */
    Py_ssize_t label;
    double weight;
    int moves, teaches;
} Blend;

static PyTypeObject *BlendType;

static void blend_drop(Blend *blend) {
    blend->planned = 0;
    asked_drop(&blend->asked);
}

static void blend_unbind(Blend *blend) {
    blend_drop(blend);
    while (blend->taken) PyBuffer_Release(&blend->buffers[--blend->taken]);
    for (int i = 0; i < MEMBERS; i++) bound_forest_release(&blend->member[i].forest);
    Py_CLEAR(blend->state);
}

static void blend_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    blend_unbind((Blend *)self);
    Py_XDECREF((PyObject *)((Blend *)self)->table);
    free(((Blend *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *blend_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *table;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "O!", TableType, &table)) return NULL;
    Blend *blend = (Blend *)PyType_GenericAlloc(type, 0);
    if (!blend) return NULL;
    Py_INCREF(table);
    blend->table = (Table *)table;
    return (PyObject *)blend;
}

/* The numbers of an array, for as long as it is bound; NULL with an exception. Of kind 'r' they are only read. */
static void *blend_numbers(Blend *blend, PyObject *array, char kind, Py_ssize_t count, Py_buffer **buffer) {
    Py_buffer *own = &blend->buffers[blend->taken];
    if (blend->taken == BUFFERS || numbers_of(array, own, kind == 'r' ? 'd' : kind, count, kind == 'd')) return NULL;
    blend->taken++;
    if (buffer) *buffer = own;
    return own->buf;
}

/* One expert: (kind, present, scale, ...), the rest by its kind. */
static int blend_member(Blend *blend, PyObject *expert, Member *own) {
    PyObject *parts[5];
    Py_buffer *sums, *P, *R, *omega, *places;
    memset(own, 0, sizeof *own);
    if (!PyArg_ParseTuple(expert, "ipdd|OOOOO", &own->kind, &own->present, &own->scale, &own->setting, &parts[0], &parts[1],
                          &parts[2], &parts[3], &parts[4]))
        return -1;
    Py_ssize_t given = PyTuple_Size(expert) - 4;
    static const Py_ssize_t wanted[8] = {1, 4, 3, 5, 1, 0, 1, 4};
    if (own->kind < 0 || own->kind > ENTROPY || given != wanted[own->kind]) goto wrong;
    if (own->kind == BY_PIECES) return 0;
    if (own->kind == FOREST) return own->present && blend->labels > 0 ? bound_forest_take(&own->forest, parts[0], blend->labels) : 0;
    if (own->kind == RECENT_ERRORS) return (own->words = blend_numbers(blend, parts[0], 'd', blend->labels, NULL)) ? 0 : -1;
    if (own->kind == LEAST_SQUARES) {
        Curves *curves = &own->curves;
        if (!own->present) return 0;
        if (!(curves->P = blend_numbers(blend, parts[0], 'd', -1, &P)) || !(curves->R = blend_numbers(blend, parts[1], 'd', -1, &R)) ||
            !(curves->omega = blend_numbers(blend, parts[2], 'd', -1, &omega)) ||
            !(curves->theta = blend_numbers(blend, parts[3], 'd', WAVES, NULL)) ||
            !(curves->places = blend_numbers(blend, parts[4], 'q', -1, &places)))
            return -1;
        curves->room = P->shape[0];
        curves->features = omega->shape[0];
        curves->curved = (Py_ssize_t)own->setting;
        if (P->ndim != 2 || R->ndim != 2 || omega->ndim != 2 || P->shape[1] != curves->room || R->shape[0] != curves->room ||
            omega->shape[1] != WAVES || places->len / 8 != curves->features || curves->curved > curves->features ||
            R->shape[1] < blend->labels || curves->room < 1 + WAVES)
            goto wrong;
        curves->stride = R->shape[1];
        for (Py_ssize_t j = 0; j < curves->features; j++)
            if (curves->places[j] < 0 || curves->places[j] + (j < curves->curved ? CURVE_HATS : 0) >= curves->room) goto wrong;
        return 0;
    }
    if (!Py_IS_TYPE(parts[0], WeightsType) || (own->kind == ADAGRAD && !Py_IS_TYPE(parts[1], WeightsType))) goto wrong;
    own->weights = (Weights *)parts[0];
    if (own->kind == ADAGRAD) {
        own->squares = (Weights *)parts[1];
        own->room = PyLong_AsSsize_t(parts[2]);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (own->kind == ENTROPY && own->present) {
        own->most = PyFloat_AsDouble(parts[2]);
        own->room = PyLong_AsSsize_t(parts[3]);
        if (PyErr_Occurred() || !(own->words = blend_numbers(blend, parts[1], 'd', -1, &sums))) return -1;
        if (sums->len / 8 < blend->labels) goto wrong;
    }
    if (own->kind != NAIVE_BAYES) return 0;
    Py_buffer *words, *events, *background;
    if (!(own->background = blend_numbers(blend, parts[3], 'd', -1, &background))) return -1;
    own->room = background->len / 8;
    if (!(own->words = blend_numbers(blend, parts[1], 'd', -1, &words))) return -1;
    if (!(own->events = blend_numbers(blend, parts[2], 'd', -1, &events))) return -1;
    if (words->len / 8 >= blend->labels && events->len / 8 >= blend->labels) return 0;
wrong:
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "an expert has not the parts that its kind takes");
    return -1;
}

/* (measure, cutoff, discounts, wealth or None) of a loss on orders. */
static int blend_order(Blend *blend, PyObject *order) {
    PyObject *discounts, *wealth;
    OrderLoss *loss = &blend->order;
    blend->wealth = NULL;
    if (!PyTuple_Check(order)) return PyErr_SetString(PyExc_TypeError, "the loss of an order is a tuple"), -1;
    if (!PyArg_ParseTuple(order, "inOO", &loss->measure, &loss->cutoff, &discounts, &wealth) ||
        !(loss->discounts = blend_numbers(blend, discounts, 'r', -1, NULL)) ||
        (wealth != Py_None && !(blend->wealth = blend_numbers(blend, wealth, 'd', 3, NULL))))
        return -1;
    if (loss->measure >= NDCG_LOSS && loss->measure <= AP_LOSS && loss->cutoff >= (loss->measure == PRECISION_LOSS) &&
        blend->buffers[blend->taken - 1 - (wealth != Py_None)].len / 8 >= blend->labels)
        return 0;
    PyErr_SetString(PyExc_ValueError, "this is not the loss of an order");
    return -1;
}

/* bind(state): mode, statistics, bias, its size, idf, pool, calibration, losses, seen, view, costs, experts, pieces, order; see
   algorithms/auto/fused.py. */
static PyObject *blend_bind(PyObject *self, PyObject *state) {
    Blend *blend = (Blend *)self;
    PyObject *statistics, *pool[7], *sums, *losses, *seen, *view, *costs, *experts, *order;
    Trust *trust = &blend->pool;
    Py_buffer *buffer;
    blend_unbind(blend);
    if (!PyTuple_Check(state)) return PyErr_SetString(PyExc_TypeError, "a state is a tuple"), NULL;
    if (!PyArg_ParseTuple(state, "iOndp(OOOOOOOd)OOOOOO!OO", &blend->mode, &statistics, &blend->bias, &blend->bias_size, &blend->idf, &pool[0], &pool[1],
                          &pool[2], &pool[3], &pool[4], &pool[5], &pool[6], &trust->doubt, &sums, &losses, &seen, &view, &costs, &PyList_Type,
                          &experts, &blend->pieces, &order))
        return NULL;
    Py_INCREF(state);
    blend->state = state;
    Py_ssize_t m = PyList_Size(experts);
    blend->members = trust->members = (int)m;
    int failed = m < 1 || m > MEMBERS || blend->bias < 0 || blend->bias > 1 || blend->mode < ONE || blend->mode > ORDER ||
                 (blend->mode == WEIGHTED || blend->mode == REJECTING) != (costs != Py_None) ||
                 (blend->mode == ORDER) != (order != Py_None);
    blend->rejects = blend->mode == REJECTING;
    if (blend->mode == WEIGHTED || blend->mode == REJECTING) blend->mode = ONE;
    trust->bits = blend->mode != ONE && blend->mode != ORDER;
    if (failed) PyErr_SetString(PyExc_ValueError, "the shapes do not fit");
    failed = failed || !(blend->counted = blend_numbers(blend, statistics, 'd', -1, &buffer));
    if (!failed && (failed = buffer->ndim != 2 || buffer->shape[1] != 4)) PyErr_SetString(PyExc_ValueError, "four columns are needed");
    if (!failed) blend->rows = buffer->shape[0];
    failed = failed || !(trust->a = blend_numbers(blend, pool[0], 'd', m, NULL)) ||
             !(trust->A = blend_numbers(blend, pool[1], 'd', m * m, NULL)) ||
             !(trust->losses = blend_numbers(blend, pool[2], 'd', 1 + m, NULL)) ||
             !(trust->w = blend_numbers(blend, pool[3], 'd', 1 + m, NULL)) ||
             !(trust->weights = blend_numbers(blend, pool[4], 'd', m, NULL)) ||
             !(trust->prior = blend_numbers(blend, pool[5], 'd', 1 + m, NULL)) ||
             !(trust->present = blend_numbers(blend, pool[6], '?', m, NULL)) ||
             !(blend->sums = blend_numbers(blend, sums, 'd', 2 * KNOTS, NULL)) ||
             !(blend->losses = blend_numbers(blend, losses, 'd', m, NULL)) ||
             !(blend->seen = blend_numbers(blend, seen, 'd', -1, &buffer));
    if (!failed) blend->labels = buffer->len / 8;
    blend->view = NULL;
    blend->names = blend->labels + (blend->mode == GRADE);
    failed = failed || (view != Py_None && !(blend->view = blend_numbers(blend, view, 'd', -1, &buffer)));
    if (!failed && blend->view && buffer->len / 8 != blend->names * blend->labels) blend->labels = 0; /* not all have joined yet */
    blend->costs = NULL;
    failed = failed || (costs != Py_None && !(blend->costs = blend_numbers(blend, costs, 'd', -1, &buffer)));
    if (!failed && blend->costs && buffer->len / 8 != blend->labels) blend->labels = 0;
    failed = failed || (blend->mode == ORDER && blend_order(blend, order));
    for (Py_ssize_t i = 0; i < m && !failed; i++) failed = blend_member(blend, PyList_GetItem(experts, i), &blend->member[i]);
    if (!failed) Py_RETURN_NONE;
    blend_unbind(blend);
    return NULL;
}

/* Whether the weights have a row for every feature, and a column for every label. */
static int weights_fit(const Blend *blend, const Weights *weights) {
    return !weights->single && weights->labels == blend->labels &&
           (size_t)weights->features == blend->table->names.count;
}

static int member_fits(const Blend *blend, const Member *own) {
    if (!own->present || own->kind == RECENT_ERRORS || own->kind == BY_PIECES) return 1;
    if (own->kind == FOREST) return blend->table->names.count <= (size_t)(own->forest.view.buffers[1].shape[0] + blend->bias);
    if (own->kind == LEAST_SQUARES) return (size_t)(own->curves.features + blend->bias) >= blend->table->names.count;
    return weights_fit(blend, own->weights) && (own->kind != ADAGRAD || weights_fit(blend, own->squares));
}

/* Memory for an instance of so many features: -1 with an exception. */
static int blend_reserve(Blend *blend, Py_ssize_t features) {
    Py_ssize_t labels = blend->labels, width = 0;
    for (int i = 0; i < blend->members; i++)
        if (blend->member[i].kind == LEAST_SQUARES && blend->member[i].present) width = blend->member[i].curves.room;
    size_t needed = (size_t)(9 * (features + 1) + (blend->members + 16) * (labels + 1) + 2 * width);
    if (needed > blend->room) {
        double *memory = malloc(needed * sizeof *memory);
        if (!memory) return PyErr_NoMemory(), -1;
        free(blend->memory);
        blend->memory = memory;
        blend->room = needed;
    }
    double *at = blend->memory;
    blend->x.values = at, at += features;
    blend->x.z = at, at += features;
    blend->words.values = at, at += features;
    blend->powers = at, at += features;
    blend->columns = at, at += 3 * features;
    blend->words.rows = (int64_t *)at, at += features;
    blend->x.dense = (unsigned char *)at, at += features / 8 + 1;
    blend->Z = at, at += blend->members * labels;
    double **rows[7] = {&blend->t, &blend->linked, &blend->p, &blend->shown, &blend->g, &blend->Y, &blend->pooled};
    for (int i = 0; i < 7; i++) *rows[i] = at, at += labels + 1;
    blend->right = (Py_ssize_t *)at, at += labels;
    blend->places = (Py_ssize_t *)at, at += 4 * labels;
    blend->mask = (char *)at, at += labels / 8 + 1;
    blend->spare = at, at += 3 * labels;
    blend->phi = at, at += width;
    blend->q = at;
    return 0;
}

/* What naive Bayes says of bits beside the words' own part: see its `_constant`. */
static void add_odds(const Blend *blend, const Member *own, double room, double *z) {
    double usual = 0.0, all = log_of(blend->all_words + room);
    for (Py_ssize_t i = 0; i < blend->words.known; i++) usual += blend->words.values[i] * own->background[blend->words.rows[i]];
    for (Py_ssize_t k = 0; k < blend->labels; k++) {
        double odds = log_of(own->events[k] + 0.5) - log_of(blend->all_events - own->events[k] + 0.5);
        z[k] = (z[k] - usual) + (odds - blend->words.size * (log_of(own->words[k] + room) - all));
    }
}

/* The log-odds of the experts that have no round here, as their pieces give them: -1 with an exception. */
static int pieces_scores(Blend *blend) {
    const Vector *x = blend->asked.x;
    Py_ssize_t labels = blend->labels, all = x->known + x->unknown, row = 0, count = 0;
    int here = 0;
    Py_buffer Z;
    for (int i = 0; i < blend->members; i++) 
        if (blend->member[i].kind == BY_PIECES) {
            count++;
            here |= blend->member[i].present;
            memset(blend->Z + i * labels, 0, (size_t)labels * sizeof(double));
        }
    if (!here) return 0;
    PyObject *arguments = Py_BuildValue("(y#y#y#y#y#)", x->rows, 8 * x->known, blend->x.values, 8 * all, x->values, 8 * all,
                                        blend->x.z, 8 * all, blend->x.dense, x->known);
    PyObject *array = arguments ? PyObject_CallObject(blend->pieces, arguments) : NULL;
    int failed = !array || numbers_of(array, &Z, 'd', count * labels, 0);
    Py_XDECREF(arguments);
    Py_XDECREF(array);
    if (failed) return -1;
    for (int i = 0; i < blend->members; i++)
        if (blend->member[i].kind == BY_PIECES)
            memcpy(blend->Z + i * labels, (const double *)Z.buf + labels * row++, (size_t)labels * sizeof(double));
    PyBuffer_Release(&Z);
    return 0;
}

/* What Z of entropy is without the sums of its cells. */
static double entropy_size(const Blend *blend, const Member *own) {
    size_t features = blend->table->names.count;
    return (double)(features > (size_t)own->room ? features : (size_t)own->room);
}

/* The log-odds of one expert. */
static void member_scores(Blend *blend, Member *own, double *z) {
    const Vector *x = blend->asked.x;
    Py_ssize_t labels = blend->labels;
    if (!own->present) {
        for (Py_ssize_t k = 0; k < labels; k++) z[k] = 0.0;
        return;
    }
    if (own->kind == RECENT_ERRORS) memcpy(z, own->words, (size_t)labels * sizeof *z);
    else if (own->kind == FOREST) {
        bound_forest_show(&own->forest, (Py_ssize_t)blend->table->names.count - blend->bias, blend->bias, x->rows, x->values, x->known);
        bound_forest_scores(&own->forest, labels, z);
    } else if (own->kind == LEAST_SQUARES) {
        curves_show(&own->curves, (Py_ssize_t)blend->table->names.count - blend->bias);
        curves_phi(&own->curves, x->rows, blend->x.z, x->known, blend->bias, blend->size, blend->phi);
        curves_product(blend->phi, own->curves.R, own->curves.width, own->curves.stride, labels, z);
        if (blend->pool.bits)
            for (Py_ssize_t k = 0; k < labels; k++) z[k] -= 0.5;
    } else if (own->kind == NAIVE_BAYES) {
        double room = own->setting * (double)blend->table->names.count + own->setting;
        scores_of(own->weights, blend->words.known, blend->words.rows, blend->words.values, z);
        if (!blend->pool.bits) add_priors(z, own->words, own->events, blend->words.size, room, labels);
        else add_odds(blend, own, room, z);
    } else if (own->kind == ENTROPY) {
        const double size = entropy_size(blend, own);
        scores_of(own->weights, blend->words.known, blend->words.rows, blend->words.values, z);
        for (Py_ssize_t k = 0; k < labels; k++) z[k] = (z[k] + blend->words.size) / (own->words[k] + size);
    } else
        scores_of(own->weights, x->known, x->rows, blend->x.values, z);
    for (Py_ssize_t k = 0; k < labels; k++) z[k] = z[k] * own->scale;
}

/* P(grade = g) = P(grade > g - 1) - P(grade > g), the bits made to fall. */
static void grades_of(const double *bits, Py_ssize_t count, double *p) {
    double before = 1.0;
    for (Py_ssize_t g = 0; g <= count; g++) {
        double next = g == count ? 0.0 : g && before < bits[g] ? before : bits[g];
        p[g] = before - next;
        before = next;
    }
}

/* Whether all that is bound fits the table. */
static int blend_fits(const Blend *blend) {
    if (!blend->state || blend->labels < 1 || (size_t)blend->rows < blend->table->names.count) return 0;
    for (int i = 0; i < blend->members; i++)
        if (!member_fits(blend, &blend->member[i])) return 0;
    return 1;
}

/* All that `predict` and `plan` need of an instance: 1, 0 where it is unusual, -1 with an exception. */
static int blend_look(Blend *blend, PyObject *instance) {
    blend->planned = 0;
    if (!blend_fits(blend)) return 0;
    Ahead ahead[1 + MEMBERS] = {{(const char *)blend->counted, sizeof(Counted), NULL, NULL}};
    int tables = 1;
    for (int i = 0; i < blend->members; i++)
        if (blend->member[i].present && blend->member[i].weights) ahead[tables++] = weights_ahead(blend->member[i].weights);
    int state = asked_look(&blend->asked, instance, blend->table, ahead, tables);
    if (state >= 0 && !blend_fits(blend)) return blend_drop(blend), 0; /* a key's __eq__ may have taught the learner */
    if (state != 1) return state > 1 ? 1 : state;
    const Vector *x = blend->asked.x;
    Py_ssize_t labels = blend->labels;
    if (blend_reserve(blend, x->known + x->unknown)) {
        blend_drop(blend);
        return -1;
    }
    scale_values(blend->counted, x->rows, x->values, x->known, x->unknown, blend->bias, blend->idf, blend->table->events, &blend->x);
    words_of(x->rows, blend->x.values, blend->x.dense, x->known, x->unknown, &blend->words);
    if (blend->bias) blend->x.values[0] = blend->bias_size;
    if (pieces_scores(blend)) return blend_drop(blend), -1;
    if (!blend_fits(blend)) return blend_drop(blend), 0; /* an expert may have taught the learner */
    for (int i = 0; i < blend->members; i++)
        if (blend->member[i].kind != BY_PIECES) member_scores(blend, &blend->member[i], blend->Z + i * labels);
    const double first[MEMBERS] = {1.0}, *wealth = blend->wealth;
    int leads = wealth && !((wealth[0] + wealth[1] + wealth[2]) / 3.0 >= PROVED);
    multiply(leads ? first : blend->pool.weights, blend->Z, blend->t, 1, blend->members, labels);
    if (!all_finite(blend->Z, blend->members * labels) || !all_finite(blend->t, labels)) {
        blend_drop(blend);
        return 0;
    }
    if (!blend->pool.bits) softmax_of(blend->t, blend->linked, labels);
    else
        for (Py_ssize_t k = 0; k < labels; k++) blend->linked[k] = sigmoid_of(blend->t[k]);
    memcpy(blend->p, blend->linked, (size_t)labels * sizeof(double));
    if (blend->mode == GRADE) grades_of(blend->linked, labels, blend->p);
    if (wealth) {
        multiply(blend->pool.weights, blend->Z, blend->pooled, 1, blend->members, labels);
        softmax_of(blend->pooled, blend->linked, labels);
    }
    int set = blend->mode == SET || blend->mode == WHOLE_SET;
    if (blend->mode == ORDER || !(set ? calibrate_bits : calibrate)(blend->p, blend->sums, blend->names, blend->shown))
        memcpy(blend->shown, blend->p, (size_t)blend->names * sizeof(double));
    return 1;
}
