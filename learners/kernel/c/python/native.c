/* The native kernel: what reference.py does, with the same bits, for CPython's stable ABI from 3.11 on.

     elementary.h  exp, log, cos            names.h    names -> numbers         features.h, json.h  reading an instance
     json_write.h, shortest.h  a ranking as JSON, and its numbers
     table.h       x of an instance         weights.h  scores and steps         ascent.h            dual ascent
     arrays.h      memory shown to NumPy    members.h  what Python sees          products.h          products and inverses
     asked.h       the last instance        rounds.h   a whole round            blend.h, blend_learn.h  one of the automatic learner
     welford.h     features scaled online   trust.h    the automatic learner's pool     bayes.h  its words and calibration
     adaptive.h    steps of AdaGrad         curves.h   least squares            blocks.h            blocks of features
     entropy.h     steps of entropic weights
     words.h       features of text         label_words.h words of labels' names    blocks_members.h  what Python sees of the blocks
     rows.h        the memory of weights    weights_members.h  what Python sees of them

   Compiled without fused multiply-add and without -ffast-math: every operation is one of IEEE 754, in the order in which it is
   written, on every machine. Loops over labels may run side by side, and wider where the CPU can (WIDE); sums never do. */

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* madvise */
#endif
#include <Python.h>
#include <float.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "../core/body_cost.h"
#include "../core/elementary.h"
#include "../core/entropy.h"
#include "../core/ndcg.h"
#include "../core/hedge.h"
#include "../core/lists.h"
#include "../core/orders.h"
#include "../core/permutations.h"
#include "../core/singles.h"
#include "../core/words.h"
#include "arrays.h"
#include "names.h"
#include "features.h"
#include "words.h"
#include "shortest.h"
#include "nearest.h"
#include "json_scalars.h"
#include "json.h"
#include "json_write.h"
#include "rows.h"
#include "table.h"
#include "members.h"
#include "weights.h"
#include "weights_members.h"
#include "ascent.h"
#include "asked.h"
#include "label_words.h"
#include "blocks.h"
#include "blocks_members.h"
#include "rounds.h"
#include "products.h"
#include "welford.h"
#include "trust.h"
#include "bayes.h"
#include "adaptive.h"
#include "entropy.h"
#include "curves.h"
#include "forest.h"
#include "blend.h"
#include "blend_learn.h"
#include "lists_members.h"

/* The same number as in __init__.py. */
#define SEAM 33

/* Functions of elementary.py on many numbers. */
#define ON_ALL(NAME, FUNCTION)                                                        \
    WIDE static void NAME(double *numbers, Py_ssize_t count) {                        \
        for (Py_ssize_t i = 0; i < count; i++) numbers[i] = FUNCTION(numbers[i]);     \
    }
ON_ALL(exp_all, exp_of)
ON_ALL(sigmoid_all, sigmoid_of)
ON_ALL(cos_all, cos_turns_of)
ON_ALL(log_all_normal, log_normal)

static void log_all(double *numbers, Py_ssize_t count) {
    int normal = 1;
    for (Py_ssize_t i = 0; i < count; i++) normal &= numbers[i] >= 0x1p-1022;
    if (normal) log_all_normal(numbers, count);
    else
        for (Py_ssize_t i = 0; i < count; i++) numbers[i] = log_of(numbers[i]);
}

/* One of these on the numbers of an array: a new array. */
static PyObject *apply(PyObject *array, void (*function)(double *, Py_ssize_t)) {
    Py_buffer x;
    PyObject *values = PyObject_CallMethod(array, "copy", "s", "K");
    if (!values || PyObject_GetBuffer(values, &x, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)) {
        Py_XDECREF(values);
        return NULL;
    }
    if (x.format && x.format[0] == 'd' && !x.format[1]) {
        function(x.buf, x.len / 8);
    } else {
        PyErr_SetString(PyExc_ValueError, "not an array of float64");
        Py_CLEAR(values);
    }
    PyBuffer_Release(&x);
    return values;
}

