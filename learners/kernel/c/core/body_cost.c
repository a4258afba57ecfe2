#include "body_cost.h"

#include <string.h>

enum { OBJECT = 144, MEMBER = 84, ARRAY = 96, EMPTY = 80, NEXT = 28, TEXT = 56, NUMBER = 32 };
enum { BASE = 64 * 1024, TIMES = 32, SMALL = 1024, DEEPEST = 1024 };

static int is_space(unsigned char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

static int is_scalar(unsigned char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '+' || byte == '.' || byte == 'E';
}

/* Behind the quote that ends a string, or the end of all. */
static size_t string_end(const unsigned char *bytes, size_t at, size_t count) {
    while (at < count && bytes[at] != '"') at += bytes[at] == '\\' ? 2 : 1;
    return at < count ? at + 1 : count;
}

uint64_t body_bytes(const unsigned char *bytes, size_t count) {
    uint64_t cost = 0;
    int64_t depth = 0;
    unsigned char seen = 0;
    for (size_t i = 0; i < count; i++) seen |= bytes[i];
    const uint64_t width = seen & 0x80 ? 4 : 1;
    for (size_t at = 0; at < count;) {
        size_t start = at;
        unsigned char byte = bytes[at++];
        switch (byte) {
            case '{':
            case '[':
                if (++depth > DEEPEST) return cost;
                while (at < count && is_space(bytes[at])) at++;
                cost += at < count && bytes[at] == (byte == '{' ? '}' : ']') ? EMPTY : byte == '{' ? OBJECT : ARRAY;
                break;
            case '}':
            case ']': depth--; break;
            case ':': cost += MEMBER; break;
            case ',': cost += NEXT; break;
            case '"':
                at = string_end(bytes, at, count);
                if (at - start > 3) cost += TEXT + width * (at - start - 2);
                break;
            default:
                if (!is_scalar(byte)) break;
                while (at < count && is_scalar(bytes[at])) at++;
                if (at - start > 2) cost += NUMBER;
        }
    }
    return cost;
}

/* How often each of `{`, `[`, `:`, `,` and `"` is there, inside strings too. */
static void count_marks(const unsigned char *bytes, size_t count, uint64_t marks[5]) {
    memset(marks, 0, 5 * sizeof marks[0]);
    for (size_t start = 0; start < count; start += 128) {
        size_t stop = count - start < 128 ? count : start + 128;
        unsigned char braces = 0, brackets = 0, colons = 0, commas = 0, quotes = 0;
        for (size_t i = start; i < stop; i++) {
            braces = (unsigned char)(braces + (bytes[i] == '{'));
            brackets = (unsigned char)(brackets + (bytes[i] == '['));
            colons = (unsigned char)(colons + (bytes[i] == ':'));
            commas = (unsigned char)(commas + (bytes[i] == ','));
            quotes = (unsigned char)(quotes + (bytes[i] == '"'));
        }
        marks[0] += braces, marks[1] += brackets, marks[2] += colons, marks[3] += commas, marks[4] += quotes;
    }
}

int body_affordable(const unsigned char *bytes, size_t count) {
    if (count <= SMALL) return 1;
    const uint64_t most = BASE + TIMES * (uint64_t)count;
    uint64_t marks[5];
    count_marks(bytes, count, marks);
    /* Every value but the first stands behind a mark: most bodies are far below even if all of them are texts. */
    uint64_t values = marks[0] + marks[1] + marks[2] + marks[3] + 1;
    uint64_t above = marks[0] * OBJECT + marks[1] * ARRAY + marks[2] * MEMBER + marks[3] * NEXT + marks[4] / 2 * TEXT +
                     values * NUMBER + 4 * (uint64_t)count;
    return above <= most || body_bytes(bytes, count) <= most;
}
