/* forest.py says what is done here, and why; this is the same with the same bits. Sums are of whole numbers, or in its order. */

#include "forest.h"

#include <float.h>

#include "elementary.h"

static const double RATE = 0.3, DAMPING = 8192.0, UNIT = 4096.0, FINE = 0x1p20;
static const double HEAVIEST = 100.0, PACE = 0.02, FASTEST = 0.34, BUDGET = 2e5;
enum { FEWEST = 3, WIDEST = 64 };

static uint64_t mixed(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
}

/* A draw of 0 .. 2^32 - 1 for the number of a tree and of a row or feature. */
static uint64_t draw(int64_t tree, int64_t number) {
    return mixed(mixed((uint64_t)tree * 0x9E3779B97F4A7C15u + 1) + (uint64_t)number * 0x9E3779B97F4A7C15u) >> 32;
}

static ptrdiff_t rows_of(const Forest *forest) { return forest->clock[EVENTS] < WINDOW ? (ptrdiff_t)forest->clock[EVENTS] : WINDOW; }

ptrdiff_t forest_lanes(ptrdiff_t columns) { return (2 * columns + 4) / 4 * 4; }

size_t forest_scratch(ptrdiff_t columns) {
    size_t cells = (size_t)(LEAVES * BINS * forest_lanes(columns)) * sizeof(int32_t);
    size_t sorting = 2 * WINDOW * sizeof(uint32_t);
    return (cells > sorting ? cells : sorting) + 64 * sizeof(double);
}

void forest_scores(const Forest *forest, const float *x, double *scores) {
    for (ptrdiff_t k = 0; k < forest->columns; k++) scores[k] = 0.0;
    for (int t = 0; t < TREES; t++) {
        const int64_t *split = forest->splits + t * DEPTH;
        const float *cut = forest->cuts + t * DEPTH;
        ptrdiff_t code = 0;
        for (int level = 0; level < forest->depths[t]; level++) code = 2 * code + (x[split[level]] > cut[level]);
        const double *leaf = forest->leaves + (t * LEAVES + code) * forest->columns;
        for (ptrdiff_t k = 0; k < forest->columns; k++) scores[k] += leaf[k];
    }
}

static uint8_t bin_of(const float *edges, float x) {
    int bin = 0; /* how many edges are below x: they ascend */
    for (int step = 16; step; step /= 2) bin += edges[bin + step - 1] < x ? step : 0;
    return (uint8_t)bin;
}

void forest_insert(Forest *forest, const float *x, int64_t truth, double weight) {
    ptrdiff_t row = (ptrdiff_t)(forest->clock[EVENTS]++ % WINDOW);
    for (ptrdiff_t j = 0; j < forest->features; j++) {
        forest->X[j * forest->room + row] = x[j];
        forest->B[j * forest->room + row] = bin_of(forest->edges + j * EDGES, x[j]);
    }
    forest->Y[row] = truth;
    forest->weights[row] = weight < HEAVIEST ? weight : HEAVIEST;
    forest->code[row] = 0;
    forest_scores(forest, x, forest->F + row * forest->columns);
    for (ptrdiff_t i = 0; i < forest->lanes; i++) forest->gradients[row * forest->lanes + i] = 0;
}

int64_t forest_due(Forest *forest) {
    double *credit = &forest->numbers[CREDIT];
    double rows = (double)rows_of(forest), lanes = (double)forest->lanes, pace = PACE * rows;
    double searched = forest->features < WIDEST ? (double)forest->features : (double)WIDEST;
    double most = floor(BUDGET / (rows * lanes + 1000.0 * lanes));
    *credit += (3.0 + DEPTH * (1.0 + searched)) / (pace > FASTEST ? pace : FASTEST);
    if (most < 1.0) most = 1.0;
    if (*credit > most) *credit = most;
    double due = floor(*credit);
    *credit -= due;
    return (int64_t)due;
}

/* The features that a tree may look at: those that vary, and of many a draw. */
static ptrdiff_t next_feature(const Forest *forest, ptrdiff_t j) {
    for (; j < forest->features; j++)
        if (forest->edges[j * EDGES] < FLT_MAX &&
            (forest->features <= WIDEST || draw(~forest->clock[GROWN], j) * (uint64_t)forest->features < (uint64_t)WIDEST << 32))
            break;
    return j;
}

