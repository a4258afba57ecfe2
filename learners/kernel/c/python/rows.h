/* The memory of weights: one long row a feature, or lists for the features that have weights in few columns.

   Most words of a large vocabulary are rare and meet few labels: in long rows almost all of their numbers would be 0. Weights
   made for it, once they have more than `brief` columns, keep the numbers of such a row with their columns, which ascend: up to 5
   in one line of the cache, up to 10 in two, and so on. A row that needs more than one in SPARSE columns becomes a long one, for good. A
   number that is not there is 0, and adding x times 0 to a score changes no bit of it: no score is ever -0. So both give the same
   bits.

   Whoever takes a step asks for its memory first (`weights_prepare`); the step itself cannot fail. */

#define SPARSE 8
#define SHORTEST 5
#define CLASSES 14 /* of lists, by their room: SHORTEST << class */
#define LONG CLASSES
#define FEW_CHANGES 8 /* so many columns are looked for one by one */

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
    int single, brief; /* float32; the columns above which rows may be lists, 0 if never */
    Block *places;     /* uint32, one a feature: 0 where all of it is 0, else 16 times the number of its row, plus its class plus 1 */
    size_t placed;     /* room for so many places */
    Store lists[CLASSES], longs;
    uint32_t *changed; /* the columns of a step, and room for so many */
    size_t changes;
} Weights;

/* The numbers of a row in some columns. */
typedef struct {
    double *values;
    uint32_t *columns, *count;
} List;

#define PLACE(weights, row) (((const uint32_t *)(weights)->places->data)[row])
#define IS_LONG(place) (((place) & 15) == LONG + 1)

static inline size_t number_size(const Weights *weights) { return weights->single ? 4 : 8; }
static inline size_t row_bytes(const Weights *weights) { return (size_t)weights->width * number_size(weights); }
static inline size_t place_number(uint32_t place) { return place >> 4; }
static inline int place_class(uint32_t place) { return (int)(place & 15) - 1; }
static inline size_t list_bytes(int class) { return (size_t)64 << class; }
static inline size_t list_room(int class) { return (size_t)SHORTEST << class; }

static inline List list_of(const Weights *weights, uint32_t place) {
    int class = place_class(place);
    size_t room = list_room(class);
    char *row = (char *)weights->lists[class].block->data + place_number(place) * list_bytes(class);
    return (List){(double *)row, (uint32_t *)(row + 8 * room), (uint32_t *)(row + 12 * room)};
}

/* The class of rows with so many numbers. */
static int class_for(const Weights *weights, size_t count) {
    int class = 0;
    while (class < LONG && list_room(class) < count) class++;
    return class && class < LONG && list_room(class) * SPARSE > (size_t)weights->labels ? LONG : class;
}

/* The first place in a list whose column is not below this one. */
static inline uint32_t list_place(const List *list, uint32_t column) {
    uint32_t first = 0, count = *list->count;
    while (count > 4) {
        uint32_t half = count / 2;
        if (list->columns[first + half] < column) first += half + 1, count -= half + 1;
        else count = half;
    }
    while (count && list->columns[first] < column) first++, count--;
    return first;
}

/* The number of a list in a column, NULL where it has none. */
static inline double *list_number(const List *list, uint32_t column) {
    uint32_t n = list_place(list, column);
    return n < *list->count && list->columns[n] == column ? &list->values[n] : NULL;
}

/* A number in a column that the list has not; there is room for it. */
static double *list_insert(const List *list, uint32_t column, double number) {
    uint32_t n = list_place(list, column), behind = *list->count - n;
    memmove(list->values + n + 1, list->values + n, behind * sizeof *list->values);
    memmove(list->columns + n + 1, list->columns + n, behind * sizeof *list->columns);
    list->values[n] = number;
    list->columns[n] = column;
    ++*list->count;
    return &list->values[n];
}

