/* SPDX-License-Identifier: Apache-2.0 */
/* A profile need not become a file: what is written into a sink is a whole profile, with the rows of its
 * kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/codec/decode.h"
#include "pprof/codec/gzip.h"
#include "sampler/symbol/symbol.h"
#include "sampler/write/profile_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_MAX = 1 << 20, VALUE = 4711 };

struct memory_sink {
	struct sink base;
	uint8_t *raw;
	size_t bytes;
	unsigned int calls;
	char name[32];
};

static struct memory_sink memory;

static int keep(const struct sink *sink, const char *name, const void *data, size_t bytes)
{
	assert_ptr_equal(sink, &memory.base);
	memory.calls++;
	snprintf(memory.name, sizeof(memory.name), "%s", name);
	free(memory.raw);
	return gzip_decode(data, bytes, MEMORY_MAX, &memory.raw, &memory.bytes, NULL);
}

static int refuse(const struct sink *sink, const char *name, const void *data, size_t bytes)
{
	(void)sink, (void)name, (void)data, (void)bytes;
	memory.calls++;
	return -EPIPE;
}

static uint32_t stack;

static void describe(struct profile *profile, const struct snapshot *snapshot, const struct profile_job *job)
{
	(void)job;
	profile_add_sample_type(profile, "things", "count");
	profile_job_comment(profile, "snapshot: %s", snapshot->cause);
}

static void mark_stacks(const struct profile_job *job, bool *used)
{
	(void)job;
	used[stack] = true;
}

static int fill_rows(struct profile *profile, struct symbolizer *symbolizer, const struct snapshot *snapshot,
    const struct profile_job *job)
{
	const uint32_t *locations;
	const int64_t value = VALUE;
	size_t depth = symbolizer_stack(symbolizer, stack, false, &locations);

	(void)snapshot, (void)job;
	return profile_add_sample(profile, locations, depth, &value, NULL, 0);
}

static const struct profile_job_kind things = {
    .describe = describe, .mark_stacks = mark_stacks, .fill_rows = fill_rows};

static void begin(struct snapshot *snapshot, struct target *target, struct modules **modules)
{
	*modules = modules_new(4);
	assert_true(target_init(target, 0, 0));
	target->maps = maps_new(*modules, 0, false);
	stack = stacks_intern(target->stacks, NULL, 0, STACK_NONE, target->maps);
	assert_true(stack != UINT32_MAX);
	snprintf(target->title, sizeof(target->title), "title");
	*snapshot = (struct snapshot){
	    .target = target, .sink = &memory.base, .cause = "a cause", .identity = "session=1-2 start=3"};
	memory = (struct memory_sink){.base = {keep}};
}

static void a_profile_goes_into_memory(void **state)
{
	struct modules *modules;
	struct target target;
	struct snapshot snapshot;
	struct profile *profile;
	const struct profile_job job = {&things, "a name"}, none = {&things, NULL};
	const struct profile_job *const jobs[] = {&none, &job};

	(void)state;
	begin(&snapshot, &target, &modules);
	void *shared = NULL;
	assert_int_equal(profile_jobs_write(&snapshot, jobs, 2, &shared), 0);
	symbols_free(shared);
	assert_int_equal(memory.calls, 1);
	assert_string_equal(memory.name, "a name");
	assert_int_equal(decode_profile(memory.raw, memory.bytes, MEMORY_MAX, &profile), 0);
	assert_int_equal(profile_sample_count(profile), 1);
	assert_int_equal(profile_sample(profile, 0).values[0], VALUE);
	assert_int_equal(profile_comment_count(profile), 4);
	assert_string_equal(profile_comment(profile, 1), "pid=0 comm=title host=");
	assert_string_equal(profile_comment(profile, 2), "session=1-2 start=3");
	assert_string_equal(profile_comment(profile, 3), "snapshot: a cause");
	profile_free(profile);
	free(memory.raw);
	target_fini(&target);
	modules_free(modules);
}

static void the_first_error_is_told_and_all_are_tried(void **state)
{
	struct modules *modules;
	struct target target;
	struct snapshot snapshot;
	const struct profile_job job = {&things, "a name"};
	const struct profile_job *const jobs[] = {&job, &job};

	(void)state;
	begin(&snapshot, &target, &modules);
	memory.base.publish = refuse;
	void *shared = NULL;
	assert_int_equal(profile_jobs_write(&snapshot, jobs, 2, &shared), -EPIPE);
	symbols_free(shared);
	assert_int_equal(memory.calls, 2);
	target_fini(&target);
	modules_free(modules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_profile_goes_into_memory),
	    cmocka_unit_test(the_first_error_is_told_and_all_are_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
