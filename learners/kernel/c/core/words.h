/* words.py: the words of folded text in UTF-8, found one after the other. */

#ifndef FEEDRANK_WORDS_H
#define FEEDRANK_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define PART 4 /* characters of a part */
#define LONGEST 64 /* parts of a word */
#define PAGES 0x1100 /* of 256 characters each */

/* What a character is to words. */
enum { SEPARATOR, LETTER, MARK, IDEOGRAPH };

/* The kinds of the characters of each page, NULL where it was not needed yet: the letters are those of Python's Unicode. */
typedef struct {
    const unsigned char *pages[PAGES];
} Kinds;

/* A word of a text: its bytes, and whether it may go on behind the text. */
typedef struct {
    size_t start, stop;
    int open;
} Word;

/* The kind of a character, given whether it is a letter or digit. */
int kind_of(uint32_t character, int alphanumeric);

/* The next word from `*at` on, which moves behind it: 1, or 0 where there is none. `inside`: a word goes on at `*at`, and what
   is found is the rest of it, which may be empty. -1 where the page `*missing` has to be filled in first; nothing moved. */
int next_word(const Kinds *kinds, const char *text, size_t length, size_t *at, int inside, Word *word, uint32_t *missing);

/* The byte behind the character at `at`. */
static inline size_t behind(const char *text, size_t length, size_t at) {
    while (++at < length && ((unsigned char)text[at] & 0xc0) == 0x80) {
    }
    return at;
}

#endif
