/* What JSON is made of: white space, strings, numbers. Nothing unusual is read: 0 or NULL without an exception leaves it to
   the reader in Python. */

typedef struct {
    const unsigned char *start, *at, *end; /* the byte at `end` is 0, as Python keeps its bytes */
    PyObject *source;
    Features *last; /* features that may come again, or NULL */
    int depth, plain;
} Reader;

static inline void skip_space(Reader *reader) {
    while (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\r' || *reader->at == '\t') reader->at++;
}

static inline int next_is(Reader *reader, unsigned char byte) {
    skip_space(reader);
    if (*reader->at != byte) return 0;
    reader->at++;
    return 1;
}

/* The length of the UTF-8 sequence that starts here, 0 if it is none; the bytes end with a 0. */
static int utf8_length(const unsigned char *at) {
    if (at[0] < 0x80) return 1;
    if (at[0] < 0xc2 || at[0] > 0xf4 || (at[1] & 0xc0) != 0x80) return 0;
    if (at[0] < 0xe0) return 2;
    if ((at[2] & 0xc0) != 0x80) return 0;
    if (at[0] < 0xf0) return (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ? 0 : 3;
    if ((at[3] & 0xc0) != 0x80) return 0;
    return (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f) ? 0 : 4;
}

static int hex_digits(const unsigned char *at, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit > 15) return 0;
        *code = *code * 16 + digit;
    }
    return 1;
}

/* One escape, behind its backslash, as UTF-8: the bytes written, 0 if it is none. */
static int unescape(const unsigned char **at, char *out) {
    uint32_t code, low;
    unsigned char kind = *(*at)++;
    switch (kind) {
        case '"': case '\\': case '/': *out = (char)kind; return 1;
        case 'b': *out = '\b'; return 1;
        case 'f': *out = '\f'; return 1;
        case 'n': *out = '\n'; return 1;
        case 'r': *out = '\r'; return 1;
        case 't': *out = '\t'; return 1;
        case 'u': break;
        default: return 0;
    }
    if (!hex_digits(*at, &code)) return 0;
    *at += 4;
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || (*at)[0] != '\\' || (*at)[1] != 'u' || !hex_digits(*at + 2, &low)) return 0;
        if (low < 0xdc00 || low >= 0xe000) return 0;
        *at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code < 0x80) return *out = (char)code, 1;
    int length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00 >> length) | code);
    return length;
}

