/* Loops that the compiler makes for more than one kind of CPU. */

#ifndef FEEDRANK_WIDE_H
#define FEEDRANK_WIDE_H

#include <stddef.h> /* which tells __GLIBC__ */

/* Loops that take more numbers at a time where the CPU can: the same operations on each of them, and so the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

#endif
