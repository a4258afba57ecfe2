/* Base64 of little-endian float32: what is written is read, and every other text is refused. */

#include "singles.h"

#include "check.h"

static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t encode(const unsigned char *bytes, size_t count, char *text) {
    size_t length = 0;
    for (size_t i = 0; i < count; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        if (i + 1 < count) group |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < count) group |= bytes[i + 2];
        text[length++] = LETTERS[group >> 18 & 63];
        text[length++] = LETTERS[group >> 12 & 63];
        text[length++] = i + 1 < count ? LETTERS[group >> 6 & 63] : '=';
        text[length++] = i + 2 < count ? LETTERS[group & 63] : '=';
    }
    return length;
}

int main(void) {
    for (int round = 0; round < 20000; round++) {
        size_t count = round % 50 ? below(20) : below(400); /* some in several blocks */
        float *singles = room_for(count * sizeof *singles);
        double *numbers = room_for(count * sizeof *numbers);
        for (size_t i = 0; i < count; i++) singles[i] = (float)(1000.0 * spread());
        char *long_text = room_for(8 * count + 8);
        size_t length = encode((const unsigned char *)singles, 4 * count, long_text);
        char *text = room_for(length); /* no byte behind it */
        memcpy(text, long_text, length);
        CHECK(read_singles(text, length, numbers, count));
        for (size_t i = 0; i < count; i++) CHECK(numbers[i] == (double)singles[i]);
        CHECK(!read_singles(text, length, numbers, count + 1) || !count);
        if (length) {
            CHECK(!read_singles(text, length - 1, numbers, count));
            size_t at = below(length);
            char own = text[at];
            text[at] = "=-_ \n\x00\xff!"[below(8)];
            if (text[at] != own) CHECK(!read_singles(text, length, numbers, count));
        }
        free(singles), free(numbers), free(long_text), free(text);
    }
    return 0;
}
