/* Words of any bytes: found in order, inside the text, each behind the one before; a missing page is asked for once. */

#include "words.h"

#include "check.h"

static unsigned char pages[PAGES][256];

static void fill(uint32_t page) {
    for (uint32_t c = 0; c < 256; c++) {
        uint32_t character = page << 8 | c;
        int letter = (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') || character >= 0xc0;
        pages[page][c] = (unsigned char)kind_of(character, letter);
    }
}

int main(void) {
    CHECK(kind_of('a', 1) == LETTER && kind_of(' ', 0) == SEPARATOR && kind_of(0x4e2d, 1) == IDEOGRAPH && kind_of(0x301, 0) == MARK);
    static const char *const parts[] = {"a", "b1", " ", "\xe4\xb8\xad", "\xcc\x81", "\xc3\xa9", "\xf0\x9f\x98\x80", "\xff", "\xc3", "\xf4\x8f\xbf\xbf"};
    for (int round = 0; round < 20000; round++) {
        Kinds kinds = {{NULL}};
        char text[256];
        size_t length = 0, words = 0;
        for (size_t n = below(40); n; n--) {
            const char *part = parts[below(sizeof parts / sizeof parts[0])];
            memcpy(text + length, part, strlen(part));
            length += strlen(part);
        }
        char *exact = room_for(length);
        memcpy(exact, text, length);
        size_t at = 0, last = 0;
        Word word;
        uint32_t missing;
        int state, inside = (int)below(2);
        while ((state = next_word(&kinds, exact, length, &at, inside, &word, &missing))) {
            if (state < 0) {
                CHECK(missing < PAGES && !kinds.pages[missing]);
                fill(missing);
                kinds.pages[missing] = pages[missing];
                continue;
            }
            CHECK(word.start >= last && word.stop <= length && at == word.stop && (inside || word.start < word.stop));
            CHECK(word.open == 0 || word.stop == length);
            last = word.stop, inside = 0, words++;
            CHECK(words <= length + 1);
        }
        CHECK(at == length);
        free(exact);
    }
    return 0;
}
