/* SPDX-License-Identifier: Apache-2.0 */
/* What came since an earlier profile: sums must come out the same. */
#include "pprof/analysis/since.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TYPES = 4, FUNCTIONS = 64 };

static struct profile *make(void)
{
	static const char *const types[TYPES][2] = {{"alloc_objects", "count"}, {"alloc_space", "bytes"},
	    {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	struct profile *p = profile_new();

	for (int t = 0; t < TYPES; t++)
		profile_add_sample_type(p, types[t][0], types[t][1]);
	profile_set_period(p, "space", "bytes", 512);
	profile_set_time(p, 1000, 0);
	return p;
}

/* A stack of `depth` functions from number `first` on, in a file that lies at `base`. */
static void put(
    struct profile *p, uint64_t base, unsigned int first, size_t depth, int64_t count, const char *age)
{
	const struct profile_mapping mapping = {
	    .start = base, .limit = base + 0x10000, .filename = "/bin/x", .build_id = "abcd"};
	uint32_t stack[4096], map = profile_add_mapping(p, &mapping);
	const int64_t values[TYPES] = {count, count * 64, count / 2, count / 2 * 64};
	const struct profile_label labels[] = {
	    {.key = "bytes", .num = count, .unit = "bytes"}, {.key = "age", .str = age}};
	char name[32];

	for (size_t i = 0; i < depth; i++) {
		unsigned int number = (unsigned int)((first + i) % FUNCTIONS);

		snprintf(name, sizeof(name), "f%u", number);
		const struct profile_function function = {
		    .name = name, .system_name = name, .filename = "/x.c"};
		const struct profile_line line = {.function = profile_add_function(p, &function), .line = 1};
		const struct profile_location location = {
		    .mapping = map, .address = base + number * 16, .lines = &line, .line_count = 1};

		stack[i] = profile_add_location(p, &location);
	}
	assert_int_equal(profile_add_sample(p, stack, depth, values, labels, age ? 2 : 1), 0);
}

static int64_t sum(const struct profile *p, const int64_t *values, size_t type)
{
	int64_t total = 0;

	for (size_t i = 0; i < profile_sample_count(p); i++)
		total += values[i * TYPES + type];
	return total;
}

static const struct origin live = {.ours = true, .kind = ORIGIN_LIVE};

static void differences_are_by_stack_wherever_it_lies(void **state)
{
	struct profile *before = make(), *after = make();
	struct since since = {0};
	int64_t fallen, *values;

	put(before, 0x400000, 1, 3, 100, NULL);
	put(before, 0x400000, 2, 3, 10, NULL);
	/* The file lies elsewhere, the blocks have ages, one stack is new. */
	put(after, 0x900000, 1, 3, 70, "1s");
	put(after, 0x900000, 1, 3, 80, "10s");
	put(after, 0x900000, 2, 3, 10, NULL);
	put(after, 0x900000, 3, 3, 7, NULL);
	since.first = before;
	values = since_values(&since, after, &live, &fallen);
	assert_int_equal(sum(after, values, 0), 57);
	assert_int_equal(sum(after, values, 1), 57 * 64);
	assert_int_equal(sum(after, values, 2), 35 + 40 + 5 + 3);
	assert_int_equal(fallen, 0);
	free(values);
	/* A stack that is not there any more is said, and no value is negative. */
	since.first = after;
	values = since_values(&since, before, &live, &fallen);
	assert_int_equal(sum(before, values, 0), 0);
	assert_int_equal(fallen, (50 + 7) * 65);
	free(values);
	/* What was accepted is not known: nothing is claimed to be new. */
	since.unknown = true;
	values = since_values(&since, after, &live, &fallen);
	assert_int_equal(sum(after, values, 1), 0);
	assert_int_equal(sum(after, values, 3), (35 + 40 + 5 + 3) * 64);
	free(values);
	profile_free(before);
	profile_free(after);
}

/* A sample without names: all that the daemon knows of what was allocated before its restart. */
static void put_nameless(struct profile *p, int64_t count)
{
	const struct profile_mapping mapping = {
	    .start = 0x1000, .limit = 0x2000, .filename = "[heaptap]", .build_id = ""};
	const struct profile_function function = {
	    .name = "[lost stack]", .system_name = "[lost stack]", .filename = ""};
	const struct profile_line line = {.function = profile_add_function(p, &function)};
	const struct profile_location location = {
	    .mapping = profile_add_mapping(p, &mapping), .address = 0x1001, .lines = &line, .line_count = 1};
	const int64_t values[TYPES] = {count, count * 64, 0, 0};
	uint32_t stack = profile_add_location(p, &location);

	assert_int_equal(profile_add_sample(p, &stack, 1, values, NULL, 0), 0);
}

/* The sum that is sent is what was allocated since, even if the stacks of what was sent before are lost
 * now. */
static void what_lost_its_stack_is_not_new(void **state)
{
	struct profile *before = make(), *after = make();
	struct since since = {0};
	int64_t fallen, *values;

	put(before, 0x400000, 1, 3, 1000, NULL);
	put(before, 0x400000, 2, 3, 10, NULL);
	put(after, 0x400000, 1, 3, 500, NULL);
	put(after, 0x400000, 3, 3, 7, NULL);
	put_nameless(after, 1010);
	since.first = before;
	values = since_values(&since, after, &live, &fallen);
	assert_int_equal(fallen, 510 * 65);
	assert_int_equal(sum(after, values, 0), 507);
	assert_int_equal(sum(after, values, 1), 507 * 64);
	/* The stack that is new has kept what is its own. */
	assert_int_equal(values[1 * TYPES], 7);
	assert_int_equal(values[2 * TYPES], 500);
	free(values);
	profile_free(before);
	profile_free(after);
	/* Without a nameless one, it is taken from what the accepted profile did not have. */
	before = make();
	after = make();
	put(before, 0x400000, 1, 3, 100, NULL);
	put(before, 0x400000, 2, 3, 10, NULL);
	put(after, 0x400000, 2, 3, 20, NULL);
	put(after, 0x400000, 4, 3, 130, NULL);
	since.first = before;
	values = since_values(&since, after, &live, &fallen);
	assert_int_equal(values[0 * TYPES], 10);
	assert_int_equal(values[1 * TYPES], 30);
	free(values);
	profile_free(before);
	profile_free(after);
}

/* A sample with a label of its own in a stack that is known. */
static void put_labelled(struct profile *p, unsigned int number, int64_t count, const char *value)
{
	const struct profile_mapping mapping = {
	    .start = 0x400000, .limit = 0x410000, .filename = "/bin/x", .build_id = "abcd"};
	const struct profile_location location = {
	    .mapping = profile_add_mapping(p, &mapping), .address = 0x400000 + number * 16};
	const struct profile_label label = {.key = "lifetime", .str = value};
	const int64_t values[TYPES] = {count, count * 64, 0, 0};
	uint32_t stack = profile_add_location(p, &location);

	assert_int_equal(profile_add_sample(p, &stack, 1, values, &label, value ? 1 : 0), 0);
}

/* What moves to another label of its stack has not come, and other stacks do not pay for it. */
static void labels_may_change_within_a_stack(void **state)
{
	struct profile *before = make(), *after = make();
	struct since since = {.first = before};
	int64_t fallen, *values;

	(void)state;
	put_labelled(before, 1, 100, NULL);
	put_labelled(after, 1, 40, NULL);
	put_labelled(after, 1, 70, "temporary");
	put_labelled(after, 2, 5, NULL);
	put_nameless(after, 3);
	values = since_values(&since, after, &live, &fallen);
	assert_int_equal(fallen, 0);
	assert_int_equal(values[0 * TYPES], 0);
	assert_int_equal(values[1 * TYPES], 10);
	assert_int_equal(values[2 * TYPES], 5);
	assert_int_equal(values[3 * TYPES], 3);
	free(values);
	profile_free(before);
	profile_free(after);
}

/* What came with a label is new there, whichever sample of the stack comes first. */
static void labels_are_told_apart(void **state)
{
	struct profile *before = make(), *after = make();
	struct since since = {.first = before};
	int64_t fallen, *values;

	(void)state;
	put_labelled(before, 1, 100, NULL);
	put_labelled(before, 1, 50, "temporary");
	put_labelled(after, 1, 80, "temporary");
	put_labelled(after, 1, 100, NULL);
	values = since_values(&since, after, &live, &fallen);
	assert_int_equal(fallen, 0);
	assert_int_equal(values[0 * TYPES], 30);
	assert_int_equal(values[1 * TYPES], 0);
	free(values);
	profile_free(before);
	profile_free(after);
}

/* Any two profiles of which the later one has allocated more: no value is negative, and the sum is what
 * came. */
static void no_total_ever_falls(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct profile *before = make(), *after = make();
		struct profile *kept;
		struct since since = {.first = before};
		int64_t fallen, again, *values, *same, sums[2] = {0};

		for (int side = 0; side < 2; side++)
			for (int i = 0; i < 12; i++) {
				int64_t count = rand_r(&seed) % 50 + (side ? 30 : 0);
				const char *label = rand_r(&seed) % 3 ? NULL : "temporary";

				if (rand_r(&seed) % 6 == 0)
					put_nameless(side ? after : before, count);
				else
					put_labelled(side ? after : before, rand_r(&seed) % 8, count, label);
				sums[side] += count;
			}
		values = since_values(&since, after, &live, &fallen);
		for (size_t i = 0; i < profile_sample_count(after) * TYPES; i++)
			assert_true(values[i] >= 0);
		/* What is kept of the earlier profile says the same. */
		assert_int_equal(since_keep(before, &live, &kept), 0);
		since.first = kept;
		same = since_values(&since, after, &live, &again);
		assert_memory_equal(same, values, profile_sample_count(after) * TYPES * sizeof(*values));
		assert_int_equal(again, fallen);
		free(same);
		profile_free(kept);
		assert_int_equal(sum(after, values, 0), sums[1] > sums[0] ? sums[1] - sums[0] : 0);
		free(values);
		profile_free(before);
		profile_free(after);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(differences_are_by_stack_wherever_it_lies),
	    cmocka_unit_test(what_lost_its_stack_is_not_new),
	    cmocka_unit_test(labels_may_change_within_a_stack),
	    cmocka_unit_test(labels_are_told_apart),
	    cmocka_unit_test(no_total_ever_falls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