/* The numbers of a row; NULL where it is a list, or all 0. */
static inline void *long_row(const Weights *weights, int64_t row) {
    size_t number = (size_t)row;
    if (weights->places) {
        uint32_t place = PLACE(weights, row);
        if (!IS_LONG(place)) return NULL;
        number = place_number(place);
    }
    return (char *)weights->block->data + number * row_bytes(weights);
}

/* Room for `more` rows of `bytes` bytes: -1 with an exception, and nothing changed. */
static int store_reserve(Store *store, size_t more, size_t bytes) {
    if (store->block && store->used + more <= store->room + store->free) return 0;
    size_t room = store->used + more > 2 * store->room ? store->used + more : 2 * store->room;
    if (room < 16) room = 16;
    if (room > 0xffffff0u) return PyErr_NoMemory(), -1;
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

/* Where a number is, NULL where it is 0 without a place. Of float64 only. */
static double *weights_number(const Weights *weights, int64_t row, Py_ssize_t column) {
    double *numbers = long_row(weights, row);
    if (numbers) return numbers + column;
    if (!PLACE(weights, row)) return NULL;
    List list = list_of(weights, PLACE(weights, row));
    return list_number(&list, (uint32_t)column);
}

static double weights_cell(const Weights *weights, int64_t row, Py_ssize_t column) {
    const void *numbers = long_row(weights, row);
    if (numbers) return number_at(weights, numbers, column);
    const double *number = weights_number(weights, row, column);
    return number ? *number : 0.0;
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
    if (!PLACE(weights, row)) return;
    List list = list_of(weights, PLACE(weights, row));
    for (uint32_t n = 0; n < *list.count; n++) set_number(weights, to, list.columns[n], list.values[n]);
}

static void place_give(Weights *weights, uint32_t place) {
    int class = place_class(place);
    if (class == LONG) store_give(&weights->longs, place_number(place), row_bytes(weights));
    else if (class >= 0) store_give(&weights->lists[class], place_number(place), list_bytes(class));
}

/* Let a row be of a class that has room for what it has; the memory was reserved. */
static void row_enlarge(Weights *weights, int64_t row, int class) {
    uint32_t *place = (uint32_t *)weights->places->data + row, before = *place, after;
    if (class == LONG) {
        size_t number = store_take(&weights->longs, row_bytes(weights));
        if (before) row_spread(weights, row, (char *)weights->block->data + number * row_bytes(weights));
        after = (uint32_t)(16 * number + LONG + 1);
    } else {
        after = (uint32_t)(16 * store_take(&weights->lists[class], list_bytes(class)) + (size_t)class + 1);
        if (before) {
            List from = list_of(weights, before), to = list_of(weights, after);
            memcpy(to.values, from.values, *from.count * sizeof *from.values);
            memcpy(to.columns, from.columns, *from.count * sizeof *from.columns);
            *to.count = *from.count;
        }
    }
    place_give(weights, before);
    *place = after;
}

/* Forget all of a row; if it has a place, that is free again. */
static void row_clear(Weights *weights, int64_t row) {
    uint32_t *place = (uint32_t *)weights->places->data + row;
    place_give(weights, *place);
    *place = 0;
}

/* How many numbers of a row are not 0. */
static size_t row_count(const Weights *weights, const void *row, Py_ssize_t labels) {
    size_t count = 0;
    for (Py_ssize_t k = 0; k < labels; k++) count += !is_zero(number_at(weights, row, k));
    return count;
}

/* Put numbers into a row that has no place yet; its room was reserved. */
static void row_fill(Weights *weights, int64_t row, const void *numbers, Py_ssize_t labels) {
    size_t count = row_count(weights, numbers, labels);
    if (!count) return;
    int class = class_for(weights, count);
    row_enlarge(weights, row, class);
    if (class == LONG) {
        memcpy(long_row(weights, row), numbers, (size_t)labels * number_size(weights));
        return;
    }
    List list = list_of(weights, PLACE(weights, row));
    for (Py_ssize_t k = 0; k < labels; k++) {
        double number = number_at(weights, numbers, k);
        if (is_zero(number)) continue;
        list.values[*list.count] = number;
        list.columns[(*list.count)++] = (uint32_t)k;
    }
}

/* Room for so many more rows of each class, the long ones last: -1 with an exception, and no weight changed. */
static int rows_reserve(Weights *weights, const size_t more[LONG + 1]) {
    for (int class = 0; class < LONG; class++)
        if (more[class] && store_reserve(&weights->lists[class], more[class], list_bytes(class))) return -1;
    if (store_reserve(&weights->longs, more[LONG], row_bytes(weights))) return -1;
    weights->block = weights->longs.block;
    weights->room = (Py_ssize_t)weights->longs.room;
    return 0;
}

/* Room for rows that have these numbers, side by side. */
static int rows_reserve_for(Weights *weights, const char *rows, Py_ssize_t count, size_t bytes, Py_ssize_t labels) {
    size_t more[LONG + 1] = {0};
    for (Py_ssize_t i = 0; i < count; i++) {
        size_t numbers = row_count(weights, rows + (size_t)i * bytes, labels);
        if (numbers) more[class_for(weights, numbers)]++;
    }
    return rows_reserve(weights, more);
}

/* The class that a row needs for numbers in these columns, which ascend. */
static int class_with(const Weights *weights, uint32_t place, const uint32_t *columns, size_t count) {
    if (IS_LONG(place)) return LONG;
    if (!place) return class_for(weights, count);
    List list = list_of(weights, place);
    size_t after = *list.count;
    if (count <= FEW_CHANGES)
        for (size_t k = 0; k < count; k++) after += !list_number(&list, columns[k]);
    else
        for (size_t k = 0, n = 0; k < count; k++) {
            while (n < *list.count && list.columns[n] < columns[k]) n++;
            after += n == *list.count || list.columns[n] != columns[k];
        }
    int class = class_for(weights, after), own = place_class(place);
    return class < own ? own : class;
}

/* Room for numbers in these columns of these rows, and of `fresh` ones that join before: -1 with an exception, and nothing
   changed. */
static int rows_prepare(Weights *weights, Py_ssize_t count, const int64_t *rows, Py_ssize_t fresh, const uint32_t *columns,
                        size_t changed) {
    size_t more[LONG + 1] = {0};
    if (!changed) return 0;
    more[class_for(weights, changed)] += (size_t)fresh;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint32_t place = PLACE(weights, rows[i]);
        int class = class_with(weights, place, columns, changed);
        more[class] += class != place_class(place);
    }
    return rows_reserve(weights, more);
}

