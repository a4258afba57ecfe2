/* body_cost.py: what reading a body of JSON takes at most, so that it is known before the first object is made. */

#ifndef FEEDRANK_BODY_COST_H
#define FEEDRANK_BODY_COST_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of memory that the values of `count` bytes of JSON take, whether these are JSON or not. */
uint64_t body_bytes(const unsigned char *bytes, size_t count);

/* Whether that is within what a body of so many bytes may take. */
int body_affordable(const unsigned char *bytes, size_t count);

#endif
