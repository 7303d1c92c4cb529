/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/lifetimes_file.h"

#include "pprof/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct ages {
	double objects[LIFETIME_CLASSES];
};

static void print_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

static void print_classes(FILE *out, const char *name, const double objects[LIFETIME_CLASSES])
{
	fprintf(out, ",\"%s\":[", name);
	for (uint32_t i = 0; i < LIFETIME_CLASSES; i++)
		fprintf(out, "%s%.0f", i ? "," : "", objects[i]);
	fputc(']', out);
}

static void print_stack(
    FILE *out, const struct profile *profile, struct symbolizer *symbolizer, const struct heap_site *site)
{
	const uint32_t *locations;
	size_t depth = symbolizer_stack(symbolizer, site->stack, site->mapped, &locations), frames = 0;
	fputs("{\"stack\":[", out);
	for (size_t i = 0; i < depth; i++) {
		const struct profile_location location = profile_location(profile, locations[i]);
		for (size_t l = 0; l < location.line_count; l++) {
			fputs(frames++ ? "," : "", out);
			print_string(out, profile_function(profile, location.lines[l].function).name);
		}
		if (location.line_count == 0)
			fprintf(out, "%s\"0x%" PRIx64 "\"", frames++ ? "," : "", location.address);
	}
	fputc(']', out);
}

/* Ages of the live blocks by site. NULL: out of memory. */
static struct ages *read_ages(const struct snapshot *s)
{
	const struct heap *heap = s->process->heap;
	struct ages *ages = calloc((size_t)heap_site_count(heap) + 1, sizeof(*ages));
	for (size_t i = 0; ages && i < s->live_scan.count; i++) {
		const struct live_scan_block *block = &s->live_scan.blocks[i];
		uint32_t site = heap_site_of(heap, block->number, block->slot.seq);
		uint64_t age_ns = s->live_scan.now_ns > block->slot.sample.time_ns
		    ? s->live_scan.now_ns - block->slot.sample.time_ns
		    : 0;
		if (!block->live || site == HEAP_NO_SITE)
			continue;
		struct weight weight =
		    weight_of(block->slot.sample.size_bytes, block->slot.sample.period_bytes);
		ages[site].objects[lifetime_class(age_ns)] +=
		    (double)weight.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT);
	}
	return ages;
}

static void print_all(FILE *out, const struct snapshot *s, const struct profile *profile,
    struct symbolizer *symbolizer, const struct ages *ages)
{
	const struct heap *heap = s->process->heap;
	fputs("{\"classes\":[", out);
	for (uint32_t i = 0; i < LIFETIME_CLASSES; i++)
		fprintf(out, "%s\"%s\"", i ? "," : "", lifetime_class_name(i));
	fprintf(out, "],\"temporary_ns\":%" PRIu64 ",\"frees_missing\":%" PRIu64 "}\n",
	    lifetime_temporary_ns(), s->frees_lost + s->process->counters.frees_unknown);
	for (uint32_t i = 0; i < heap_site_count(heap); i++) {
		const struct heap_site *site = heap_site(heap, i);
		bool alive = false;
		for (uint32_t c = 0; c < LIFETIME_CLASSES; c++)
			alive = alive || ages[i].objects[c] > 0;
		if (!alive && !site->lifetime.samples)
			continue;
		print_stack(out, profile, symbolizer, site);
		print_classes(out, "freed", site->lifetime.objects);
		print_classes(out, "live", ages[i].objects);
		fprintf(out,
		    ",\"freed_samples\":%" PRIu64
		    ",\"freed_bytes\":%.0f,\"temporary\":%.0f,\"other_thread\":%.0f}\n",
		    site->lifetime.samples, site->lifetime.bytes, site->lifetime.temporary_objects,
		    site->lifetime.other_thread_objects);
	}
}

int lifetimes_file_write(
    const struct snapshot *s, const struct profile *profile, struct symbolizer *symbolizer)
{
	char *text = NULL;
	size_t bytes;
	struct ages *ages = read_ages(s);
	FILE *out = ages ? open_memstream(&text, &bytes) : NULL;
	if (!out) {
		free(ages);
		return -ENOMEM;
	}
	print_all(out, s, profile, symbolizer, ages);
	int error = fclose(out) == 0 ? 0 : -ENOMEM;
	if (!error)
		error = file_publish(
		    s->lifetimes_path, text, bytes, 0600, FILE_MKDIR | (s->sync ? FILE_FSYNC : 0));
	free(text);
	free(ages);
	return error;
}
