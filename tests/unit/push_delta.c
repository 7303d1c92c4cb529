/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* Differences to the profile that was accepted, and folding to a server's limits: sums must come out the
 * same. */
#include "pprof/codec/decode.h"
#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "push/delta.h"
#include "push/fold.h"

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
	struct delta_table table;
	int64_t fallen, *values;

	put(before, 0x400000, 1, 3, 100, NULL);
	put(before, 0x400000, 2, 3, 10, NULL);
	/* The file lies elsewhere, the blocks have ages, one stack is new. */
	put(after, 0x900000, 1, 3, 70, "1s");
	put(after, 0x900000, 1, 3, 80, "10s");
	put(after, 0x900000, 2, 3, 10, NULL);
	put(after, 0x900000, 3, 3, 7, NULL);
	assert_int_equal(delta_table_make(&table, before, &live), 0);
	assert_int_equal(table.count, 2);
	values = delta_values(after, &live, &table, &fallen);
	assert_int_equal(sum(after, values, 0), 57);
	assert_int_equal(sum(after, values, 1), 57 * 64);
	assert_int_equal(sum(after, values, 2), 35 + 40 + 5 + 3);
	assert_int_equal(fallen, 0);
	free(values);
	delta_table_fini(&table);
	/* A stack that is not there any more is said, and no value is negative. */
	assert_int_equal(delta_table_make(&table, after, &live), 0);
	values = delta_values(before, &live, &table, &fallen);
	assert_int_equal(sum(before, values, 0), 0);
	assert_int_equal(fallen, (50 + 7) * 65);
	free(values);
	/* What was accepted is not known: nothing is claimed to be new. */
	delta_table_fini(&table);
	table.unknown = true;
	values = delta_values(after, &live, &table, &fallen);
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
	struct delta_table table;
	int64_t fallen, *values;

	put(before, 0x400000, 1, 3, 1000, NULL);
	put(before, 0x400000, 2, 3, 10, NULL);
	put(after, 0x400000, 1, 3, 500, NULL);
	put(after, 0x400000, 3, 3, 7, NULL);
	put_nameless(after, 1010);
	assert_int_equal(delta_table_make(&table, before, &live), 0);
	values = delta_values(after, &live, &table, &fallen);
	assert_int_equal(fallen, 510 * 65);
	assert_int_equal(sum(after, values, 0), 507);
	assert_int_equal(sum(after, values, 1), 507 * 64);
	/* The stack that is new has kept what is its own. */
	assert_int_equal(values[1 * TYPES], 7);
	assert_int_equal(values[2 * TYPES], 500);
	free(values);
	delta_table_fini(&table);
	profile_free(before);
	profile_free(after);
	/* Without a nameless one, it is taken from what the accepted profile did not have. */
	before = make();
	after = make();
	put(before, 0x400000, 1, 3, 100, NULL);
	put(before, 0x400000, 2, 3, 10, NULL);
	put(after, 0x400000, 2, 3, 20, NULL);
	put(after, 0x400000, 4, 3, 130, NULL);
	assert_int_equal(delta_table_make(&table, before, &live), 0);
	values = delta_values(after, &live, &table, &fallen);
	assert_int_equal(values[0 * TYPES], 10);
	assert_int_equal(values[1 * TYPES], 30);
	free(values);
	delta_table_fini(&table);
	profile_free(before);
	profile_free(after);
}

