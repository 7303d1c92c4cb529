/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/lifetimes_file.h"

#include "pprof/text/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void print_classes(struct json *json, const char *name, const double objects[LIFETIME_CLASSES])
{
	json_array(json, name);
	for (uint32_t i = 0; i < LIFETIME_CLASSES; i++)
		json_number(json, NULL, objects[i], 0);
	json_end(json);
}

static void print_stack(struct json *json, const struct profile *profile, struct symbolizer *symbolizer,
    const struct heap_site *site)
{
	const uint32_t *locations;
	size_t depth = symbolizer_stack(symbolizer, site->key.stack, site->key.mapped, &locations);

	json_array(json, "stack");
	for (size_t i = 0; i < depth; i++) {
		const struct profile_location location = profile_location(profile, locations[i]);
		char address[32];

		for (size_t l = 0; l < location.line_count; l++)
			json_text(json, NULL, profile_function(profile, location.lines[l].function).name);
		snprintf(address, sizeof(address), "0x%" PRIx64, location.address);
		if (location.line_count == 0)
			json_text(json, NULL, address);
	}
	json_end(json);
}

static void add_ages(struct lifetimes_site *sites, const struct heap *heap, const struct live_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		const struct live_scan_block *block = &scan->blocks[i];
		uint32_t site = heap_site_of_slot(heap, block->number, &block->slot);
		uint64_t age_ns =
		    scan->now_ns > block->slot.sample.time_ns ? scan->now_ns - block->slot.sample.time_ns : 0;

		if (!block->live || site == HEAP_NO_SITE)
			continue;
		struct weight weight =
		    weight_of(block->slot.sample.size_bytes, block->slot.sample.period_bytes);
		sites[site].live_objects[lifetime_class(age_ns)] +=
		    (double)weight.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT);
	}
}

int lifetimes_file_take(
    struct lifetimes_taken *taken, const struct heap *heap, const struct live_scan *live_scan)
{
	const uint32_t count = heap_site_count(heap);
	struct lifetimes_site *sites = calloc((size_t)count + 1, sizeof(*sites));

	if (!sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sites[i].freed = *heap_site_lifetime(heap, i);
	add_ages(sites, heap, live_scan);
	taken->sites = sites;
	taken->site_count = count;
	return 0;
}

void lifetimes_file_release(struct lifetimes_taken *taken)
{
	free(taken->sites);
	taken->sites = NULL;
	taken->site_count = 0;
}

static void print_site(struct json *json, const struct lifetimes_input *input, uint32_t site)
{
	const struct lifetimes_site *taken = &input->taken->sites[site];
	const struct lifetime *lifetime = &taken->freed;

	json_object(json, NULL);
	print_stack(json, input->profile, input->symbolizer, heap_site(input->heap, site));
	print_classes(json, "freed", lifetime->objects);
	print_classes(json, "live", taken->live_objects);
	json_integer(json, "freed_samples", (int64_t)lifetime->samples);
	json_number(json, "freed_bytes", lifetime->bytes, 0);
	json_number(json, "temporary", lifetime->temporary_objects, 0);
	json_number(json, "other_thread", lifetime->other_thread_objects, 0);
	json_end(json);
}

static void print_all(FILE *out, const struct lifetimes_input *input)
{
	const struct lifetimes_taken *taken = input->taken;
	struct json json = {.out = out, .lines = true};

	json_object(&json, NULL);
	json_array(&json, "classes");
	for (uint32_t i = 0; i < LIFETIME_CLASSES; i++)
		json_text(&json, NULL, lifetime_class_name(i));
	json_end(&json);
	json_integer(&json, "temporary_ns", (int64_t)heap_options(input->heap)->temporary_ns);
	json_integer(&json, "frees_missing", (int64_t)taken->frees_missing);
	json_end(&json);
	for (uint32_t i = 0; i < taken->site_count; i++) {
		bool alive = false;

		for (uint32_t c = 0; c < LIFETIME_CLASSES; c++)
			alive = alive || taken->sites[i].live_objects[c] > 0;
		if (alive || taken->sites[i].freed.samples)
			print_site(&json, input, i);
	}
}

char *lifetimes_file_print(const struct lifetimes_input *input, size_t *bytes)
{
	char *text = NULL;
	FILE *out = input->taken->sites ? open_memstream(&text, bytes) : NULL;

	if (out) {
		print_all(out, input);
		if (fclose(out) != 0) {
			free(text);
			text = NULL;
		}
	}
	return text;
}
