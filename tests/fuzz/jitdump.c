/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jitdump file that a target has written: no byte outside is read, it ends, and each name is a text.
 *
 * Input: a byte that says how far apart the addresses are that are asked for, the file.
 */
#include "sampler/symbol/jitdump.h"

#include <stdlib.h>
#include <string.h>

enum { START = 0x1000, ADDRS = 64 };

struct bytes {
	const uint8_t *at;
	size_t count;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_bytes(void *context, void *to, size_t bytes, uint64_t offset)
{
	const struct bytes *b = context;

	if (offset > b->count || bytes > b->count - offset)
		abort();
	memcpy(to, b->at + offset, bytes);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t addrs[ADDRS];

	if (size < 1)
		return 0;
	for (size_t i = 0; i < ADDRS; i++)
		addrs[i] = START + i * (data[0] + 1u);
	/* of just that size, so that a byte too many is seen */
	struct bytes file = {malloc(size - 1), size - 1};
	memcpy((void *)file.at, data + 1, size - 1);
	struct jitdump *jd = jitdump_new(addrs, ADDRS);
	const struct jitdump_source source = {read_bytes, &file, file.count};
	(void)jitdump_take(jd, &source);
	for (size_t i = 0; i < ADDRS; i++) {
		const struct jitdump_name *name = jitdump_find(jd, addrs[i]);

		if (name && (!*name->function || (name->file && !*name->file)))
			abort();
	}
	jitdump_free(jd);
	free((void *)file.at);
	return 0;
}