/* g and h of a row, and 1 as its count. */
static void row_gradients(const Forest *forest, ptrdiff_t row, double *p) {
    ptrdiff_t columns = forest->columns;
    const double *F = forest->F + row * columns;
    int32_t *own = forest->gradients + row * forest->lanes;
    for (ptrdiff_t i = 0; i < forest->lanes; i++) own[i] = 0;
    if (draw(forest->clock[GROWN], row) >= 3435973837u) return; /* four fifths of 2^32 */
    double top = F[0], sum = 0.0, share = 1.0, weight = forest->weights[row];
    int64_t truth = forest->Y[row];
    if (columns == 1 || forest->link == BITS)
        for (ptrdiff_t k = 0; k < columns; k++) p[k] = sigmoid_of(F[k]);
    else {
        for (ptrdiff_t k = 1; k < columns; k++) top = F[k] > top ? F[k] : top;
        for (ptrdiff_t k = 0; k < columns; k++) p[k] = exp_of(F[k] - top);
        for (ptrdiff_t k = 0; k < columns; k++) sum = k ? sum + p[k] : p[k];
        for (ptrdiff_t k = 0; k < columns; k++) p[k] = p[k] / sum;
    }
    if (forest->link == SHARED) {
        double count = 0.0;
        for (int64_t bits = truth; bits; bits &= bits - 1) count += 1.0;
        if (count == 0.0) return;
        share = 1.0 / count;
    }
    for (ptrdiff_t k = 0; k < columns; k++) {
        double y = truth >> k & 1 ? share : 0.0, h = rint(weight * (p[k] * (1.0 - p[k])) * UNIT);
        own[k] = (int32_t)rint(weight * (y - p[k]) * UNIT);
        own[columns + k] = h > 1.0 ? (int32_t)h : 1;
    }
    own[2 * columns] = 1;
}

static void start(Forest *forest, double *p) {
    int64_t *clock = forest->clock, rows = rows_of(forest), chunk = 8192 / forest->columns;
    if (!clock[CURSOR]) clock[UPTO] = rows;
    int64_t end = clock[CURSOR] + chunk < clock[UPTO] ? clock[CURSOR] + chunk : clock[UPTO];
    for (int64_t row = clock[CURSOR]; row < end; row++) {
        forest->code[row] = 0;
        row_gradients(forest, (ptrdiff_t)row, p);
    }
    clock[CURSOR] = end;
    if (end < clock[UPTO]) return;
    clock[PHASE] = SEARCH, clock[LEVEL] = clock[CURSOR] = 0, clock[BEST_FEATURE] = -1;
    forest->numbers[BEST] = 0.0;
}

/* cells[code][bin] += gradients, of every row. */
WIDE static void add_up(const uint8_t *code, const uint8_t *bins, const int32_t *gradients, ptrdiff_t rows, ptrdiff_t lanes,
                        int32_t *restrict cells) {
    if (lanes == 4)
        for (ptrdiff_t row = 0; row < rows; row++) {
            int32_t *cell = cells + ((ptrdiff_t)code[row] * BINS + bins[row]) * 4;
            for (int i = 0; i < 4; i++) cell[i] += gradients[row * 4 + i];
        }
    else
        for (ptrdiff_t row = 0; row < rows; row++) {
            int32_t *restrict cell = cells + ((ptrdiff_t)code[row] * BINS + bins[row]) * lanes;
            const int32_t *own = gradients + row * lanes;
            for (ptrdiff_t i = 0; i < lanes; i++) cell[i] += own[i];
        }
}

static double worth(double g, double h) { return g * g / (h + DAMPING); }

/* gain[b] += the worth of a leaf cut behind bin b, or of the whole leaf where one side would be too small. */
WIDE static void leaf_gains(int32_t *cells, ptrdiff_t columns, ptrdiff_t lanes, double *gain) {
    for (int bin = 1; bin < BINS; bin++)
        for (ptrdiff_t i = 0; i < lanes; i++) cells[bin * lanes + i] += cells[(bin - 1) * lanes + i];
    const int32_t *whole = cells + (BINS - 1) * lanes, count = whole[2 * columns];
    for (ptrdiff_t k = 0; k < columns; k++) {
        double G = whole[k], H = whole[columns + k], all = worth(G, H);
        if (count < 2 * FEWEST) {
            for (int bin = 0; bin < EDGES; bin++) gain[bin] += all;
            continue;
        }
        for (int bin = 0; bin < EDGES; bin++) {
            const int32_t *left = cells + bin * lanes;
            double g = left[k], h = left[columns + k], both = worth(g, h) + worth(G - g, H - h);
            int fits = left[2 * columns] >= FEWEST && count - left[2 * columns] >= FEWEST;
            gain[bin] += fits ? both : all;
        }
    }
}