/* The first byte of a string that does not stand for itself: a quote, a backslash, a control character, or beyond ASCII. */
static inline const unsigned char *plain_until(const unsigned char *at, const unsigned char *end) {
#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    for (uint64_t word; end - at >= 8; at += 8) { /* eight at a time: a top bit marks what ends it, the lowest one surely */
        memcpy(&word, at, 8);
        uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
        uint64_t ends = (word | (word - ones * 0x20) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & tops;
        if (ends) return at + (__builtin_ctzll(ends) >> 3);
    }
#else
    (void)end;
#endif
    while (*at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\') at++;
    return at;
}

/* A string behind its quote: its bytes where they stand, or in `*owned` where it has escapes. NULL if it is none. */
static const char *read_text(Reader *reader, size_t *length, char **owned) {
    const unsigned char *start = reader->at, *at = start;
    *owned = NULL;
    for (;;) {
        at = plain_until(at, reader->end);
        if (*at == '"' || *at == '\\') break;
        int step = *at < 0x20 ? 0 : utf8_length(at);
        if (!step) return NULL;
        at += step;
    }
    if (*at == '"') {
        reader->at = at + 1;
        *length = (size_t)(at - start);
        return (const char *)start;
    }
    /* An escape is never shorter than the UTF-8 that it stands for; a string ends at the latest where the bytes end. */
    const unsigned char *stop = at;
    while (*stop != '"') {
        if (*stop == '\\') stop++;
        if (stop >= reader->end) return NULL;
        stop++;
    }
    char *copy = malloc((size_t)(stop - start) + 4), *out = copy;
    if (!copy) return (const char *)PyErr_NoMemory();
    memcpy(copy, start, (size_t)(at - start));
    out += at - start;
    while (*at != '"') {
        int step;
        if (*at == '\\') {
            at++;
            step = unescape(&at, out);
        } else {
            step = *at < 0x20 ? 0 : utf8_length(at);
            for (int i = 0; i < step; i++) out[i] = (char)at[i];
            at += step;
        }
        if (!step) {
            free(copy);
            return NULL;
        }
        out += step;
    }
    reader->at = at + 1;
    *length = (size_t)(out - copy);
    return *owned = copy;
}

static PyObject *read_string(Reader *reader) {
    size_t length;
    char *owned;
    const char *text = read_text(reader, &length, &owned);
    PyObject *string = text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "strict") : NULL;
    free(owned);
    return string;
}

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Eight digits at once: whether they are, and what they add to a mantissa. */
static inline int eight_digits(const unsigned char *at, const unsigned char *end, uint64_t *mantissa) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word;
    if (end - at < 8) return 0;
    memcpy(&word, at, 8);
    if (((word & 0xf0f0f0f0f0f0f0f0u) | ((word + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4) != 0x3333333333333333u) return 0;
    word = ((word & 0x0f0f0f0f0f0f0f0fu) * 2561) >> 8;
    word = ((word & 0x00ff00ff00ff00ffu) * 6553601) >> 16;
    word = ((word & 0x0000ffff0000ffffu) * 42949672960001u) >> 32;
    *mantissa = *mantissa * 100000000 + word;
    return 1;
#else
    (void)at, (void)end, (void)mantissa;
    return 0;
#endif
}

/* The digits that stand here, behind those of the mantissa, which may overflow. */
static inline const unsigned char *read_digits(const unsigned char *at, const unsigned char *end, uint64_t *mantissa) {
    while (eight_digits(at, end, mantissa)) at += 8;
    for (; *at >= '0' && *at <= '9'; at++) *mantissa = *mantissa * 10 + (uint64_t)(*at - '0');
    return at;
}

/* A number: 1 if it is an integer of at most 18 digits (in `*whole`), 2 if it is real, 0 if it is none or unusual.

   A mantissa below 2^53 and a power of ten up to 22 are exact, so that one rounding gives the nearest number. */
static int read_number(Reader *reader, double *value, int64_t *whole) {
    const unsigned char *start = reader->at, *at = start, *first;
    int negative = *at == '-', fraction = 0, exponent = 0, real = 0;
    uint64_t mantissa = 0;
    /* As most are: a digit and .0 */
    if (at[0] >= '0' && at[0] <= '9' && at[1] == '.' && at[2] == '0' && (at[3] == ',' || at[3] == '}')) {
        reader->at = at + 3;
        *value = (double)(at[0] - '0');
        return 2;
    }
    at += negative;
    if (*at == '0' && at[1] >= '0' && at[1] <= '9') return 0;
    first = at;
    at = read_digits(at, reader->end, &mantissa);
    Py_ssize_t digits = at - first;
    if (!digits) return 0;
    if (*at == '.') {
        real = 1;
        const unsigned char *point = ++at;
        if (!mantissa) { /* zeros say nothing yet */
            while (*at == '0') at++;
            digits = point - at;
        }
        at = read_digits(at, reader->end, &mantissa);
        digits += at - point;
        fraction = (int)(at - point);
        if (!fraction) return 0;
    }
    if (*at == 'e' || *at == 'E') {
        real = 1;
        at++;
        int below = *at == '-', count = 0;
        if (*at == '-' || *at == '+') at++;
        for (; *at >= '0' && *at <= '9'; at++, count++) exponent = exponent < 9999 ? exponent * 10 + (*at - '0') : exponent;
        if (!count) return 0;
        if (below) exponent = -exponent;
    }
    reader->at = at;
    if (!real) {
        if (digits > 18 || (negative && !mantissa)) return 0;
        *whole = negative ? -(int64_t)mantissa : (int64_t)mantissa;
        *value = (double)*whole;
        return 1;
    }
    exponent -= fraction;
    if (digits <= 19 && mantissa < (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        double size = (double)mantissa;
        size = exponent < 0 ? size / TENS[-exponent] : size * TENS[exponent];
        *value = negative ? -size : size;
        return 2;
    }
    if (digits <= 19 && nearest(mantissa, exponent, value)) {
        if (negative) *value = -*value;
        return 2;
    }
    char *stop;
    *value = PyOS_string_to_double((const char *)start, &stop, NULL);
    if (PyErr_Occurred()) PyErr_Clear();
    else if ((const unsigned char *)stop == at && isfinite(*value)) return 2;
    return 0;
}
