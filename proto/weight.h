/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of sampling, shared by the hook (which has no libm) and the sampler so that both get the
 * same bits.
 *
 * Bytes are counted down over an interval drawn from the exponential distribution with mean T (the period),
 * so the samples are a Poisson process over allocated bytes and a block of S bytes is sampled with
 * probability
 *
 *     p = 1 - exp(-S/T)
 *
 * Each sample then stands for 1/p objects and S/p bytes: unbiased for every size, at any mixture of periods,
 * as long as each sample keeps the period its interval was drawn with (Horvitz and Thompson 1952; jemalloc,
 * Go and tcmalloc use the same factor). Variance of one sample's contribution, estimated from the sample
 * itself: w^2 (1 - p), w = S/p for bytes and 1/p for objects.
 *
 * A block of 0 bytes counts as a byte in the interval, so it is sampled with the probability of a block of 1
 * byte; it stands for 1/p objects and for 0 bytes.
 *
 * A period of 1 means "every allocation": p is 1 there by definition, whatever the size.
 *
 * Build with -ffp-contract=off: with a fused multiply-add on one side only, the two sums would differ.
 */
#ifndef PROTO_WEIGHT_H
#define PROTO_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Fixed point of the shared tallies: wide enough for the whole life of a process, modulo 2^64, fine enough
 * that a small period (weight of 2.54 bytes at size 1, period 2) is not rounded into a bias. */
enum {
	WEIGHT_BYTES_SHIFT = 8,
	WEIGHT_OBJECTS_SHIFT = 16,
};

/* The variances of live blocks are kept in two sums, since one of 64 bits has no room for both a byte squared
 * and a period of 1 GiB squared, 2^60. A sample's own variance says which sum it is in, so it is subtracted
 * where it was added. 4 M small ones (REGION_SEGMENTS) have less than 2^62; the large ones of a whole address
 * space (WEIGHT_SIZE_MAX times WEIGHT_PERIOD_MAX) have 2^59 units. */
#define WEIGHT_LARGE_VARIANCE 0x1p40
#define WEIGHT_LARGE_UNIT     0x1p28 /* bytes squared */

/* No size or period is larger: no address space is. Keeps every sum below 2^64. */
#define WEIGHT_SIZE_MAX   (1ull << 47)
#define WEIGHT_PERIOD_MAX (1ull << 40)

struct weight {
	uint64_t bytes_q8;
	uint64_t objects_q16;
	/* Not rounded: of blocks above the period (1 - p) / p^2 is a small fraction, and there are many of
	 * them. */
	double bytes_variance, objects_variance;
};

static inline double weight_from_bits(uint64_t bits)
{
	double value;

	__builtin_memcpy(&value, &bits, sizeof(value));
	return value;
}

/* 1 - exp(-x) for x > 0, to about 1 ulp; exact limit 1 above 40. */
static inline double weight_probability(double x)
{
	if (x > 40)
		return 1;
	/* x = k ln 2 + r, |r| <= ln 2 / 2; for small x k is 0 and the series has no cancellation. */
	const double ln2 = 0.693147180559945309417;
	int k = x < 0.34 ? 0 : (int)(x / ln2 + 0.5);
	double r = x - k * ln2;
	/* 1 - exp(-r) = r - r^2/2! + r^3/3! - ... (Horner, 15 terms: remainder < 1e-19 for |r| < 0.35) */
	double sum = 1;
	for (int n = 15; n >= 2; n--)
		sum = 1 - r / n * sum;
	double one_minus = r * sum;
	if (k == 0)
		return one_minus;
	double scale = weight_from_bits((uint64_t)(1023 - k) << 52); /* 2^-k */
	return 1 - scale * (1 - one_minus);
}

/* -ln(u) for 0 < u <= 1. */
static inline double weight_minus_log(double u)
{
	uint64_t bits;

	__builtin_memcpy(&bits, &u, sizeof(bits));
	int exponent = (int)(bits >> 52) - 1023;
	double m = weight_from_bits((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull); /* [1, 2) */
	if (m > 1.41421356237309504880) {
		m /= 2;
		exponent++;
	}
	/* ln m = 2 artanh(s), s = (m-1)/(m+1), |s| < 0.1716: s^21/21 < 1e-17 */
	double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
	for (int n = 19; n >= 1; n -= 2)
		sum = sum * s2 + 1.0 / n;
	return -(exponent * 0.693147180559945309417 + 2 * s * sum);
}

/* An interval in whole bytes; random: 64 uniform bits. floor() keeps P(interval < S) = 1 - exp(-S/T) exact
 * for every whole S. The largest draw is 36.7 T, 53 bits' worth. */
static inline uint64_t weight_interval(uint64_t random, uint64_t period_bytes)
{
	if (period_bytes <= 1)
		return 0;
	double u = (double)((random >> 11) + 1) * 0x1p-53;
	return (uint64_t)(weight_minus_log(u) * (double)period_bytes);
}

/* The weight of one sample of which `left_bytes` are left: a mapping that was unmapped in part. It still
 * stands for the same number of objects, and for that share of its bytes. Out-of-range input (a hostile
 * target's) is clamped, never trapped. */
static inline struct weight weight_of_part(uint64_t size_bytes, uint64_t left_bytes, uint64_t period_bytes)
{
	uint64_t size = size_bytes < WEIGHT_SIZE_MAX ? size_bytes : WEIGHT_SIZE_MAX;
	uint64_t left = left_bytes < size ? left_bytes : size;

	if (period_bytes <= 1)
		return (struct weight){left << WEIGHT_BYTES_SHIFT, 1ull << WEIGHT_OBJECTS_SHIFT, 0, 0};
	uint64_t period = period_bytes > WEIGHT_PERIOD_MAX ? WEIGHT_PERIOD_MAX : period_bytes;
	double p = weight_probability((double)(size + (size == 0)) / (double)period);
	double bytes = (double)left / p;
	return (struct weight){
	    .bytes_q8 = (uint64_t)(bytes * (1 << WEIGHT_BYTES_SHIFT) + 0.5),
	    .objects_q16 = (uint64_t)(1 / p * (1 << WEIGHT_OBJECTS_SHIFT) + 0.5),
	    .bytes_variance = bytes * bytes * (1 - p),
	    .objects_variance = (1 - p) / (p * p),
	};
}

/* The weight of one whole sample. */
static inline struct weight weight_of(uint64_t size_bytes, uint64_t period_bytes)
{
	return weight_of_part(size_bytes, UINT64_MAX, period_bytes);
}

static inline bool weight_is_large(double bytes_variance)
{
	return bytes_variance > WEIGHT_LARGE_VARIANCE;
}

/* For the shared sum that it belongs to, rounded. The same input gives the same number, so what was added can
 * be subtracted exactly. */
static inline uint64_t weight_fixed_bytes(double bytes_variance)
{
	double units = weight_is_large(bytes_variance) ? bytes_variance / WEIGHT_LARGE_UNIT : bytes_variance;

	return units < 0x1p62 ? (uint64_t)(units + 0.5) : 1ull << 62;
}

#endif