static void tables_come_back_from_their_file(void **state)
{
	struct profile *p = make();
	struct delta_table table, again;
	uint8_t *bytes;
	size_t length;

	for (unsigned int i = 0; i < FUNCTIONS; i++)
		put(p, 0x400000, i, 4, i + 1, NULL);
	assert_int_equal(delta_table_make(&table, p, &live), 0);
	assert_int_equal(delta_encode(&table, &bytes, &length), 0);
	assert_int_equal(delta_decode(bytes, length, &again), 0);
	assert_int_equal(again.count, FUNCTIONS);
	assert_int_equal(again.time_ns, 1000);
	assert_memory_equal(again.types, table.types, sizeof(table.types));
	for (size_t i = 0; i < table.count; i++)
		assert_memory_equal(&again.rows[i], &table.rows[i], sizeof(table.rows[i]));
	delta_table_fini(&again);
	/* Cut off anywhere, or with a bit changed anywhere, it is damaged. */
	for (size_t i = 0; i < length; i += 7)
		assert_int_equal(delta_decode(bytes, i, &again), -EBADMSG);
	for (size_t i = 0; i < length; i += 3) {
		bytes[i] ^= 1;
		assert_int_equal(delta_decode(bytes, length, &again), -EBADMSG);
		bytes[i] ^= 1;
	}
	free(bytes);
	delta_table_fini(&table);
	profile_free(p);
}

/* Folds and decodes; totals must be those of the input. */
static struct profile *folded_profile(
    const struct profile *p, struct fold_limits limits, struct folded *folded)
{
	const bool types[TYPES] = {true, true, true, true};
	const struct delta_table nothing = {0};
	int64_t fallen, *values = delta_values(p, &live, &nothing, &fallen);
	const struct fold_input input = {
	    .profile = p, .values = values, .types = types, .time_ns = 1, .limits = &limits};
	struct profile *out;

	assert_int_equal(fold(&input, folded), 0);
	assert_true(folded->length <= limits.bytes);
	assert_int_equal(decode_profile(folded->bytes, folded->length, DECODE_MAX_BYTES, &out), DECODE_OK);
	assert_true(profile_sample_count(out) <= limits.samples);
	for (size_t t = 0; t < TYPES; t++) {
		int64_t total = 0;

		for (size_t i = 0; i < profile_sample_count(out); i++)
			total += profile_sample(out, i).values[t];
		assert_int_equal(total, sum(p, values, t));
	}
	for (size_t i = 0; i < profile_sample_count(out); i++)
		assert_true(profile_sample(out, i).depth <= limits.depth);
	folded_fini(folded);
	free(values);
	return out;
}

static void limits_are_met_and_totals_stay(void **state)
{
	static const struct fold_limits wide = {1 << 20, 10000, 1000, 65535, false};
	struct profile *p = make(), *out;
	struct fold_limits limits = wide;
	struct folded folded;

	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		put(p, 0x400000, i, 4, 2 * i + 2, "1s");
		put(p, 0x400000, i, 4, 2 * i + 1, "1s");
	}
	put(p, 0x400000, 0, 900, 5, NULL);
	out = folded_profile(p, limits, &folded);
	assert_int_equal(folded.samples, 2 * FUNCTIONS + 1);
	assert_int_equal(folded.other, 0);
	profile_free(out);
	/* Numbers apart, there are half as many. */
	limits.drop_numbers = true;
	out = folded_profile(p, limits, &folded);
	assert_int_equal(folded.samples, FUNCTIONS + 1);
	profile_free(out);
	limits.samples = 20;
	limits.depth = 100;
	out = folded_profile(p, limits, &folded);
	assert_int_equal(folded.samples, 19);
	assert_int_equal(folded.other, FUNCTIONS + 1 - 19);
	profile_free(out);
	for (limits.bytes = 400; limits.bytes < 8000; limits.bytes += 37)
		profile_free(folded_profile(p, limits, &folded));
	limits = wide;
	limits.string_bytes = 2;
	out = folded_profile(p, limits, &folded);
	assert_true(folded.strings_cut > 0);
	for (uint32_t id = 1; id <= profile_function_count(out); id++)
		assert_true(strlen(profile_function(out, id).name) <= 2);
	profile_free(out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(differences_are_by_stack_wherever_it_lies),
	    cmocka_unit_test(what_lost_its_stack_is_not_new),
	    cmocka_unit_test(tables_come_back_from_their_file),
	    cmocka_unit_test(limits_are_met_and_totals_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
