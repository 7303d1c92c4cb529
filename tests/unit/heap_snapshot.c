/* SPDX-License-Identifier: Apache-2.0 */
/* What a heap profile says of the samples behind it: of a forked child, and of an interval. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/codec/decode.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "sampler/books/program_run.h"
#include "sampler/symbol/symbol.h"
#include "sampler/write/heap_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/region_fixture.h"

enum { MEMORY_MAX = 1 << 20, PARENT_PID = 100, PID = 103, PLACE = 3 };

/* A child whose books the test keeps, with the slots of one segment. */
struct scene {
	struct sink sink; /* first */
	struct modules *modules;
	struct program_run *run;
	struct process process;
	struct profile *profile; /* that was written last */
};

static int keep(const struct sink *sink, const char *name, const void *data, size_t bytes)
{
	struct scene *s = (struct scene *)(uintptr_t)sink;
	uint8_t *raw;
	size_t raw_bytes;

	(void)name;
	profile_free(s->profile);
	assert_int_equal(gzip_decode(data, bytes, MEMORY_MAX, &raw, &raw_bytes, NULL), 0);
	assert_int_equal(decode_profile(raw, raw_bytes, MEMORY_MAX, &s->profile), 0);
	free(raw);
	return 0;
}

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct region *region = malloc(sizeof(*region));

	*state = s;
	s->sink.publish = keep;
	s->modules = modules_new(4);
	fixture_open(region, REGION_SEGMENT_SLOTS);
	fixture_own(region, 0, PLACE);
	s->run = program_run_new(region, 1);
	s->process.run = s->run;
	s->process.place = PLACE;
	s->process.ancestors[0] = PARENT_PID;
	s->process.ancestor_count = 1;
	assert_true(target_init(&s->process.target, PID, 0));
	s->process.target.maps = maps_new(s->modules, 0, false);
	s->process.heap = heap_new(region, &(const struct heap_options){.temporary_ns = 1, .deltas = true});
	return 0;
}

static int close_scene(void **state)
{
	struct scene *s = *state;

	profile_free(s->profile);
	heap_free(s->process.heap);
	target_fini(&s->process.target);
	program_run_free(s->run);
	modules_free(s->modules);
	free(s);
	return 0;
}

/* A block of 64 bytes in a slot; origin: as in struct heap_key; `lost`: its stack has not arrived. */
static void block(struct scene *s, uint32_t slot, uint32_t origin, bool lost)
{
	const struct heap_sample sample = {.slot = slot,
	    .seq = slot + 1,
	    .stack = stacks_intern(s->process.target.stacks, NULL, 0, STACK_NONE, s->process.target.maps),
	    .size_bytes = 64,
	    .period_bytes = 1,
	    .origin = origin};

	fixture_live(s->run->region, slot,
	    &(const struct fixture_block){.seq = slot + 1,
	        .size_bytes = 64,
	        .time_ns = 5,
	        .flags = origin == HEAP_ORIGIN_SELF ? 0 : SLOT_INHERITED});
	if (!lost)
		assert_int_equal(origin == HEAP_ORIGIN_SELF ? heap_add(s->process.heap, &sample)
		                                            : heap_inherit(s->process.heap, &sample),
		    0);
}

static void write_profile(struct scene *s, enum heap_view_kind kind)
{
	struct heap_snapshot *snapshot = heap_snapshot_new();
	struct live_scan scan;
	void *shared = NULL;

	assert_non_null(snapshot);
	snapshot->base.target = &s->process.target;
	snapshot->base.sink = &s->sink;
	snapshot->process = &s->process;
	snapshot->period_bytes = 1;
	strcpy(snapshot->base.cause, "0002, every 1 s");
	assert_int_equal(live_scan_take(&scan, s->run->region, PLACE), 0);
	assert_int_equal(heap_view_make(&snapshot->view, HEAP_VIEW_LIVE, s->process.heap, &scan), 0);
	if (kind == HEAP_VIEW_DELTA) {
		assert_int_equal(
		    heap_view_make(&snapshot->delta, HEAP_VIEW_DELTA, s->process.heap, &scan), 0);
		snapshot->delta_path = strdup("delta"); /* written after the snapshot itself */
		snapshot->delta_ns = 1;
	}
	live_scan_fini(&scan);
	assert_int_equal(snapshot->base.item.write(&snapshot->base.item, &shared), 0);
	symbols_free(shared);
	snapshot->base.item.discard(&snapshot->base.item);
}

