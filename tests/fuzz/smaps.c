/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /proc/PID/smaps as a kernel would never write it, in pieces, with threads' descriptors and
 * addresses of blocks anywhere: whatever the bytes are, the parts add up to the whole.
 *
 * Input: a byte for the size of the pieces, a byte for the number of addresses, these (8 bytes each, used for
 * both), the text.
 */
#include "sampler/intake/resident.h"

#include <stdlib.h>
#include <string.h>

enum { ADDRESSES = 16 };

struct input {
	uint64_t addresses[ADDRESSES];
	size_t count;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void each_block(void *context, struct resident_reader *reader)
{
	const struct input *input = context;

	for (size_t i = 0; i < input->count; i++)
		resident_block(
		    reader, input->addresses[i] ^ i << 12, input->addresses[i] >> i, 1e5 * (double)i);
}

static void check_sum(const struct resident *resident)
{
	uint64_t sum = 0;

	for (int i = 0; i < RESIDENT_KINDS; i++)
		sum += resident->bytes[i];
	if (sum != resident->total_bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct resident_reader reader;
	struct resident resident;
	struct input input = {0};

	if (size < 2)
		return 0;
	size_t piece = data[0] + 1u;
	input.count = data[1] % (ADDRESSES + 1);
	data += 2, size -= 2;
	if (input.count * sizeof(uint64_t) > size)
		return 0;
	memcpy(input.addresses, data, input.count * sizeof(uint64_t));
	data += input.count * sizeof(uint64_t), size -= input.count * sizeof(uint64_t);
	qsort(input.addresses, input.count, sizeof(uint64_t), by_value);
	const struct resident_facts facts = {
	    .library = "libheaptap.so",
	    .region_ino = 9,
	    .own_start = 0x1000,
	    .own_end = 0x2000,
	    .descriptors = input.addresses,
	    .descriptor_count = input.count / 2,
	    .each_block = each_block,
	    .context = &input,
	};
	resident_begin(&reader, &facts, &resident);
	for (size_t at = 0; at < size; at += piece) {
		/* of just that size, so that a byte too many is seen */
		size_t bytes = size - at < piece ? size - at : piece;
		char *copy = malloc(bytes);

		memcpy(copy, data + at, bytes);
		resident_feed(&reader, copy, bytes);
		free(copy);
	}
	resident_end(&reader, 0);
	check_sum(&resident);

	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	if (resident_parse_status(&resident, text))
		check_sum(&resident);
	free(text);
	return 0;
}
