/* Memory that NumPy sees: `Block` owns it, `View` shows a part of a block or of a vector by the buffer protocol.

   A table that grows takes a new block; views of the old one stay valid, and stale. */

typedef struct {
    PyObject_HEAD void *memory, *data;
    size_t bytes;
} Block;

typedef struct {
    PyObject_HEAD PyObject *owner;
    void *data;
    const char *format; /* "d", "f" or "q" */
    int dimensions;
    Py_ssize_t shape[2], strides[2];
} View;

static PyTypeObject *BlockType, *ViewType;
static PyObject *as_array, *empty_array; /* numpy.asarray, numpy.empty */

static void block_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(((Block *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

#define HUGE_PAGE ((uintptr_t)1 << 21)

/* Zeros. Large blocks come from the system as they are written to, in large pages where it has them: rows lie scattered, and
   with small pages finding where each one is costs as much as reading it. */
static Block *block_new(size_t count, size_t size) {
    Block *block = PyObject_New(Block, BlockType);
    if (!block) return NULL;
    block->memory = count > (SIZE_MAX - 64) / size ? NULL : calloc(count * size + 64, 1);
    block->data = (void *)(((uintptr_t)block->memory + 63) & ~(uintptr_t)63); /* rows begin where lines of the cache do */
    block->bytes = count * size;
#ifdef MADV_HUGEPAGE
    if (block->memory && block->bytes >= 2 * HUGE_PAGE) {
        uintptr_t first = ((uintptr_t)block->data + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        uintptr_t last = ((uintptr_t)block->data + block->bytes) & ~(HUGE_PAGE - 1);
        if (last > first) madvise((void *)first, last - first, MADV_HUGEPAGE); /* advice: no matter if it is not taken */
    }
#endif
    if (!block->memory) {
        Py_DECREF(block);
        return (Block *)PyErr_NoMemory();
    }
    return block;
}

static void view_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((View *)self)->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int view_buffer(PyObject *self, Py_buffer *buffer, int flags) {
    View *view = (View *)self;
    Py_ssize_t size = view->format[0] == 'f' ? 4 : 8;
    if (!(flags & PyBUF_STRIDES) && view->dimensions == 2 && view->strides[0] != view->shape[1] * size) {
        PyErr_SetString(PyExc_BufferError, "the rows do not follow each other");
        buffer->obj = NULL;
        return -1;
    }
    buffer->buf = view->data;
    buffer->obj = self;
    Py_INCREF(self);
    buffer->itemsize = size;
    buffer->len = size * view->shape[0] * (view->dimensions == 2 ? view->shape[1] : 1);
    buffer->readonly = 0;
    buffer->ndim = view->dimensions;
    buffer->format = (flags & PyBUF_FORMAT) ? (char *)view->format : NULL;
    buffer->shape = (flags & PyBUF_ND) ? view->shape : NULL;
    buffer->strides = (flags & PyBUF_STRIDES) ? view->strides : NULL;
    buffer->suboffsets = NULL;
    buffer->internal = NULL;
    return 0;
}

/* The NumPy array on `data`: (rows,), or (rows, columns) with rows `width` numbers apart where columns are not negative. */
static PyObject *array_on(PyObject *owner, void *data, const char *format, Py_ssize_t rows, Py_ssize_t columns,
                          Py_ssize_t width) {
    View *view = PyObject_New(View, ViewType);
    if (!view) return NULL;
    Py_ssize_t size = format[0] == 'f' ? 4 : 8;
    Py_INCREF(owner);
    view->owner = owner;
    view->data = data;
    view->format = format;
    view->dimensions = columns < 0 ? 1 : 2;
    view->shape[0] = rows;
    view->shape[1] = columns;
    view->strides[0] = columns < 0 ? size : width * size;
    view->strides[1] = size;
    PyObject *array = PyObject_CallFunctionObjArgs(as_array, view, NULL);
    Py_DECREF(view);
    return array;
}

/* A new array of float64, and its numbers: valid as long as the array is. */
static PyObject *array_new(Py_ssize_t count, double **numbers) {
    Py_buffer buffer;
    PyObject *array = PyObject_CallFunction(empty_array, "n", count);
    if (!array || PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE)) {
        Py_XDECREF(array);
        return NULL;
    }
    *numbers = buffer.buf;
    PyBuffer_Release(&buffer);
    return array;
}

/* A new matrix of float64, and its numbers. */
static PyObject *matrix_new(Py_ssize_t rows, Py_ssize_t columns, double **numbers) {
    Py_buffer buffer;
    PyObject *array = PyObject_CallFunction(empty_array, "((nn))", rows, columns);
    if (!array || PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE)) {
        Py_XDECREF(array);
        return NULL;
    }
    *numbers = buffer.buf;
    PyBuffer_Release(&buffer);
    return array;
}

/* The numbers of an array of float64 or int64, contiguous; -1 with an exception if it is none, or of another length. */
static int numbers_of(PyObject *object, Py_buffer *buffer, char kind, Py_ssize_t count, int writable) {
    if (PyObject_GetBuffer(object, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0))) return -1;
    const char *format = buffer->format ? buffer->format : "B";
    int fits = kind == 'd' ? format[0] == 'd' : kind == '?' ? format[0] == '?' : format[0] == 'l' || format[0] == 'q';
    if (fits && !format[1] && (count < 0 || buffer->len == count * buffer->itemsize)) return 0;
    PyErr_SetString(PyExc_ValueError, "an array has not the type and length that is needed here");
    PyBuffer_Release(buffer);
    return -1;
}

static PyType_Slot block_slots[] = {{Py_tp_dealloc, block_dealloc}, {0, NULL}};
static PyType_Spec block_spec = {"feedrank.learners.kernel._native.Block", sizeof(Block), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, block_slots};
static PyType_Slot view_slots[] = {{Py_tp_dealloc, view_dealloc}, {Py_bf_getbuffer, view_buffer}, {0, NULL}};
static PyType_Spec view_spec = {"feedrank.learners.kernel._native.View", sizeof(View), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, view_slots};
