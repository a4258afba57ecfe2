#include "singles.h"

#include <stdint.h>
#include <string.h>

#include "wide.h"

#define LETTERS 512 /* at a time: of whole numbers */

#define NUMBERS (LETTERS * 3 / 16) /* of a block */

/* The numbers of a block: four words of three bytes are three of them. */
WIDE static void numbers_of_words(const uint32_t *words, double *numbers) {
    uint32_t bits[NUMBERS];
    float singles[NUMBERS];
    for (int i = 0; i < NUMBERS / 3; i++) {
        bits[3 * i] = words[4 * i] | words[4 * i + 1] << 24;
        bits[3 * i + 1] = words[4 * i + 1] >> 8 | words[4 * i + 2] << 16;
        bits[3 * i + 2] = words[4 * i + 2] >> 16 | words[4 * i + 3] << 8;
    }
    memcpy(singles, bits, sizeof singles);
    for (int i = 0; i < NUMBERS; i++) numbers[i] = (double)singles[i];
}

/* A block of letters as words of three bytes, the first one lowest, four letters each; not 0 if one of them is no digit. One loop
   a step, so that each takes many letters at a time. */
WIDE static int words_of_letters(const unsigned char *letters, uint32_t *words) {
    unsigned char digits[LETTERS], wrong = 0;
    for (int i = 0; i < LETTERS; i++) {
        unsigned char letter = letters[i], digit = 0x80;
        digit = (unsigned char)(letter - 'A') < 26 ? (unsigned char)(letter - 'A') : digit;
        digit = (unsigned char)(letter - 'a') < 26 ? (unsigned char)(letter - 'a' + 26) : digit;
        digit = (unsigned char)(letter - '0') < 10 ? (unsigned char)(letter - '0' + 52) : digit;
        digit = letter == '+' ? 62 : letter == '/' ? 63 : digit;
        digits[i] = digit;
        wrong |= digit;
    }
    for (int i = 0; i < LETTERS / 4; i++) {
        uint32_t a = digits[4 * i], b = digits[4 * i + 1], c = digits[4 * i + 2], d = digits[4 * i + 3];
        words[i] = (a << 2 | b >> 4) | (b & 15) << 12 | (c >> 2) << 8 | (c & 3) << 22 | d << 16;
    }
    return wrong & 0x80;
}

int read_singles(const char *text, size_t length, double *numbers, size_t count) {
    uint32_t words[LETTERS / 4], wrong = 0;
    unsigned char rest[LETTERS];
    double block[NUMBERS];
    const unsigned char *at = (const unsigned char *)text;
    if (count > SIZE_MAX / 16 || length != (count * 4 + 2) / 3 * 4) return 0;
    for (; length > LETTERS; length -= LETTERS, at += LETTERS, numbers += NUMBERS, count -= NUMBERS) {
        wrong |= (uint32_t)words_of_letters(at, words);
        numbers_of_words(words, numbers);
    }
    memset(rest, 'A', sizeof rest);
    memcpy(rest, at, length);
    size_t left = count % 3, padded = left == 2 ? 1 : left ? 2 : 0, last = count / 3 * 4;
    for (size_t i = length - padded; i < length; i++) wrong |= at[i] != '=', rest[i] = 'A';
    wrong |= (uint32_t)words_of_letters(rest, words);
    if (left) wrong |= left == 2 ? words[last + 2] >> 16 : words[last + 1] >> 8; /* bits that are left over are 0 */
    numbers_of_words(words, block);
    memcpy(numbers, block, count * sizeof *numbers);
    return !wrong;
}
