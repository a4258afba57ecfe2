/* singles.py: the base64 of little-endian float32 as numbers. */

#ifndef FEEDRANK_SINGLES_H
#define FEEDRANK_SINGLES_H

#include <stddef.h>

/* Whether `length` letters are the base64, with its padding, of exactly `count` numbers, which are left in `numbers`. */
int read_singles(const char *text, size_t length, double *numbers, size_t count);

#endif
