/* products.py: products and inverses, every sum from the first to the last. */

static PyObject *as_contiguous; /* numpy.ascontiguousarray */

typedef struct {
    Py_buffer buffer;
    PyObject *copy;
    double *numbers;
    Py_ssize_t rows, columns;
    int dimensions;
} Array;

static void array_release(Array *array) {
    PyBuffer_Release(&array->buffer);
    Py_XDECREF(array->copy);
}

/* A vector (as one column) or a matrix of float64; a copy where it is not contiguous. */
static int array_get(PyObject *object, Array *array, int writable) {
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    array->copy = NULL;
    int failed = PyObject_GetBuffer(object, &array->buffer, flags);
    if (!failed && !writable && (!array->buffer.format || strcmp(array->buffer.format, "d"))) {
        PyBuffer_Release(&array->buffer);
        failed = 1;
    }
    if (failed) {
        if (writable) return -1;
        PyErr_Clear();
        array->copy = PyObject_CallFunction(as_contiguous, "Os", object, "float64");
        if (!array->copy || PyObject_GetBuffer(array->copy, &array->buffer, flags)) {
            Py_XDECREF(array->copy);
            return -1;
        }
    }
    Py_buffer *buffer = &array->buffer;
    if (!buffer->format || buffer->format[0] != 'd' || buffer->format[1] || buffer->ndim < 1 || buffer->ndim > 2) {
        PyErr_SetString(PyExc_ValueError, "not a vector or a matrix of float64");
        array_release(array);
        return -1;
    }
    array->numbers = buffer->buf;
    array->dimensions = buffer->ndim;
    array->rows = buffer->shape[0];
    array->columns = buffer->ndim == 2 ? buffer->shape[1] : 1;
    return 0;
}

WIDE static void multiply(const double *A, const double *B, double *restrict C, Py_ssize_t m, Py_ssize_t K, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < m; i++) {
        double *row = C + i * n;
        if (n == 1) {
            double sum = 0.0;
            for (Py_ssize_t k = 0; k < K; k++) sum += A[i * K + k] * B[k];
            row[0] = sum;
            continue;
        }
        for (Py_ssize_t j = 0; j < n; j++) row[j] = 0.0;
        for (Py_ssize_t k = 0; k < K; k++) {
            double a = A[i * K + k];
            const double *other = B + k * n;
            for (Py_ssize_t j = 0; j < n; j++) row[j] += a * other[j];
        }
    }
}

static PyObject *times(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *one, *other, *product = NULL;
    Array A, B;
    if (!PyArg_ParseTuple(arguments, "OO", &one, &other) || array_get(one, &A, 0)) return NULL;
    if (array_get(other, &B, 0)) {
        array_release(&A);
        return NULL;
    }
    Py_ssize_t m = A.dimensions == 2 ? A.rows : 1, K = A.dimensions == 2 ? A.columns : A.rows;
    Array C;
    if (K != B.rows) PyErr_SetString(PyExc_ValueError, "the shapes do not fit");
    else if (A.dimensions == 1 && B.dimensions == 1) {
        double sum;
        multiply(A.numbers, B.numbers, &sum, 1, K, 1);
        product = PyFloat_FromDouble(sum);
    } else {
        if (A.dimensions == 2 && B.dimensions == 2) product = PyObject_CallFunction(empty_array, "((nn))", m, B.columns);
        else product = PyObject_CallFunction(empty_array, "n", A.dimensions == 2 ? m : B.columns);
        if (product && array_get(product, &C, 1)) Py_CLEAR(product);
        if (product) {
            multiply(A.numbers, B.numbers, C.numbers, m, K, B.columns);
            array_release(&C);
        }
    }
    array_release(&A);
    array_release(&B);
    return product;
}

static PyObject *add_outer(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *square, *columns, *result = NULL;
    double a;
    Array A, F;
    if (!PyArg_ParseTuple(arguments, "OdO", &square, &a, &columns) || array_get(square, &A, 1)) return NULL;
    if (array_get(columns, &F, 0)) {
        array_release(&A);
        return NULL;
    }
    Py_ssize_t n = A.rows;
    double *f = malloc((size_t)(n + 1) * sizeof *f);
    if (!f) PyErr_NoMemory();
    else if (A.columns != n || F.rows != n) PyErr_SetString(PyExc_ValueError, "the shapes do not fit");
    else {
        for (Py_ssize_t k = 0; k < F.columns; k++) {
            for (Py_ssize_t i = 0; i < n; i++) f[i] = F.numbers[i * F.columns + k];
            for (Py_ssize_t i = 0; i < n; i++) {
                double *row = A.numbers + i * n, own = f[i];
                if (own != 0.0)
                    for (Py_ssize_t j = 0; j < n; j++) row[j] += a * (own * f[j]);
            }
        }
        result = Py_None;
        Py_INCREF(result);
    }
    free(f);
    array_release(&A);
    array_release(&F);
    return result;
}

