/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles are the same: copies, and twins with fewer names. */
#include "sampler/cmd/report/profile_files.h"

#include "pprof/model/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { FILES_MAX = 8 };

static struct profile_file files[FILES_MAX];
static const char *const paths[FILES_MAX] = {"0", "1", "2", "3", "4", "5", "6", "7"};
static size_t count;

static int clear(void **state)
{
	count = 0;
	return 0;
}

static struct profile_file *add(uint64_t measurement, uint64_t names)
{
	files[count] = (struct profile_file){
	    .path = paths[count], .measurement = measurement, .names = names, .timed = true};
	return &files[count++];
}

static void find(void)
{
	assert_int_equal(profile_files_find_duplicates(files, count), 0);
}

static void the_one_with_most_names_counts(void **state)
{
	add(1, 0);
	add(2, 0);
	add(1, 5);
	add(1, 5);
	add(1, 2);
	find();
	assert_ptr_equal(files[0].same_as, paths[2]);
	assert_null(files[1].same_as);
	assert_null(files[2].same_as);
	assert_ptr_equal(files[3].same_as, paths[2]);
	assert_ptr_equal(files[4].same_as, paths[2]);
	assert_false(files[0].is_copy); /* it lacks names */
	assert_true(files[3].is_copy);
}

/* Two processes may allocate the same; and the sides of a comparison have each their own. */
static void without_a_time_or_in_another_group_they_are_two(void **state)
{
	add(1, 0)->timed = false;
	add(1, 0)->timed = false;
	add(2, 0);
	add(2, 0)->group = 1;
	find();
	for (size_t i = 0; i < count; i++)
		assert_null(files[i].same_as);
}

/* ---- facts */

struct shape {
	int64_t time_ns, duration_ns, value;
	const char *name, *comment, *type;
	bool turned; /* samples in the other order */
};

static struct profile_file facts_of(struct shape shape)
{
	struct profile *p = profile_new();
	const struct profile_line line = {.function = 1};
	struct profile_file file = {.profile = p};
	uint32_t locations[2];

	profile_add_sample_type(p, shape.type, "bytes");
	profile_set_period(p, "space", "bytes", 4096);
	profile_set_time(p, shape.time_ns, shape.duration_ns);
	profile_add_comment(p, shape.comment);
	profile_add_function(p, &(struct profile_function){.name = shape.name});
	for (size_t i = 0; i < 2; i++)
		locations[i] = profile_add_location(p,
		    &(struct profile_location){.address = 0x1000 + i,
		        .lines = *shape.name ? &line : NULL,
		        .line_count = *shape.name != '\0'});
	for (size_t i = 0; i < 2; i++) {
		size_t which = i ^ shape.turned;
		int64_t value = shape.value + (int64_t)which;

		profile_add_sample(p, &locations[which], 1, &value, NULL, 0);
	}
	assert_int_equal(profile_error(p), 0);
	profile_files_measure(&file);
	profile_free(p);
	return file;
}

static const struct shape plain = {5, 1, 100, "", "session=1-2 start=3", "inuse_space", false};

static void names_and_order_are_no_difference(void **state)
{
	struct shape other = plain;

	other.name = "f";
	other.turned = true;
	assert_true(facts_of(plain).measurement == facts_of(other).measurement);
	assert_int_equal(facts_of(other).names, 2);
	assert_int_equal(facts_of(plain).names, 0);
	assert_true(facts_of(plain).timed);
	other.time_ns = 0;
	assert_false(facts_of(other).timed);
}

static void times_values_types_and_comments_are_a_difference(void **state)
{
	struct shape others[5];

	for (size_t i = 0; i < 5; i++)
		others[i] = plain;
	others[0].time_ns++;
	others[1].value++;
	others[2].comment = "pid=2";
	others[3].type = "alloc_space";
	others[4].duration_ns++;
	for (size_t i = 0; i < 5; i++)
		assert_true(facts_of(plain).measurement != facts_of(others[i]).measurement);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(the_one_with_most_names_counts, clear),
	    cmocka_unit_test_setup(without_a_time_or_in_another_group_they_are_two, clear),
	    cmocka_unit_test(names_and_order_are_no_difference),
	    cmocka_unit_test(times_values_types_and_comments_are_a_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
