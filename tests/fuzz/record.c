/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes out of the rings and the stack buffers, hostile from the first byte: perf records one behind
 * the other, in memory of just their size, as far as parsing, unwinding, interning and the books; or, if
 * the first byte is odd, a stack buffer as a target fills it. The modules that the program run says it has
 * loaded come from the input, too.
 *
 * Input: a byte that chooses, a byte for the number of 8-byte words that go to the list of modules, these,
 * the rest.
 */
#include "proto/buffer.h"
#include "sampler/books/intake.h"
#include "sampler/books/program_run.h"

#include <stdlib.h>
#include <string.h>

enum { KEY = 0x10000, PLACES = 2 };

static struct region region;
static struct modules *store;
static struct memory_bound memory;
static struct intake intake;
static uint64_t regs_mask;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct region_options options = {.period_bytes = 4096, .dump_bytes = 32768, .live_max = 1024};

	regs_mask = regs_arch_native()->perf_mask;
	store = modules_new(16);
	if (!store || region_open(&region, 1, KEY, &options) != 0 ||
	    intake_init(&intake, store, &memory, regs_mask, true) != 0)
		abort();
	return 0;
}

/* As rings_drain finds them: each with the length that its header says, and nothing behind it. */
static void feed_records(const uint8_t *data, size_t size)
{
	struct perf_event_header header;
	struct record record;

	while (size >= sizeof(header)) {
		memcpy(&header, data, sizeof(header));
		if (header.size < sizeof(header) || header.size > size)
			break;
		uint8_t *bytes = malloc(header.size);
		memcpy(bytes, data, header.size);
		if (record_parse(bytes, header.size, regs_mask, &record) == 0) {
			if (record.stack_bytes > record.stack_want || (record.stack_want && !record.stack) ||
			    record.build_id_bytes > sizeof(record.build_id) ||
			    !memchr(record.path, 0, header.size))
				abort();
			intake_record(&intake, &record);
		}
		free(bytes);
		data += header.size;
		size -= header.size;
	}
}

static void feed_buffer(struct program_run *run, const uint8_t *data, size_t size)
{
	unsigned char *buffers = region.base + region.offsets.buffers;
	struct region_buffer *buffer = (void *)(buffers + BUFFER_BITMAPS_BYTES);

	memset(buffer, 0, buffer_class[0].bytes);
	memcpy(buffer, data, size < buffer_class[0].bytes ? size : buffer_class[0].bytes);
	atomic_store((_Atomic uint64_t *)(void *)buffers, 1);
	atomic_store(&buffer->word, (uint32_t)(BUFFER_FULL | buffer->place << 8));
	atomic_fetch_add(&region_header(&region)->copied, 1);
	intake_buffers(&intake, run, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct program_run run = {.region = &region, .life.state = RUN_READY};
	struct process *process;

	if (size < 2)
		return 0;
	bool buffer = data[0] & 1;
	size_t list_bytes = data[1] * 8u < size - 2 ? data[1] * 8u : size - 2;
	memset(region.base + region.offsets.modules, 0, 4096);
	memcpy(region.base + region.offsets.modules, data + 2, list_bytes);
	for (uint32_t i = 0; i < PLACES; i++) {
		region_place(&region, i)->parent = i;
		atomic_store(&region_place(&region, i)->state, PLACE_READY);
	}
	if (books_add_run(&intake.books, &run) != 0)
		abort();
	if (buffer)
		feed_buffer(&run, data + 2 + list_bytes, size - 2 - list_bytes);
	else
		feed_records(data + 2 + list_bytes, size - 2 - list_bytes);
	for (uint32_t i = 0; i < PLACES; i++)
		if ((process = run.places.at[i]))
			program_run_free_process(process);
	if (run.places.live)
		abort();
	books_remove_run(&run);
	return 0;
}