/* x_0 + x_1 + ..., from the first to the last. */
static PyObject *total(PyObject *module, PyObject *vector) {
    (void)module;
    Array x;
    if (array_get(vector, &x, 0)) return NULL;
    Py_ssize_t count = x.rows * x.columns;
    double sum = count ? x.numbers[0] : 0.0;
    for (Py_ssize_t i = 1; i < count; i++) sum += x.numbers[i];
    array_release(&x);
    return PyFloat_FromDouble(sum);
}

/* The sum of the rows of a matrix, from the first to the last. */
static PyObject *row_total(PyObject *module, PyObject *matrix) {
    (void)module;
    Array A;
    double *sums;
    if (array_get(matrix, &A, 0)) return NULL;
    PyObject *array = array_new(A.columns, &sums);
    for (Py_ssize_t i = 0; array && i < A.rows; i++) {
        const double *row = A.numbers + i * A.columns;
        for (Py_ssize_t j = 0; j < A.columns; j++) sums[j] = i ? sums[j] + row[j] : row[j];
    }
    for (Py_ssize_t j = 0; array && !A.rows && j < A.columns; j++) sums[j] = 0.0;
    array_release(&A);
    return array;
}

static PyObject *softmax(PyObject *module, PyObject *vector) {
    (void)module;
    Array x;
    double *p;
    if (array_get(vector, &x, 0)) return NULL;
    Py_ssize_t count = x.rows * x.columns;
    PyObject *array = array_new(count, &p);
    if (array) softmax_of(x.numbers, p, count);
    array_release(&x);
    return array;
}

WIDE static void sweep_rows(double *A, double *pivots, double *column, Py_ssize_t n) {
    for (Py_ssize_t p = 0; p < n; p++) {
        double d = A[p * n + p];
        pivots[p] = d;
        if (!(d > 0.0)) return;
        double root = sqrt(d), *half = column + n;
        memcpy(column, A + p * n, (size_t)n * sizeof *column);
        for (Py_ssize_t i = 0; i < n; i++) half[i] = column[i] / root;
        for (Py_ssize_t i = 0; i < n; i++) {
            double *restrict row = A + i * n, own = half[i];
            for (Py_ssize_t j = 0; j < n; j++) row[j] -= own * half[j];
        }
        for (Py_ssize_t i = 0; i < n; i++) A[p * n + i] = A[i * n + p] = column[i] / d;
        A[p * n + p] = -1.0 / d;
    }
}

static PyObject *sweep(PyObject *module, PyObject *matrix) {
    (void)module;
    Array A, C;
    if (array_get(matrix, &A, 0)) return NULL;
    Py_ssize_t n = A.rows;
    double *numbers = NULL, *column = malloc((size_t)(2 * n + 1) * sizeof *column);
    PyObject *inverse = NULL, *pivots = array_new(n, &numbers), *both = NULL;
    if (A.dimensions == 2 && A.columns == n) inverse = PyObject_CallFunction(empty_array, "((nn))", n, n);
    else PyErr_SetString(PyExc_ValueError, "the shapes do not fit");
    if (!column) PyErr_NoMemory();
    if (column && pivots && inverse && !array_get(inverse, &C, 1)) {
        for (Py_ssize_t i = 0; i < n; i++) numbers[i] = 0.0;
        memcpy(C.numbers, A.numbers, (size_t)(n * n) * sizeof(double));
        sweep_rows(C.numbers, numbers, column, n);
        for (Py_ssize_t i = 0; i < n * n; i++) C.numbers[i] = 0.0 - C.numbers[i];
        array_release(&C);
        both = PyTuple_Pack(2, inverse, pivots);
    }
    free(column);
    Py_XDECREF(inverse);
    Py_XDECREF(pivots);
    array_release(&A);
    return both;
}