/* The columns in which g is not 0, in `changed`. */
static size_t columns_of(Weights *weights, const double *g) {
    size_t count = 0;
    for (Py_ssize_t k = 0; k < weights->labels; k++)
        if (g[k] != 0.0) weights->changed[count++] = (uint32_t)k;
    return count;
}

/* Room for the columns of a step: -1 with an exception. */
static int changes_reserve(Weights *weights) {
    if ((size_t)weights->labels <= weights->changes) return 0;
    uint32_t *changed = realloc(weights->changed, (size_t)weights->labels * sizeof *changed);
    if (!changed) return PyErr_NoMemory(), -1;
    weights->changed = changed;
    weights->changes = (size_t)weights->labels;
    return 0;
}

/* Room for a step along g in these rows, and in `fresh` ones that join before it: -1 with an exception, and nothing changed. */
static int weights_prepare(Weights *weights, Py_ssize_t count, const int64_t *rows, Py_ssize_t fresh, const double *g) {
    if (!weights->places) return 0;
    if (changes_reserve(weights)) return -1;
    return rows_prepare(weights, count, rows, fresh, weights->changed, columns_of(weights, g));
}

/* Where a number of float64 is, from now on if it had no place; its memory was reserved. */
static double *weights_place(Weights *weights, int64_t row, uint32_t column) {
    double *number = weights_number(weights, row, column);
    if (number) return number;
    int class = class_with(weights, PLACE(weights, row), &column, 1);
    if (class != place_class(PLACE(weights, row))) row_enlarge(weights, row, class);
    if (class == LONG) return weights_number(weights, row, column);
    List list = list_of(weights, PLACE(weights, row));
    return list_insert(&list, column, 0.0);
}

