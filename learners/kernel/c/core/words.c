#include "words.h"

static int ideograph(uint32_t c) {
    return (c >= 0x3040 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x4e00 && c <= 0x9fff) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x20000 && c <= 0x3fffd);
}

int kind_of(uint32_t character, int alphanumeric) {
    if (ideograph(character)) return IDEOGRAPH;
    if (alphanumeric) return LETTER;
    return character >= 0x300 && character <= 0x36f ? MARK : SEPARATOR;
}

/* The character at `at` of sound UTF-8 (or a lone surrogate written like any other), and the byte behind it. */
static uint32_t character_at(const char *text, size_t length, size_t at, size_t *stop) {
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t c = bytes[at];
    *stop = behind(text, length, at);
    if (c < 0x80) return c;
    c &= *stop - at == 2 ? 0x1f : *stop - at == 3 ? 0x0f : 0x07;
    for (size_t i = at + 1; i < *stop; i++) c = c << 6 | (bytes[i] & 0x3fu);
    return c;
}

/* The kind of the character at `at`, -1 where its page is missing. */
static int kind_at(const Kinds *kinds, const char *text, size_t length, size_t at, size_t *stop, uint32_t *missing) {
    uint32_t c = (unsigned char)text[at];
    if (c < 0x80 && kinds->pages[0]) {
        *stop = at + 1;
        return kinds->pages[0][c];
    }
    c = character_at(text, length, at, stop);
    *missing = c >> 8;
    if (c >> 8 >= PAGES) return SEPARATOR;
    return kinds->pages[c >> 8] ? kinds->pages[c >> 8][c & 0xff] : -1;
}

int next_word(const Kinds *kinds, const char *text, size_t length, size_t *at, int inside, Word *word, uint32_t *missing) {
    size_t place = *at, stop = place;
    int kind;
    if (!inside) {
        for (;; place = stop) {
            if (place >= length) {
                *at = place;
                return 0;
            }
            if ((kind = kind_at(kinds, text, length, place, &stop, missing)) < 0) return -1;
            if (kind == LETTER || kind == IDEOGRAPH) break;
        }
        if (kind == IDEOGRAPH) {
            *word = (Word){place, stop, 0};
            *at = stop;
            return 1;
        }
    }
    size_t start = place;
    for (place = stop; place < length; place = stop) {
        if ((kind = kind_at(kinds, text, length, place, &stop, missing)) < 0) return -1;
        if (kind != LETTER && kind != MARK) break;
    }
    *word = (Word){start, place, place >= length};
    *at = place;
    return 1;
}
