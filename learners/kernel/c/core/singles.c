#include "singles.h"

#include <stdint.h>
#include <string.h>

static int digit_of(unsigned char letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

int read_singles(const char *text, size_t length, double *numbers, size_t count) {
    int8_t digits[256];
    uint32_t word = 0;
    size_t bytes = 0, taken = 0, full = count * 4 / 3;
    if (count > SIZE_MAX / 16 || length != (count * 4 + 2) / 3 * 4) return 0;
    for (int letter = 0; letter < 256; letter++) digits[letter] = (int8_t)digit_of((unsigned char)letter);
    for (size_t group = 0; group * 4 < length; group++) {
        const unsigned char *at = (const unsigned char *)text + group * 4;
        int four[4], missing = group < full ? 0 : (int)(3 - (count * 4 - full * 3));
        for (int i = 0; i < 4; i++) {
            four[i] = i < 4 - missing ? digits[at[i]] : at[i] == '=' ? 0 : -1;
            if (four[i] < 0) return 0;
        }
        uint32_t value = (uint32_t)four[0] << 18 | (uint32_t)four[1] << 12 | (uint32_t)four[2] << 6 | (uint32_t)four[3];
        if (missing && value & (missing == 2 ? 0xffffu : 0xffu)) return 0; /* bits that are left over are 0 */
        for (int i = 0; i < 3 - missing; i++) {
            word |= (value >> (16 - 8 * i) & 255) << (8 * bytes);
            if (++bytes == 4) {
                float number;
                memcpy(&number, &word, sizeof number);
                numbers[taken++] = (double)number;
                bytes = 0, word = 0;
            }
        }
    }
    return 1;
}
