/* The memory of weights: one long row a feature, or short ones for the features that have weights in few columns.

   Most words of a large vocabulary are rare and meet few labels: in long rows almost all of their numbers would be 0. Weights
   made for it (`brief`) that are wider than NARROW keep up to SHORT numbers of a row with their columns, in one line of the
   cache; a row that needs more becomes a long one, for good. A number that is not there is 0, and adding x times 0 to a score
   changes no bit of it: no score is ever -0. So both give the same bits.

   Whoever takes a step asks for its memory first (`weights_prepare`); the step itself cannot fail. */

#define NARROW 16
#define SHORT 5

typedef struct {
    double values[SHORT];
    uint32_t columns[SHORT], count;
} ShortRow;

/* Rows that are taken one by one and given back: `used` counts those ever taken, `free` how many came back, `next` is the last of
   these plus 1, and each begins with the one before it. */
typedef struct {
    Block *block;
    size_t room, used, free;
    uint32_t next;
} Store;

typedef struct {
    PyObject_HEAD Block *block; /* of all rows where `places` is NULL, else of the long ones: that of `longs` */
    Py_ssize_t features, labels, width, room;
    int single, brief; /* float32; whether rows may be short */
    Block *places;     /* uint32, one a feature: 0 where all of it is 0, else twice the number of its row plus 2, plus 1 if long */
    size_t placed;     /* room for so many places */
    Store shorts, longs;
} Weights;

#define PLACE(weights, row) (((const uint32_t *)(weights)->places->data)[row])

static inline size_t number_size(const Weights *weights) { return weights->single ? 4 : 8; }
static inline size_t row_bytes(const Weights *weights) { return (size_t)weights->width * number_size(weights); }
static inline size_t place_number(uint32_t place) { return (place - 2) >> 1; }

static inline ShortRow *short_row(const Weights *weights, uint32_t place) {
    return (ShortRow *)weights->shorts.block->data + place_number(place);
}

/* The numbers of a row; NULL where it is short, or all 0. */
static inline void *long_row(const Weights *weights, int64_t row) {
    size_t number = (size_t)row;
    if (weights->places) {
        uint32_t place = PLACE(weights, row);
        if (!(place & 1)) return NULL;
        number = place_number(place);
    }
    return (char *)weights->block->data + number * row_bytes(weights);
}

/* Room for `more` rows of `bytes` bytes: -1 with an exception, and nothing changed. */
static int store_reserve(Store *store, size_t more, size_t bytes) {
    if (store->block && store->used + more <= store->room + store->free) return 0;
    size_t room = store->used + more > 2 * store->room ? store->used + more : 2 * store->room;
    if (room < 16) room = 16;
    if (room > 0x7ffffff0u) return PyErr_NoMemory(), -1;
    Block *block = block_new(room, bytes);
    if (!block) return -1;
    if (store->block) memcpy(block->data, store->block->data, store->used * bytes);
    Py_XDECREF((PyObject *)store->block);
    store->block = block;
    store->room = room;
    return 0;
}

/* The number of a row of zeros; its room was reserved. */
static size_t store_take(Store *store, size_t bytes) {
    if (!store->free) return store->used++;
    size_t number = store->next - 1;
    char *row = (char *)store->block->data + number * bytes;
    memcpy(&store->next, row, sizeof store->next);
    memset(row, 0, sizeof store->next);
    store->free--;
    return number;
}

static void store_give(Store *store, size_t number, size_t bytes) {
    char *row = (char *)store->block->data + number * bytes;
    memset(row, 0, bytes);
    memcpy(row, &store->next, sizeof store->next);
    store->next = (uint32_t)number + 1;
    store->free++;
}

static inline int is_zero(double number) {
    uint64_t bits;
    memcpy(&bits, &number, 8);
    return !bits;
}

static inline double number_at(const Weights *weights, const void *row, Py_ssize_t column) {
    return weights->single ? (double)((const float *)row)[column] : ((const double *)row)[column];
}

static inline void set_number(const Weights *weights, void *row, Py_ssize_t column, double number) {
    if (weights->single) ((float *)row)[column] = (float)number;
    else ((double *)row)[column] = number;
}

static double weights_cell(const Weights *weights, int64_t row, Py_ssize_t column) {
    const void *numbers = long_row(weights, row);
    if (numbers) return number_at(weights, numbers, column);
    uint32_t place = PLACE(weights, row);
    if (!place) return 0.0;
    const ShortRow *brief = short_row(weights, place);
    for (uint32_t n = 0; n < brief->count; n++)
        if (brief->columns[n] == column) return brief->values[n];
    return 0.0;
}

/* A row as numbers side by side. */
static void row_spread(const Weights *weights, int64_t row, void *to) {
    const void *numbers = long_row(weights, row);
    size_t bytes = (size_t)weights->labels * number_size(weights);
    if (numbers) {
        memcpy(to, numbers, bytes);
        return;
    }
    memset(to, 0, bytes);
    uint32_t place = PLACE(weights, row);
    if (!place) return;
    const ShortRow *brief = short_row(weights, place);
    for (uint32_t n = 0; n < brief->count; n++) set_number(weights, to, brief->columns[n], brief->values[n]);
}

/* Let a row be a long one; its room was reserved. */
static void row_lengthen(Weights *weights, int64_t row) {
    uint32_t *place = (uint32_t *)weights->places->data + row, before = *place;
    size_t number = store_take(&weights->longs, row_bytes(weights));
    char *numbers = (char *)weights->block->data + number * row_bytes(weights);
    if (before) {
        row_spread(weights, row, numbers);
        store_give(&weights->shorts, place_number(before), sizeof(ShortRow));
    }
    *place = (uint32_t)(2 * number + 3);
}

