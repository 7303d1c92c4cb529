/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parsers behind perf events. The first byte chooses: records of a ring of several events, the text of
 * /proc/kallsyms, or what follows -e.
 */
#include "sampler/perf/event.h"
#include "pprof/text/nearest.h"
#include "sampler/perf/record.h"
#include "sampler/symbol/kernel_symbols.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct record_source sources[] = {
    {.id = 1, .sample_type = RECORD_EVENT_TYPE},
    {.id = 2, .sample_type = RECORD_EVENT_TYPE | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER},
    {.id = 3, .sample_type = RECORD_EVENT_TYPE | RECORD_EVENT_EXTRA},
};
static const struct record_layouts layouts = {.regs_mask = 0x7, .sources = sources, .count = 3};
static volatile uint64_t sink;

/* Whatever a record points to is inside of it. */
static void touch(const void *at, size_t bytes, const uint8_t *record, size_t record_bytes)
{
	if (!bytes)
		return;
	if ((const uint8_t *)at < record || (const uint8_t *)at + bytes > record + record_bytes)
		abort();
	for (size_t i = 0; i < bytes; i++)
		sink += ((const uint8_t *)at)[i];
}

static void records(const uint8_t *data, size_t size)
{
	struct perf_event_header header;
	struct record r;

	while (size >= sizeof(header)) {
		memcpy(&header, data, sizeof(header));
		if (header.size < sizeof(header) || header.size > size)
			return;
		uint8_t *bytes = malloc(header.size);
		memcpy(bytes, data, header.size);
		if (record_parse_event(bytes, header.size, &layouts, &r) == 0) {
			touch(r.chain, r.chain_count * 8, bytes, header.size);
			touch(r.regs, r.regs_count * 8, bytes, header.size);
			touch(r.stack, r.stack_want, bytes, header.size);
			if (r.stack_bytes > r.stack_want || !memchr(r.path, 0, header.size))
				abort();
		}
		free(bytes);
		data += header.size;
		size -= header.size;
	}
}

static void symbols(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	struct kernel_symbols *s = kernel_symbols_parse(text, size);
	for (unsigned int shift = 0; s && shift < 64; shift++) {
		const char *name = kernel_symbols_find(s, UINT64_C(1) << shift);

		sink += name ? strlen(name) : 0;
	}
	kernel_symbols_free(s);
}

static void words(const uint8_t *data, size_t size)
{
	char text[512], error[128];
	struct event_spec spec;
	struct event_tracepoint name;
	struct nearest nearest;
	size_t length = size < sizeof(text) - 1 ? size : sizeof(text) - 1;

	memcpy(text, data, length);
	text[length] = '\0';
	if (event_split(text, &spec, error, sizeof(error)) == 0 && spec.hz && spec.period)
		abort();
	if (event_tracepoint_parse(text, &name) &&
	    (strchr(name.subsystem, '/') || strchr(name.name, '/') || !name.name[0]))
		abort();
	nearest_init(&nearest, text);
	nearest_offer(&nearest, "cpu-clock");
	nearest_offer(&nearest, text + length / 2);
	nearest_list(&nearest, error, sizeof(error));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (data[0] % 3 == 0)
		records(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		symbols(data + 1, size - 1);
	else
		words(data + 1, size - 1);
	return 0;
}
