/* trust.py: one round of the automatic learner's pool, in place; hedge.h has its parts without Python. */

/* The log loss of the log-odds t, for bits the mean; p is left in `p` where it is asked for, which else is only room. */
static double log_loss(const double *t, const double *Y, double *p, Py_ssize_t count, int bits, int asked) {
    double sum = 0.0, product = 0.0, top;
    if (bits) {
        for (Py_ssize_t k = 0; k < count; k++) {
            double wrong = Y[k] > 0.5 ? -t[k] : t[k], small = exp_of(-fabs(wrong));
            sum += (wrong > 0.0 ? wrong : 0.0) + log_of(1.0 + small);
            p[k] = (t[k] >= 0.0 ? 1.0 : small) / (1.0 + small);
        }
        return sum / (double)count;
    }
    top = top_of(t, count);
    exp_each(t, top, p, count);
    for (Py_ssize_t k = 0; k < count; k++) sum += p[k], product += t[k] * Y[k];
    for (Py_ssize_t k = 0; k < count && asked; k++) p[k] /= sum;
    return (log_of(sum) + top) - product;
}

/* The log-odds of an expert that has left are 0, and so is whatever they are multiplied by. */
static int newton(Trust *pool, const double *Z, const double *Y, const double *p, Py_ssize_t count, double weight) {
    double H[MEMBERS][MEMBERS] = {{0.0}}, g[MEMBERS] = {0.0}, means[MEMBERS] = {0.0}, *A = pool->A;
    int m = pool->members, here = 0, who[MEMBERS];
    for (int i = 0; i < m; i++)
        if (pool->present[i]) who[here++] = i;
    for (Py_ssize_t k = 0; k < count; k++) {
        double curve = pool->bits ? p[k] * (1.0 - p[k]) : p[k], off = p[k] - Y[k];
        for (int i = 0; i < here; i++) {
            double z = Z[who[i] * count + k];
            for (int j = 0; j <= i; j++) H[who[i]][who[j]] += (z * Z[who[j] * count + k]) * curve;
            g[who[i]] += z * off;
            means[who[i]] += z * p[k];
        }
    }
    for (int i = 0; i < m; i++) g[i] = weight * g[i], means[i] = weight * means[i];
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= i; j++) {
            double h = weight * H[i][j];
            if (!pool->bits) h -= (means[i] * means[j]) / weight;
            A[i * m + j] = A[j * m + i] = (0.998 * A[i * m + j] + h) + (i == j ? (1.0 - 0.998) * 3.0 : 0.0);
        }
    if (solve(A, g, m)) return -1;
    for (int i = 0; i < m; i++) {
        double next = pool->a[i] - g[i];
        pool->a[i] = !pool->present[i] || next <= 0.0 ? 0.0 : next;
    }
    return 0;
}

/* One round; `spare` has room for 3 count numbers. The pool's loss in `*loss`; -1 where no step can be taken. */
static int trust_round(Trust *pool, const double *Z, const double *Y, Py_ssize_t count, double weight, int teaches,
                       double *spare, double *loss) {
    double each[1 + MEMBERS], *t = spare, *p = t + count, *other = p + count;
    int m = pool->members;
    multiply(pool->weights, Z, t, 1, m, count);
    *loss = log_loss(t, Y, other, count, pool->bits, 0);
    multiply(pool->a, Z, t, 1, m, count);
    each[0] = log_loss(t, Y, p, count, pool->bits, 1);
    for (int i = 0; i < m; i++) /* of who has left, all log-odds are 0 */
        each[1 + i] = pool->present[i] || pool->bits ? log_loss(Z + i * count, Y, other, count, pool->bits, 0) : log_of((double)count);
    pool->gaps = gap_of(pool, each);
    for (int i = 0; i <= m; i++) pool->losses[i] += each[i];
    if (teaches && newton(pool, Z, Y, p, count, weight)) return -1;
    hedge(pool);
    return 0;
}

static PyObject *pool_round(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *objects[9], *state, *result = NULL;
    double weight, doubt, gaps, loss;
    int bits, teaches, taken = 0, failed = 0;
    Py_buffer all[9]; /* Z, Y, a, A, losses, w, weights, prior, present */
    if (!PyArg_ParseTuple(arguments, "OOdiiO!OOdd", &objects[0], &objects[1], &weight, &bits, &teaches, &PyTuple_Type, &state,
                          &objects[7], &objects[8], &doubt, &gaps))
        return NULL;
    if (PyTuple_Size(state) != 5) {
        PyErr_SetString(PyExc_ValueError, "five parts are needed");
        return NULL;
    }
    for (int i = 0; i < 5; i++) objects[2 + i] = PyTuple_GetItem(state, i);
    Py_ssize_t count = 0, m = 0;
    for (; !failed && taken < 9; taken += !failed) {
        Py_ssize_t lengths[9] = {-1, count, m, m * m, 1 + m, 1 + m, m, 1 + m, m};
        if (taken == 1) count = all[0].ndim == 2 ? all[0].shape[1] : 0, m = all[0].ndim == 2 ? all[0].shape[0] : 0;
        if (taken == 1) lengths[1] = count;
        failed = numbers_of(objects[taken], &all[taken], taken == 8 ? '?' : 'd', lengths[taken], taken > 1 && taken < 7);
    }
    double *spare = NULL;
    if (!failed && (m < 1 || m > MEMBERS || count < 1)) PyErr_SetString(PyExc_ValueError, "the shapes do not fit");
    else if (!failed && !(spare = malloc((size_t)(3 * count) * sizeof *spare))) PyErr_NoMemory();
    if (spare) {
        Trust pool = {all[2].buf, all[3].buf, all[4].buf, all[5].buf, all[6].buf, all[7].buf, all[8].buf, doubt, gaps, (int)m, bits};
        if (trust_round(&pool, all[0].buf, all[1].buf, count, weight, teaches, spare, &loss))
            PyErr_SetString(PyExc_ValueError, "the matrix is not positive definite");
        else result = Py_BuildValue("dd", loss, pool.gaps);
    }
    free(spare);
    while (taken) PyBuffer_Release(&all[--taken]);
    return result;
}