static PyObject *number_exp(PyObject *module, PyObject *number) {
    double x = PyFloat_AsDouble(number);
    return (void)module, PyErr_Occurred() ? NULL : PyFloat_FromDouble(exp_of(x));
}

static PyObject *number_log(PyObject *module, PyObject *number) {
    double x = PyFloat_AsDouble(number);
    return (void)module, PyErr_Occurred() ? NULL : PyFloat_FromDouble(log_of(x));
}

static PyObject *apply_exp(PyObject *module, PyObject *array) { return (void)module, apply(array, exp_all); }
static PyObject *apply_sigmoid(PyObject *module, PyObject *array) { return (void)module, apply(array, sigmoid_all); }
static PyObject *apply_log(PyObject *module, PyObject *array) { return (void)module, apply(array, log_all); }
static PyObject *apply_cos(PyObject *module, PyObject *array) { return (void)module, apply(array, cos_all); }

static PyObject *body_bytes_of(PyObject *module, PyObject *body) {
    char *bytes;
    Py_ssize_t length;
    (void)module;
    return PyBytes_AsStringAndSize(body, &bytes, &length) ? NULL
                                                          : PyLong_FromUnsignedLongLong(body_bytes((unsigned char *)bytes, (size_t)length));
}

static PyMethodDef methods[] = {
    {"read", features_of, METH_O, "The features of plain Python objects, or None where they are unusual."},
    {"body_bytes", body_bytes_of, METH_O, "What reading a body of JSON takes at most."},
    {"text_features", text_features, METH_VARARGS, "The features of folded text."},
    {"vector_of", vector_of, METH_O, "A vector alone, of plain numbers or base64, or None."},
    {"beside", features_beside, METH_VARARGS, "A copy of features with a vector."},
    {"together", features_together, METH_VARARGS, "Features and words in one vector."},
    {"listed_grades", listed_grades, METH_VARARGS, "The grades of a list in the order of its places, or None."},
    {"read_singles", singles_of, METH_VARARGS, "Numbers of the base64 of float32, or None."},
    {"matrix", matrix_of, METH_VARARGS, "Lists of numbers as a matrix, or None where they are unusual."},
    {"loads", (PyCFunction)(void (*)(void))loads, METH_FASTCALL, "JSON with features read, or None where it is unusual."},
    {"ranking_json", (PyCFunction)(void (*)(void))ranking_json, METH_FASTCALL, "A ranking as JSON, or None where it is unusual."},
    {"ascend", ascend, METH_VARARGS, "One round of dual ascent in score space."},
    {"best", best, METH_VARARGS, "The highest scores."},
    {"times", times, METH_VARARGS, "A B of vectors and matrices."},
    {"add_outer", add_outer, METH_VARARGS, "A += a F F'."},
    {"sweep", sweep, METH_O, "A^{-1} and the pivots."},
    {"scale", scale_vector, METH_VARARGS, "u and z of an instance."},
    {"tally", tally, METH_VARARGS, "One more event in the statistics of its features."},
    {"recount", recount, METH_VARARGS, "L <- log(exp(L) + more) in one column."},
    {"word_scores", word_scores, METH_VARARGS, "What naive Bayes makes of an instance."},
    {"calibrated", calibrated, METH_VARARGS, "Calibrated probabilities."},
    {"calibrated_bits", calibrated_bits, METH_VARARGS, "Calibrated probabilities of bits."},
    {"recalibrate_bits", recalibrate_bits, METH_VARARGS, "One more round of calibration of bits."},
    {"recalibrate", recalibrate, METH_VARARGS, "One more round of calibration."},
    {"forest_scores", forest_scores_of, METH_VARARGS, "The scores of an instance."},
    {"forest_insert", forest_insert_row, METH_VARARGS, "One more row of the window."},
    {"forest_due", forest_due_steps, METH_VARARGS, "How many steps of growth are due."},
    {"forest_step", forest_take_step, METH_VARARGS, "One step of growth."},
    {"entropic_move", entropic_move_on, METH_VARARGS, "A step of entropic weights on columns; the old ones, what to make anew."},
    {"entropic_step", entropic_step_on, METH_VARARGS, "One step of entropic weights on a pair; the old cells."},
    {"adapt", adapt, METH_VARARGS, "One step of AdaGrad; the old entries."},
    {"gains", gains, METH_O, "2^y - 1 of grades, over 2^max y."},
    {"ndcg_loss", order_loss, METH_VARARGS, "1 - NDCG of an order."},
    {"list_scaled", list_scaled, METH_O, "Every column from 0 to 1."},
    {"list_inputs", list_inputs, METH_O, "The inputs of a list."},
    {"list_scores", list_scores, METH_VARARGS, "The scores of a list by the automatic learner."},
    {"list_round", list_round, METH_VARARGS, "One round of the automatic learner on a list."},
    {"pool_round", pool_round, METH_VARARGS, "One round of the pool."},
    {"total", total, METH_O, "x_0 + x_1 + ..."},
    {"row_total", row_total, METH_O, "The sum of the rows of a matrix."},
    {"softmax", softmax, METH_O, "e^x_i / sum e^x_j of a vector."},
    {"sigmoid", apply_sigmoid, METH_O, "1 / (1 + e^-x) of an array of float64."},
    {"exp_of", number_exp, METH_O, "e^x of a number."},
    {"log_of", number_log, METH_O, "ln x of a number."},
    {"exp", apply_exp, METH_O, "e^x of an array of float64."},
    {"log", apply_log, METH_O, "ln x of an array of float64."},
    {"cos_turns", apply_cos, METH_O, "cos(2 pi t) of an array of float64."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "The native kernel.", -1, methods,
                                        NULL, NULL, NULL, NULL};

static PyTypeObject *type_of(PyObject *module, PyType_Spec *spec) {
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(spec);
    if (type && PyModule_AddType(module, type)) Py_CLEAR(type);
    return type;
}

/* Keys by chance, of this process alone. Python's own hash would follow PYTHONHASHSEED, and be no secret where that is set. */
static int take_keys(void) {
    PyObject *os = PyImport_ImportModule("os"), *bytes = os ? PyObject_CallMethod(os, "urandom", "i", (int)sizeof hash_keys) : NULL;
    char *keys = bytes ? PyBytes_AsString(bytes) : NULL;
    if (keys) memcpy(hash_keys, keys, sizeof hash_keys);
    Py_XDECREF(bytes);
    Py_XDECREF(os);
    return keys ? 0 : -1;
}

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition), *numpy = module ? PyImport_ImportModule("numpy") : NULL;
    as_array = numpy ? PyObject_GetAttrString(numpy, "asarray") : NULL;
    empty_array = numpy ? PyObject_GetAttrString(numpy, "empty") : NULL;
    as_contiguous = numpy ? PyObject_GetAttrString(numpy, "ascontiguousarray") : NULL;
    Py_XDECREF(numpy);
    for (int i = 0; i < LOGS; i++) logs[i] = log_of(1.0 + (double)i);
    if (!module || PyModule_AddIntConstant(module, "SEAM", SEAM) || !as_array || !empty_array || !as_contiguous || take_keys() || take_powers() || !(FeaturesType = type_of(module, &features_spec)) ||
        !(BlockType = type_of(module, &block_spec)) || !(ViewType = type_of(module, &view_spec)) ||
        !(VectorType = type_of(module, &vector_spec)) || !(TableType = type_of(module, &table_spec)) ||
        !(WeightsType = type_of(module, &weights_spec)) || !(FeatureBlocksType = type_of(module, &blocks_spec)) ||
        !(RoundsType = type_of(module, &rounds_spec)) ||
        !(BlendType = type_of(module, &blend_spec)) ||
        !(features_word = PyUnicode_InternFromString("features"))) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
