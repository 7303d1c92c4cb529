/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an address costs at its first sight, apart from what its file costs at its first.
 */
#ifndef BENCH_UNWIND_COLD_H
#define BENCH_UNWIND_COLD_H

#include "sampler/unwind/unwind.h"

#include <stddef.h>

struct cold;

struct cold_cost {
	size_t files, addresses;    /* the first of each file is in the file's cost */
	double file_us, address_us; /* CPU time; the mean */
};

struct cold *cold_new(void);
void cold_free(struct cold *cold);

/* Remembers the addresses of a stack, once each, in their order. The modules must outlive COLD. */
void cold_add(struct cold *cold, const struct unwind_frame *frames, size_t count);

/* Opens the files anew and asks for the rule of each address. */
void cold_measure(const struct cold *cold, struct cold_cost *cost);

#endif
