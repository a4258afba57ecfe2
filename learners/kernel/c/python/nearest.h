/* The number nearest to a decimal: mantissa 10^exponent, by one product with 128 bits of the power of ten (D. Lemire, Number
   parsing at a gigabyte per second, 2021). shortest.h goes the other way.

   The table's powers are rounded up, so that the product lies less than the mantissa above the true value: where both ends of
   that are nearest to one number, it is the right one; where not, who asks must take another way. */

/* The upper 53 bits of 192, rounded to even, as a number with this exponent of its upper 64 bits: 0 if it is not normal. */
static uint64_t rounded(uint64_t high, int sticky, int exponent) {
    int drop = 10 + (int)(high >> 63);
    uint64_t kept = high >> drop, rest = high & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
    if (rest > half || (rest == half && (sticky || (kept & 1)))) kept++;
    exponent += drop + 52 + 1023;
    if (kept >> 53) kept >>= 1, exponent++;
    if (exponent < 1 || exponent > 2046) return 0;
    return (uint64_t)exponent << 52 | (kept & 0xfffffffffffffu);
}

/* Whether *value is now the nearest number. */
static int nearest(uint64_t mantissa, int exponent, double *value) {
    if (!mantissa || exponent < LEAST_POWER || exponent >= LEAST_POWER + POWERS) return 0;
    int shift = 0;
    for (; !(mantissa >> 56); shift += 8) mantissa <<= 8;
    for (; !(mantissa >> 63); shift++) mantissa <<= 1;
    const uint64_t *g = powers_of_ten[exponent - LEAST_POWER];
    uint64_t middle, low, high = times_high(mantissa, g[0], &middle), carry = times_high(mantissa, g[1], &low);
    middle += carry;
    high += middle < carry;
    /* The upper 64 of 192 bits: 2^128 of the product, whose second factor is 2^(127 - floor(log2 10^k)) times the power. */
    int place = 1 + floor_shift(exponent * 1741647, 19) - shift;
    uint64_t above = rounded(high, (middle | low) != 0, place);
    uint64_t under_low = low - mantissa, under_middle = middle - (low < mantissa), under_high = high - (middle < (low < mantissa));
    if (!above || above != rounded(under_high, (under_middle | under_low) != 0, place)) return 0;
    memcpy(value, &above, sizeof *value);
    return 1;
}
