/* What reading a body may take: never beyond its bytes, and what is affordable is within the bound. */

#include "body_cost.h"

#include "check.h"

static const char MARKS[] = "{}[]:,\"\\ \n0123456789.eE+-truefalsn\xc3\xa9\x00\xff";

int main(void) {
    CHECK(body_bytes((const unsigned char *)"{}", 2) == 80);
    CHECK(body_bytes((const unsigned char *)"[1,2]", 5) == 96 + 28);
    CHECK(body_bytes((const unsigned char *)"{\"ab\":123}", 10) == 144 + 56 + 2 + 84 + 32);
    CHECK(body_bytes((const unsigned char *)"", 0) == 0);
    CHECK(body_affordable((const unsigned char *)"", 0));
    for (int round = 0; round < 20000; round++) {
        size_t count = below(round % 50 ? 64 : 6000), kinds = 1 + below(sizeof MARKS - 1);
        unsigned char *bytes = room_for(count);
        for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)MARKS[below(kinds)];
        uint64_t cost = body_bytes(bytes, count);
        CHECK(body_bytes(bytes, count) == cost);
        if (count > 1024) CHECK(body_affordable(bytes, count) == (cost <= 65536 + 32 * (uint64_t)count));
        else CHECK(body_affordable(bytes, count));
        free(bytes);
    }
    return 0;
}
