/* What the tests of the kernel's core share: a check that says where it failed, numbers by chance, and a lack of memory.

   A test is one program, linked with every file of the core and `-Wl,--wrap=malloc`. It says nothing and ends with 0. */

#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* xorshift64*: the same numbers in every run. */
static uint64_t chance_state = 88172645463325252u;

static inline uint64_t chance(void) {
    chance_state ^= chance_state >> 12;
    chance_state ^= chance_state << 25;
    chance_state ^= chance_state >> 27;
    return chance_state * 2685821657736338717u;
}

static inline size_t below(size_t most) { return (size_t)(chance() % most); }

/* A number in [-1, 1). */
static inline double spread(void) { return (double)(chance() >> 11) * 0x1p-52 - 1.0; }

/* Exactly so many bytes on the heap, so that a byte read beyond them is seen. */
static inline void *room_for(size_t bytes) {
    void *room = calloc(bytes ? bytes : 1, 1);
    CHECK(room);
    return room;
}

/* The allocation that fails, counted from now on: 1 the next one, 0 none. */
static long failing;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size) { return failing && !--failing ? NULL : __real_malloc(size); }

static inline int near(double one, double other, double scale) { return fabs(one - other) <= 1e-9 * (scale > 1.0 ? scale : 1.0); }

#endif