/* Room for these numbers in these rows of a column: -1 with an exception, and nothing changed. */
static int column_prepare(Weights *weights, Py_ssize_t count, const int64_t *rows, uint32_t column, const double *numbers) {
    size_t more[LONG + 1] = {0};
    if (!weights->places) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint32_t place = PLACE(weights, rows[i]);
        int class = is_zero(numbers[i]) ? place_class(place) : class_with(weights, place, &column, 1);
        if (class != place_class(place)) more[class]++;
    }
    return rows_reserve(weights, more);
}

/* A number of float64 from now on; its memory was reserved, and a 0 needs none. */
static void column_set(Weights *weights, int64_t row, uint32_t column, double number) {
    double *own = is_zero(number) ? weights_number(weights, row, column) : weights_place(weights, row, column);
    if (own) *own = number;
}

/* The nearest float32; beyond its range, its end. */
static inline float as_single(double number) {
    return (float)(number < -FLT_MAX ? -FLT_MAX : number > FLT_MAX ? FLT_MAX : number);
}

static inline double as_kept(const Weights *weights, double number) {
    return weights->single ? (double)as_single(number) : number;
}

/* What becomes of a number by a step. */
#define MOVED(number, column) as_kept(weights, (number) - eta * g[column] * value)

/* A step in the list of one row, along these columns, which ascend; there is room for them. */
static void list_step(const Weights *weights, const List *list, const uint32_t *columns, size_t count, double value, const double *g,
                      double eta) {
    if (count <= FEW_CHANGES) {
        for (size_t k = 0; k < count; k++) {
            double *number = list_number(list, columns[k]), after = MOVED(number ? *number : 0.0, columns[k]);
            if (number) *number = after;
            else if (!is_zero(after)) list_insert(list, columns[k], after);
        }
        return;
    }
    size_t more = 0;
    for (size_t k = 0, n = 0; k < count; k++) {
        while (n < *list->count && list->columns[n] < columns[k]) n++;
        if (n == *list->count || list->columns[n] != columns[k]) more += !is_zero(MOVED(0.0, columns[k]));
    }
    size_t n = *list->count, k = count, to = n + more;
    *list->count = (uint32_t)to;
    while (k) { /* from the last on, so that nothing is written over before it was read */
        uint32_t column = columns[k - 1];
        if (n && list->columns[n - 1] > column) {
            list->columns[--to] = list->columns[--n];
            list->values[to] = list->values[n];
            continue;
        }
        int here = n && list->columns[n - 1] == column;
        double after = MOVED(here ? list->values[--n] : 0.0, column);
        k--;
        if (!here && is_zero(after)) continue;
        list->values[--to] = after;
        list->columns[to] = column;
    }
}

/* A step along g where rows may be lists: 1 if that was all of it, 0 if all of these rows are long behind it. */
static int brief_step(Weights *weights, Py_ssize_t count, const int64_t *rows, const double *values, const double *g, double eta) {
    size_t changed = columns_of(weights, g);
    const uint32_t *columns = weights->changed;
    int longs = changed && class_for(weights, changed) == LONG;
    for (Py_ssize_t i = 0; i < count && changed; i++) {
        double value = values[i];
        int class = class_with(weights, PLACE(weights, rows[i]), columns, changed);
        if (class != place_class(PLACE(weights, rows[i]))) row_enlarge(weights, rows[i], class);
        if (longs) continue;
        if (class < LONG) {
            List list = list_of(weights, PLACE(weights, rows[i]));
            list_step(weights, &list, columns, changed, value, g, eta);
            continue;
        }
        void *row = long_row(weights, rows[i]);
        for (size_t k = 0; k < changed; k++)
            set_number(weights, row, columns[k], MOVED(number_at(weights, row, columns[k]), columns[k]));
    }
    return !longs;
}
