/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a target has mapped, of any bytes: its symbol tables are read in bounds, and names end. */
#include "sampler/inject/program_symbols.h"

#include <stdlib.h>
#include <string.h>

struct input {
	const uint8_t *data;
	size_t size;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_input(void *context, void *to, size_t bytes, uint64_t offset)
{
	const struct input *input = context;

	if (offset > input->size || bytes > input->size - offset)
		return -1;
	memcpy(to, input->data + offset, bytes);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct program_symbols symbols;

	(void)program_symbols_read(&symbols, read_input, &input);
	if (!memchr(symbols.allocator, '\0', sizeof(symbols.allocator)) ||
	    !memchr(symbols.debug_link, '\0', sizeof(symbols.debug_link)))
		abort();
	return 0;
}
