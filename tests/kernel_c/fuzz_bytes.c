/* libFuzzer: what reads raw bytes reads none beyond them, and keeps what test_body_cost.c, test_singles.c and test_words.c say.

   Built by scripts/harden_kernel where there is clang; corpus/ is where it begins. */

#include "body_cost.h"
#include "check.h"
#include "singles.h"
#include "words.h"

static unsigned char letters[256];
static Kinds kinds;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t cost = body_bytes(data, size);
    CHECK(size <= 1024 || body_affordable(data, size) == (cost <= 65536 + 32 * (uint64_t)size));

    size_t count = size / 16 * 3;
    double *numbers = room_for(count * sizeof *numbers);
    read_singles((const char *)data, size, numbers, count);
    free(numbers);

    if (!kinds.pages[0]) {
        for (int c = 0; c < 256; c++) letters[c] = (unsigned char)kind_of((uint32_t)c, c >= '0');
        for (int page = 0; page < PAGES; page++) kinds.pages[page] = letters;
    }
    size_t at = 0, last = 0, words = 0;
    uint32_t missing;
    for (Word word; next_word(&kinds, (const char *)data, size, &at, 0, &word, &missing); last = word.stop) {
        CHECK(word.start >= last && word.start < word.stop && word.stop <= size && at == word.stop);
        CHECK(words++ < size);
    }
    return 0;
}