/* The best cut of one feature, beside the best so far. */
static void search(Forest *forest, int32_t *cells) {
    int64_t *clock = forest->clock;
    ptrdiff_t j = next_feature(forest, (ptrdiff_t)clock[CURSOR]), leaves = (ptrdiff_t)1 << clock[LEVEL];
    double gain[BINS];
    if (j < forest->features) {
        ptrdiff_t size = BINS * forest->lanes;
        memset(cells, 0, (size_t)(leaves * size) * sizeof *cells);
        add_up(forest->code, forest->B + j * forest->room, forest->gradients, rows_of(forest), forest->lanes, cells);
        for (int bin = 0; bin < BINS; bin++) gain[bin] = 0.0;
        for (ptrdiff_t leaf = 0; leaf < leaves; leaf++) leaf_gains(cells + leaf * size, forest->columns, forest->lanes, gain);
        if (!clock[LEVEL] && clock[BEST_FEATURE] < 0) {
            forest->numbers[BASE] = 0.0;
            for (ptrdiff_t k = 0; k < forest->columns; k++) {
                const int32_t *whole = cells + (BINS - 1) * forest->lanes;
                forest->numbers[BASE] += worth(whole[k], whole[forest->columns + k]);
            }
        }
        for (int bin = 0; bin < EDGES && forest->edges[j * EDGES + bin] < FLT_MAX; bin++)
            if (clock[BEST_FEATURE] < 0 || gain[bin] > forest->numbers[BEST])
                forest->numbers[BEST] = gain[bin], clock[BEST_FEATURE] = j, clock[BEST_BIN] = bin;
        j++;
    }
    clock[CURSOR] = j;
    if (next_feature(forest, j) < forest->features) return;
    int better = clock[BEST_FEATURE] >= 0 && forest->numbers[BEST] > forest->numbers[BASE];
    clock[PHASE] = better ? SPLIT : FINISH;
}

static void split(Forest *forest) {
    int64_t *clock = forest->clock, j = clock[BEST_FEATURE], at = TREES * DEPTH + clock[LEVEL];
    const uint8_t *bins = forest->B + j * forest->room, bin = (uint8_t)clock[BEST_BIN];
    ptrdiff_t rows = rows_of(forest);
    for (ptrdiff_t row = 0; row < rows; row++) forest->code[row] = (uint8_t)(2 * forest->code[row] + (bins[row] > bin));
    forest->splits[at] = j;
    forest->cuts[at] = forest->edges[j * EDGES + bin];
    forest->numbers[BASE] = forest->numbers[BEST];
    clock[LEVEL]++, clock[CURSOR] = 0, clock[BEST_FEATURE] = -1;
    clock[PHASE] = clock[LEVEL] < DEPTH ? SEARCH : FINISH;
}

/* The leaf of every row in tree t. */
static void codes_of(Forest *forest, int t, ptrdiff_t rows, uint8_t *codes) {
    memset(codes, 0, (size_t)rows);
    for (int level = 0; level < forest->depths[t]; level++) {
        const float *x = forest->X + forest->splits[t * DEPTH + level] * forest->room, cut = forest->cuts[t * DEPTH + level];
        for (ptrdiff_t row = 0; row < rows; row++) codes[row] = (uint8_t)(2 * codes[row] + (x[row] > cut));
    }
}

/* F += sign times the leaves of tree t. */
static void add_tree(Forest *forest, int t, double sign, uint8_t *codes) {
    ptrdiff_t rows = rows_of(forest), columns = forest->columns;
    const double *leaves = forest->leaves + t * LEAVES * columns;
    codes_of(forest, t, rows, codes);
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t k = 0; k < columns; k++) forest->F[row * columns + k] += sign * leaves[codes[row] * columns + k];
}

