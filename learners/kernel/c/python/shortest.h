/* The shortest decimal that is read back as a number: Schubfach (R. Giulietti, The Schubfach way to render doubles, 2020). */

#define LEAST_POWER (-292)
#define POWERS 617
static uint64_t powers_of_ten[POWERS][2]; /* high and low half: see decimal_powers.py */

static int take_powers(void) {
    PyObject *module = PyImport_ImportModule("feedrank.learners.kernel.decimal_powers");
    PyObject *bytes = module ? PyObject_CallMethod(module, "powers", NULL) : NULL;
    char *data;
    Py_ssize_t length;
    int state = bytes && !PyBytes_AsStringAndSize(bytes, &data, &length) ? 0 : -1;
    if (!state && length == (Py_ssize_t)sizeof powers_of_ten)
        for (int i = 0; i < 2 * POWERS; i++) {
            uint64_t half = 0;
            for (int byte = 7; byte >= 0; byte--) half = half << 8 | (unsigned char)data[8 * i + byte];
            powers_of_ten[i / 2][i % 2] = half;
        }
    else if (!state) {
        PyErr_SetString(PyExc_ImportError, "decimal_powers.py is of another version");
        state = -1;
    }
    Py_XDECREF(module);
    Py_XDECREF(bytes);
    return state;
}

static uint64_t times_high(uint64_t a, uint64_t b, uint64_t *low) {
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    *low = a * b;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* floor(g c / 2^128), made odd where something is cut off. */
static uint64_t round_to_odd(const uint64_t *g, uint64_t c) {
    uint64_t low, below, high = times_high(g[0], c, &low), carry = times_high(g[1], c, &below);
    low += carry;
    high += low < carry;
    return high | (low > 1);
}

static int floor_shift(int number, int bits) { return number >= 0 ? number >> bits : -((-number - 1) >> bits) - 1; }

/* value = *digits 10^(what is returned), of a positive finite number. */
static int shortest(double value, uint64_t *digits) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & 0xfffffffffffffu;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t c = exponent ? fraction | 0x10000000000000u : fraction;
    int q = (exponent ? exponent : 1) - 1075, even = !(c & 1), closer = !fraction && exponent > 1;
    int k = floor_shift(q * 1262611 - (closer ? 524031 : 0), 22), h = q + floor_shift(-k * 1741647, 19) + 1;
    const uint64_t *g = powers_of_ten[-k - LEAST_POWER];
    uint64_t lower = round_to_odd(g, (4 * c - 2 + (uint64_t)closer) << h) + !even;
    uint64_t middle = round_to_odd(g, 4 * c << h), upper = round_to_odd(g, (4 * c + 2) << h) - !even;
    uint64_t s = middle / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        int under = lower <= 40 * tens, over = 40 * tens + 40 <= upper;
        if (under != over) return *digits = tens + (uint64_t)over, k + 1;
    }
    int under = lower <= 4 * s, over = 4 * s + 4 <= upper;
    if (under == over) over = middle > 4 * s + 2 || (middle == 4 * s + 2 && (s & 1));
    *digits = s + (uint64_t)over;
    return k;
}