/* Forget all of a row; if it has a place, that is free again. */
static void row_clear(Weights *weights, int64_t row) {
    uint32_t *place = (uint32_t *)weights->places->data + row;
    if (!*place) return;
    if (*place & 1) store_give(&weights->longs, place_number(*place), row_bytes(weights));
    else store_give(&weights->shorts, place_number(*place), sizeof(ShortRow));
    *place = 0;
}

/* How many numbers of a row are not 0, up to one more than a short row has. */
static int row_count(const Weights *weights, const void *row, Py_ssize_t labels) {
    int count = 0;
    for (Py_ssize_t k = 0; k < labels && count <= SHORT; k++) count += !is_zero(number_at(weights, row, k));
    return count;
}

/* Put numbers into a row that has no place yet; its room was reserved. */
static void row_fill(Weights *weights, int64_t row, const void *numbers, Py_ssize_t labels) {
    int count = row_count(weights, numbers, labels);
    if (!count) return;
    if (count > SHORT) {
        row_lengthen(weights, row);
        memcpy(long_row(weights, row), numbers, (size_t)labels * number_size(weights));
        return;
    }
    uint32_t place = (uint32_t)(2 * store_take(&weights->shorts, sizeof(ShortRow)) + 2);
    ShortRow *brief = short_row(weights, place);
    for (Py_ssize_t k = 0; k < labels; k++) {
        double number = number_at(weights, numbers, k);
        if (is_zero(number)) continue;
        brief->values[brief->count] = number;
        brief->columns[brief->count++] = (uint32_t)k;
    }
    ((uint32_t *)weights->places->data)[row] = place;
}

static int longs_reserve(Weights *weights, size_t more) {
    if (store_reserve(&weights->longs, more, row_bytes(weights))) return -1;
    weights->block = weights->longs.block;
    weights->room = (Py_ssize_t)weights->longs.room;
    return 0;
}

/* Of the columns in which g is not 0 the first SHORT + 1. */
static int columns_of(const double *g, Py_ssize_t labels, uint32_t *columns) {
    int count = 0;
    for (Py_ssize_t k = 0; k < labels && count <= SHORT; k++)
        if (g[k] != 0.0) columns[count++] = (uint32_t)k;
    return count;
}

/* Whether numbers in these columns have no room in a short row. */
static int overflows(const ShortRow *brief, const uint32_t *columns, int count) {
    uint32_t after = brief->count;
    for (int k = 0; k < count; k++) {
        uint32_t n = 0;
        while (n < brief->count && brief->columns[n] != columns[k]) n++;
        after += n == brief->count;
    }
    return count > SHORT || after > SHORT;
}

/* Room for a step along g in these rows, and in `fresh` ones that join before it: -1 with an exception, and nothing changed. */
static int weights_prepare(Weights *weights, Py_ssize_t count, const int64_t *rows, Py_ssize_t fresh, const double *g) {
    uint32_t columns[SHORT + 1];
    if (!weights->places) return 0;
    int changed = columns_of(g, weights->labels, columns);
    size_t shorts = changed > SHORT ? 0 : (size_t)fresh, longs = changed > SHORT ? (size_t)fresh : 0;
    for (Py_ssize_t i = 0; i < count && changed; i++) {
        uint32_t place = PLACE(weights, rows[i]);
        if (place & 1) continue;
        if (changed > SHORT || (place && overflows(short_row(weights, place), columns, changed))) longs++;
        else shorts += !place;
    }
    return longs_reserve(weights, longs) || store_reserve(&weights->shorts, shorts, sizeof(ShortRow)) ? -1 : 0;
}

/* The nearest float32; beyond its range, its end. */
static inline float as_single(double number) {
    return (float)(number < -FLT_MAX ? -FLT_MAX : number > FLT_MAX ? FLT_MAX : number);
}

/* A step along g that changes few columns: 1 if that was all of it. If they are many, all of these rows are long behind it. */
static int brief_step(Weights *weights, Py_ssize_t count, const int64_t *rows, const double *values, const double *g, double eta) {
    uint32_t columns[SHORT + 1], *places = weights->places->data;
    int changed = columns_of(g, weights->labels, columns);
    double deltas[SHORT + 1];
    for (int k = 0; k < changed; k++) deltas[k] = eta * g[columns[k]];
    for (Py_ssize_t i = 0; i < count && changed; i++) {
        uint32_t *place = places + rows[i];
        if (!(*place & 1) && (changed > SHORT || (*place && overflows(short_row(weights, *place), columns, changed))))
            row_lengthen(weights, rows[i]);
        if (changed > SHORT) continue;
        if (*place & 1) {
            size_t start = place_number(*place) * (size_t)weights->width;
            double value = values[i];
            if (weights->single)
                for (int k = 0; k < changed; k++) {
                    float *number = (float *)weights->block->data + start + columns[k];
                    *number = as_single((double)*number - deltas[k] * value);
                }
            else
                for (int k = 0; k < changed; k++) ((double *)weights->block->data)[start + columns[k]] -= deltas[k] * value;
            continue;
        }
        if (!*place) *place = (uint32_t)(2 * store_take(&weights->shorts, sizeof(ShortRow)) + 2);
        ShortRow *brief = short_row(weights, *place);
        for (int k = 0; k < changed; k++) {
            uint32_t n = 0;
            while (n < brief->count && brief->columns[n] != columns[k]) n++;
            double before = n < brief->count ? brief->values[n] : 0.0, after = before - deltas[k] * values[i];
            if (weights->single) after = (double)as_single(after);
            if (n == brief->count && is_zero(after)) continue;
            brief->values[n] = after;
            brief->columns[n] = columns[k];
            brief->count += n == brief->count;
        }
    }
    return changed <= SHORT;
}