/* The tree that was grown takes the place of the oldest. */
static void finish(Forest *forest, int32_t *cells) {
    int64_t *clock = forest->clock;
    ptrdiff_t rows = rows_of(forest), columns = forest->columns, lanes = forest->lanes;
    int t = (int)(clock[GROWN] % TREES);
    add_tree(forest, t, -1.0, (uint8_t *)cells);
    memset(cells, 0, (size_t)(LEAVES * lanes) * sizeof *cells);
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t i = 0; i < lanes; i++) cells[forest->code[row] * lanes + i] += forest->gradients[row * lanes + i];
    for (ptrdiff_t leaf = 0; leaf < LEAVES; leaf++) {
        const int32_t *own = cells + leaf * lanes;
        for (ptrdiff_t k = 0; k < columns; k++) {
            double value = RATE * (double)own[k] / ((double)own[columns + k] + DAMPING);
            forest->leaves[(t * LEAVES + leaf) * columns + k] = rint(value * FINE) / FINE;
        }
        forest->sizes[t * LEAVES + leaf] = own[2 * columns];
    }
    for (int level = 0; level < DEPTH; level++) {
        forest->splits[t * DEPTH + level] = forest->splits[TREES * DEPTH + level];
        forest->cuts[t * DEPTH + level] = forest->cuts[TREES * DEPTH + level];
    }
    forest->depths[t] = clock[LEVEL];
    add_tree(forest, t, 1.0, (uint8_t *)cells);
    clock[GROWN]++, clock[CURSOR] = 0;
    int64_t quarter = clock[BINNED] < WINDOW ? clock[BINNED] / 4 : WINDOW / 4;
    clock[PHASE] = clock[EVENTS] > clock[BINNED] + quarter ? BIN : START;
}

static uint32_t key_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float number_of_key(uint32_t key) {
    uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Keys in ascending order: eleven bits at a time. */
static void sort_keys(uint32_t *keys, uint32_t *spare, ptrdiff_t count) {
    for (int shift = 0; shift < 32; shift += 11) {
        uint32_t places[2048] = {0}, sum = 0;
        for (ptrdiff_t i = 0; i < count; i++) places[keys[i] >> shift & 2047]++;
        for (int i = 0; i < 2048; i++) {
            uint32_t own = places[i];
            places[i] = sum;
            sum += own;
        }
        for (ptrdiff_t i = 0; i < count; i++) spare[places[keys[i] >> shift & 2047]++] = keys[i];
        uint32_t *swap = keys;
        keys = spare;
        spare = swap;
    }
    memcpy(spare, keys, (size_t)count * sizeof *keys); /* an odd number of passes */
}

static float between(float low, float high) {
    float middle = (float)(0.5 * ((double)low + (double)high));
    return middle < high ? middle : low;
}

/* The edges of one feature, and the bins of its rows. */
static void bin(Forest *forest, uint32_t *keys) {
    int64_t *clock = forest->clock;
    ptrdiff_t j = (ptrdiff_t)clock[CURSOR], rows = rows_of(forest), distinct = 0;
    if (!j) clock[BINNED] = clock[EVENTS];
    if (j < forest->features) {
        float *edges = forest->edges + j * EDGES, *x = forest->X + j * forest->room;
        int count = 0;
        for (ptrdiff_t row = 0; row < rows; row++) keys[row] = key_of(x[row]);
        sort_keys(keys, keys + WINDOW, rows);
        for (ptrdiff_t row = 1; row < rows; row++) distinct += keys[row] != keys[row - 1];
        if (distinct <= EDGES) {
            for (ptrdiff_t row = 1; row < rows; row++)
                if (keys[row] != keys[row - 1]) edges[count++] = between(number_of_key(keys[row - 1]), number_of_key(keys[row]));
        } else
            for (int i = 1; i < BINS; i++) {
                ptrdiff_t low = i * rows / BINS, high = low;
                if (!low--) continue;
                while (high < rows && keys[high] == keys[low]) high++;
                if (high == rows) continue;
                float edge = between(number_of_key(keys[low]), number_of_key(keys[high]));
                if (!count || edges[count - 1] < edge) edges[count++] = edge;
            }
        while (count < EDGES) edges[count++] = FLT_MAX;
        for (ptrdiff_t row = 0; row < rows; row++) forest->B[j * forest->room + row] = bin_of(edges, x[row]);
        j++;
    }
    clock[CURSOR] = j < forest->features ? j : 0;
    if (j >= forest->features) clock[PHASE] = START;
}

void forest_step(Forest *forest, void *scratch) {
    switch (forest->clock[PHASE]) {
    case START: start(forest, scratch); break;
    case SEARCH: search(forest, scratch); break;
    case SPLIT: split(forest); break;
    case FINISH: finish(forest, scratch); break;
    default: bin(forest, scratch);
    }
}
