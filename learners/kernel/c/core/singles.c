#include "singles.h"

#include <stdint.h>
#include <string.h>

#define WRONG 0x80000000u

static int digit_of(int letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

static void put(double *number, uint32_t bits) {
    float single;
    memcpy(&single, &bits, sizeof single);
    *number = (double)single;
}

/* The three bytes of four letters, the first one lowest; WRONG if one is no digit. `digits` has a table for each place. */
static uint32_t three_bytes(const unsigned char *at, const uint32_t (*digits)[256]) {
    return digits[0][at[0]] | digits[1][at[1]] | digits[2][at[2]] | digits[3][at[3]];
}

int read_singles(const char *text, size_t length, double *numbers, size_t count) {
    uint32_t digits[4][256], wrong = 0;
    unsigned char rest[16] = {0}, bytes[12];
    const unsigned char *at = (const unsigned char *)text;
    size_t threes = count / 3, left = count % 3, letters = left == 2 ? 11 : left ? 6 : 0;
    if (count > SIZE_MAX / 16 || length != (count * 4 + 2) / 3 * 4) return 0;
    for (int letter = 0; letter < 256; letter++) {
        uint32_t digit = (uint32_t)digit_of(letter);
        int known = digit_of(letter) >= 0;
        digits[0][letter] = known ? digit << 2 : WRONG;
        digits[1][letter] = known ? digit >> 4 | (digit & 15) << 12 : WRONG;
        digits[2][letter] = known ? (digit >> 2) << 8 | (digit & 3) << 22 : WRONG;
        digits[3][letter] = known ? digit << 16 : WRONG;
    }
    for (size_t i = 0; i < threes; i++, at += 16, numbers += 3) { /* 16 letters are 12 bytes are 3 numbers */
        uint32_t a = three_bytes(at, digits), b = three_bytes(at + 4, digits), c = three_bytes(at + 8, digits),
                 d = three_bytes(at + 12, digits);
        wrong |= a | b | c | d;
        put(numbers, a | b << 24);
        put(numbers + 1, (b & 0xffffffu) >> 8 | c << 16);
        put(numbers + 2, (c & 0xffffffu) >> 16 | d << 8);
    }
    if (wrong & WRONG) return 0;
    if (!left) return 1;
    memset(rest, 'A', sizeof rest);
    memcpy(rest, at, letters);
    for (size_t i = letters; i < (left == 2 ? 12 : 8); i++)
        if (at[i] != '=') return 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t word = three_bytes(rest + 4 * i, digits);
        wrong |= word;
        for (size_t n = 0; n < 3; n++) bytes[3 * i + n] = (unsigned char)(word >> (8 * n));
    }
    for (size_t i = 4 * left; i < 12; i++) wrong |= bytes[i] ? WRONG : 0; /* bits that are left over are 0 */
    if (wrong & WRONG) return 0;
    for (size_t i = 0; i < left; i++)
        put(numbers + i, (uint32_t)bytes[4 * i] | (uint32_t)bytes[4 * i + 1] << 8 | (uint32_t)bytes[4 * i + 2] << 16 |
                             (uint32_t)bytes[4 * i + 3] << 24);
    return 1;
}
