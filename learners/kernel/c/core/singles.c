#include "singles.h"

#include <stdint.h>
#include <string.h>

#define WRONG 0x80u /* what no digit has */
#define X WRONG
#define X8 X, X, X, X, X, X, X, X
#define X32 X8, X8, X8, X8

/* The digit that each letter is. */
static const uint8_t DIGITS[256] = {
    X32, X8, X, X, X, 62, X, X, X, 63,                                                   /* + / */
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, X, X, X, X, X, X,                            /* 0 to 9 */
    X, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,                                 /* A to O */
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, X, X, X, X, X,                           /* P to Z */
    X, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,                       /* a to o */
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, X, X, X, X, X, X32, X32, X32, X32,       /* p to z */
};

/* The 24 bits of four letters, the first byte highest; `wrong` has WRONG if one is no digit. */
static uint32_t bits_of(const unsigned char *at, uint32_t *wrong) {
    uint32_t a = DIGITS[at[0]], b = DIGITS[at[1]], c = DIGITS[at[2]], d = DIGITS[at[3]];
    *wrong |= a | b | c | d;
    return a << 18 | b << 12 | c << 6 | d;
}

/* Four bytes, of which the first is the lowest of the number's. */
static double single_of(uint32_t word) {
    uint32_t bits = word >> 24 | (word >> 8 & 0xff00u) | (word << 8 & 0xff0000u) | word << 24;
    float single;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

int read_singles(const char *text, size_t length, double *numbers, size_t count) {
    uint32_t wrong = 0;
    unsigned char rest[16] = {0};
    const unsigned char *at = (const unsigned char *)text;
    size_t threes = count / 3, left = count % 3, letters = left == 2 ? 11 : left ? 6 : 0;
    if (count > SIZE_MAX / 16 || length != (count * 4 + 2) / 3 * 4) return 0;
    for (size_t i = 0; i < threes; i++, at += 16, numbers += 3) { /* 16 letters are 12 bytes are 3 numbers */
        uint32_t a = bits_of(at, &wrong), b = bits_of(at + 4, &wrong), c = bits_of(at + 8, &wrong), d = bits_of(at + 12, &wrong);
        numbers[0] = single_of(a << 8 | b >> 16);
        numbers[1] = single_of(b << 16 | c >> 8);
        numbers[2] = single_of(c << 24 | d);
    }
    if (wrong & WRONG) return 0;
    if (!left) return 1;
    memset(rest, 'A', sizeof rest);
    memcpy(rest, at, letters);
    for (size_t i = letters; i < (left == 2 ? 12 : 8); i++)
        if (at[i] != '=') return 0;
    uint32_t a = bits_of(rest, &wrong), b = bits_of(rest + 4, &wrong), c = bits_of(rest + 8, &wrong);
    /* Bits that are left over are 0. */
    if ((wrong & WRONG) || (left == 1 ? (b & 0xffffu) : (c & 0xffu))) return 0;
    numbers[0] = single_of(a << 8 | b >> 16);
    if (left == 2) numbers[1] = single_of(b << 16 | c >> 8);
    return 1;
}
