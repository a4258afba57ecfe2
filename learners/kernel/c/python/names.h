/* Names in the order in which they joined: an open-addressing table over their UTF-8 bytes.

   `width` names from `first` on are the parts of a vector (table.h): they have no slot, so that no text leads to them.

   Whatever needs memory asks for it first (`names_reserve`); what follows cannot fail. No number depends on the hash, whose
   keys are Python's own and differ from process to process, so that nobody can choose names that collide. */

typedef struct {
    uint64_t *slots; /* upper half: 32 bits of the hash; lower half: the name's number plus 1, or 0 where empty */
    uint64_t mask;
    uint64_t *ends; /* where each name ends in `text`; it starts where the one before it ends */
    char *text;
    size_t count, room, capacity, first, width;
} Names;

static uint64_t hash_keys[2];

#define ROTATE(x, bits) (((x) << (bits)) | ((x) >> (64 - (bits))))

static inline void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[1] = ROTATE(v[1], 13) ^ v[0], v[0] = ROTATE(v[0], 32);
    v[2] += v[3], v[3] = ROTATE(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = ROTATE(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = ROTATE(v[1], 17) ^ v[2], v[2] = ROTATE(v[2], 32);
}

/* SipHash-1-3. */
static inline uint64_t hash_of(const char *text, size_t length) {
    uint64_t v[4] = {hash_keys[0] ^ 0x736f6d6570736575u, hash_keys[1] ^ 0x646f72616e646f6du,
                     hash_keys[0] ^ 0x6c7967656e657261u, hash_keys[1] ^ 0x7465646279746573u};
    uint64_t word;
    size_t left = length;
    for (; left >= 8; left -= 8, text += 8) {
        memcpy(&word, text, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t)length << 56;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (length >= 8 && left) { /* the last eight bytes, without those that were taken */
        uint64_t last;
        memcpy(&last, text + left - 8, 8);
        word |= last >> (64 - 8 * left);
        left = 0;
    }
#endif
    for (size_t i = 0; i < left; i++) word |= (uint64_t)(unsigned char)text[i] << (8 * i);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static inline const char *name_start(const Names *names, size_t number) {
    return names->text + (number ? names->ends[number - 1] : 0);
}

static inline size_t name_length(const Names *names, size_t number) {
    return (size_t)(names->ends[number] - (number ? names->ends[number - 1] : 0));
}

/* Whether two texts of one length are equal: most are short, and a call would take longer than the comparison. */
static inline int text_same(const char *one, const char *two, size_t length) {
    uint64_t a, b, c, d;
    if (length < 8 || length > 16) return !memcmp(one, two, length);
    memcpy(&a, one, 8), memcpy(&b, two, 8);
    memcpy(&c, one + length - 8, 8), memcpy(&d, two + length - 8, 8);
    return !((a ^ b) | (c ^ d));
}

static inline int name_is(const Names *names, size_t number, const char *text, size_t length) {
    return name_length(names, number) == length && text_same(name_start(names, number), text, length);
}

/* The number of a name, -1 if it has not joined. */
static Py_ssize_t names_find(const Names *names, uint64_t hash, const char *text, size_t length) {
    if (!names->count) return -1;
    for (uint64_t at = hash & names->mask;; at = (at + 1) & names->mask) {
        uint64_t slot = names->slots[at];
        if (!slot) return -1;
        if ((slot ^ hash) >> 32) continue;
        size_t number = (size_t)(uint32_t)slot - 1;
        if (name_is(names, number, text, length)) return (Py_ssize_t)number;
    }
}

static void names_place(uint64_t *slots, uint64_t mask, uint64_t hash, size_t number) {
    uint64_t at = hash & mask;
    while (slots[at]) at = (at + 1) & mask;
    slots[at] = (hash & 0xffffffff00000000u) | (uint32_t)(number + 1);
}

static void names_place_all(const Names *names, uint64_t *slots, uint64_t mask) {
    for (size_t i = 0; i < names->count; i++) {
        if (names->width && i == names->first) i += names->width;
        if (i < names->count) names_place(slots, mask, hash_of(name_start(names, i), name_length(names, i)), i);
    }
}

/* Room for `more` names of `bytes` bytes in all: -1 with MemoryError, and nothing changed, where there is none. */
static int names_reserve(Names *names, size_t more, size_t bytes) {
    size_t count = names->count + more, used = (names->count ? names->ends[names->count - 1] : 0) + bytes;
    if (count >= 0xfffffffeu) {
        PyErr_SetString(PyExc_OverflowError, "too many names");
        return -1;
    }
    if (used > names->capacity || !names->text) {
        size_t capacity = used > 2 * names->capacity ? used : 2 * names->capacity;
        if (capacity < 256) capacity = 256;
        char *text = realloc(names->text, capacity);
        if (!text) return PyErr_NoMemory(), -1;
        names->text = text;
        names->capacity = capacity;
    }
    if (count > names->room) {
        size_t room = count > 2 * names->room ? count : 2 * names->room;
        if (room < 16) room = 16;
        uint64_t *ends = realloc(names->ends, room * sizeof *ends);
        if (!ends) return PyErr_NoMemory(), -1;
        names->ends = ends;
        names->room = room;
    }
    if (!names->slots || 2 * count > names->mask + 1) {
        uint64_t size = 32;
        while (size < 2 * (uint64_t)count) size *= 2;
        uint64_t *slots = calloc(size, sizeof *slots);
        if (!slots) return PyErr_NoMemory(), -1;
        names_place_all(names, slots, size - 1);
        free(names->slots);
        names->slots = slots;
        names->mask = size - 1;
    }
    return 0;
}

/* The number of a name, given now if it is new; its room was reserved. */
static size_t names_add(Names *names, uint64_t hash, const char *text, size_t length) {
    Py_ssize_t number = names_find(names, hash, text, length);
    if (number >= 0) return (size_t)number;
    size_t last = names->count, used = last ? names->ends[last - 1] : 0;
    memcpy(names->text + used, text, length);
    names->ends[last] = used + length;
    names_place(names->slots, names->mask, hash, last);
    names->count = last + 1;
    return last;
}

/* The names beyond the first `count` leave. It needs no memory. */
static void names_forget(Names *names, size_t count) {
    if (count >= names->count) return;
    names->count = count;
    if (names->first >= count) names->first = names->width = 0;
    memset(names->slots, 0, (names->mask + 1) * sizeof *names->slots);
    names_place_all(names, names->slots, names->mask);
}

#define PART_NAME 24 /* bytes that the name of a part has at most */

static size_t part_name(char *text, size_t part) { return (size_t)PyOS_snprintf(text, PART_NAME, "vector:[%zu]", part); }

/* The parts of a vector join, `width` of them: their room, of at most PART_NAME bytes each, was reserved. */
static void names_add_parts(Names *names, size_t width) {
    size_t used = names->count ? names->ends[names->count - 1] : 0;
    names->first = names->count;
    names->width = width;
    for (size_t i = 0; i < width; i++) {
        char text[PART_NAME];
        size_t length = part_name(text, i);
        memcpy(names->text + used, text, length);
        names->ends[names->count++] = used += length;
    }
}

static void names_clear(Names *names) {
    free(names->slots);
    free(names->ends);
    free(names->text);
    memset(names, 0, sizeof *names);
}

/* The bytes of a text: those that Python keeps, or for lone surrogates a copy in `*owned`. NULL with an exception. */
static const char *utf8_of(PyObject *text, Py_ssize_t *length, PyObject **owned) {
    *owned = NULL;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, length);
    if (bytes || !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return bytes;
    PyErr_Clear();
    *owned = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    if (!*owned) return NULL;
    *length = PyBytes_Size(*owned);
    return PyBytes_AsString(*owned);
}

static PyObject *text_of(const char *bytes, size_t length) {
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, "surrogatepass");
}

/* Whether bytes decode: a name that came from a file must be text. */
static int utf8_sound(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)bytes[i] >= 0x80) {
            PyObject *text = text_of(bytes, length);
            Py_XDECREF(text);
            if (!text) PyErr_Clear();
            return text != NULL;
        }
    return 1;
}