static const char *comment(const struct scene *s, const char *start)
{
	for (size_t i = 0; i < profile_comment_count(s->profile); i++)
		if (strncmp(profile_comment(s->profile, i), start, strlen(start)) == 0)
			return profile_comment(s->profile, i);
	return "";
}

/* The first number label of that name in a sample with so much in use. */
static int64_t label_of(const struct scene *s, int64_t inuse_bytes, const char *key)
{
	for (size_t i = 0; i < profile_sample_count(s->profile); i++)
		for (size_t l = 0; l < profile_sample(s->profile, i).label_count; l++) {
			struct profile_label label = profile_sample_label(s->profile, i, l);

			if (profile_sample(s->profile, i).values[3] == inuse_bytes &&
			    strcmp(label.key, key) == 0)
				return label.str ? 1 : label.num;
		}
	return 0;
}

static void a_child_says_whose_blocks_it_has(void **state)
{
	struct scene *s = *state;

	block(s, 0, HEAP_ORIGIN_SELF, false);
	block(s, 1, 1, false);
	block(s, 2, 1, false);
	fixture_count(s->run->region, PLACE, 1, 64);
	write_profile(s, HEAP_VIEW_LIVE);
	assert_int_equal(profile_sample_count(s->profile), 2);
	assert_int_equal(label_of(s, 128, "inherited"), 1);
	assert_int_equal(label_of(s, 128, ORIGIN_LABEL_FROM), PARENT_PID);
	assert_int_equal(label_of(s, 64, ORIGIN_LABEL_FROM), 0);
	assert_string_equal(comment(s, "samples: "), "samples: 1 taken, 0 lost stacks");
	assert_string_equal(
	    comment(s, "inherited"), "inherited by fork: 128 +- 0 of these bytes, sampled in pid 100");
}

/* There is a row "[lost stack]", although the process has lost none of its own. */
static void inherited_blocks_without_a_stack_are_counted(void **state)
{
	struct scene *s = *state;

	block(s, 0, HEAP_ORIGIN_SELF, false);
	block(s, 1, 1, true);
	block(s, 2, 1, true);
	fixture_count(s->run->region, PLACE, 1, 64);
	write_profile(s, HEAP_VIEW_LIVE);
	assert_string_equal(
	    comment(s, "samples: "), "samples: 1 taken, 0 lost stacks, inherited without a stack 2");
	assert_int_equal(label_of(s, 128, ORIGIN_LABEL_FROM), PARENT_PID);
	/* Of two ancestors nobody knows which one. */
	s->process.ancestors[1] = 102;
	s->process.ancestor_count = 2;
	write_profile(s, HEAP_VIEW_LIVE);
	assert_int_equal(label_of(s, 128, "inherited"), 1);
	assert_int_equal(label_of(s, 128, ORIGIN_LABEL_FROM), 0);
	assert_string_equal(
	    comment(s, "inherited"), "inherited by fork: 128 +- 0 of these bytes, sampled in pid 102 or 100");
}

/* Not what the process has taken since its start. */
static void a_delta_counts_its_own_samples(void **state)
{
	struct scene *s = *state;

	block(s, 0, HEAP_ORIGIN_SELF, false);
	block(s, 1, HEAP_ORIGIN_SELF, false);
	heap_mark(
	    s->process.heap, (struct tally){2, 128 << WEIGHT_BYTES_SHIFT, 2 << WEIGHT_OBJECTS_SHIFT}, 4);
	block(s, 2, HEAP_ORIGIN_SELF, false);
	fixture_count(s->run->region, PLACE, 3, 192);
	write_profile(s, HEAP_VIEW_LIVE);
	assert_string_equal(comment(s, "samples: "), "samples: 3 taken, 0 lost stacks");
	write_profile(s, HEAP_VIEW_DELTA);
	assert_string_equal(comment(s, "samples: "), "samples: 1 taken, 0 lost stacks, of this interval");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(a_child_says_whose_blocks_it_has),
	    TEST(inherited_blocks_without_a_stack_are_counted),
	    TEST(a_delta_counts_its_own_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
