/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles tell nothing new: copies, twins with fewer names, sums of what is there. */
#include "sampler/cmd/report/duplicates.h"

#include "pprof/model/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FILES_MAX = 8, PROCESSES_MAX = 4 };

static struct duplicates_facts facts[FILES_MAX];
static struct duplicates_verdict verdicts[FILES_MAX];
static uint64_t processes[FILES_MAX][PROCESSES_MAX];
static size_t count;

static int clear(void **state)
{
	count = 0;
	return 0;
}

/* A profile of the processes that are digits in `of`; of more than one it is a sum. */
static struct duplicates_facts *add(uint64_t measurement, uint64_t names, const char *of)
{
	struct duplicates_facts *f = &facts[count];

	*f = (struct duplicates_facts){.measurement = measurement,
	    .names = names,
	    .timed = true,
	    .is_sum = strlen(of) > 1,
	    .processes = processes[count],
	    .process_count = strlen(of)};
	for (size_t i = 0; i < f->process_count; i++)
		processes[count][i] = (uint64_t)of[i];
	count++;
	return f;
}

static void find(bool sums)
{
	assert_int_equal(duplicates_find(facts, count, sums, verdicts), 0);
}

static void the_one_with_most_names_counts(void **state)
{
	add(1, 0, "1");
	add(2, 0, "1");
	add(1, 5, "1");
	add(1, 5, "1");
	add(1, 2, "1");
	find(true);
	assert_int_equal(verdicts[0].kind, DUPLICATES_RAW);
	assert_int_equal(verdicts[1].kind, DUPLICATES_NONE);
	assert_int_equal(verdicts[2].kind, DUPLICATES_NONE);
	assert_int_equal(verdicts[3].kind, DUPLICATES_COPY);
	assert_int_equal(verdicts[4].kind, DUPLICATES_RAW);
	assert_true(verdicts[0].other == 2 && verdicts[3].other == 2 && verdicts[4].other == 2);
}

/* Two processes may allocate the same; and the sides of a comparison have each their own. */
static void without_a_time_or_in_another_group_they_are_two(void **state)
{
	add(1, 0, "")->timed = false;
	add(1, 0, "")->timed = false;
	add(2, 0, "");
	add(2, 0, "")->group = 1;
	find(true);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(verdicts[i].kind, DUPLICATES_NONE);
}

static void a_sum_of_what_is_there_adds_nothing(void **state)
{
	add(1, 0, "12");
	add(2, 0, "1");
	add(3, 0, "2");
	add(4, 0, "123");
	add(5, 0, "45");
	add(6, 0, "54");
	find(true);
	assert_int_equal(verdicts[0].kind, DUPLICATES_SUM);
	assert_true(verdicts[3].kind == DUPLICATES_NONE && verdicts[3].overlaps);
	assert_true(verdicts[4].kind == DUPLICATES_NONE && !verdicts[4].overlaps);
	assert_int_equal(verdicts[5].kind, DUPLICATES_SUM);
	find(false);
	for (size_t i = 0; i < count; i++)
		assert_true(verdicts[i].kind == DUPLICATES_NONE && !verdicts[i].overlaps);
}

/* ---- facts */

struct shape {
	int64_t time_ns, value;
	const char *name, *comment, *label, *event;
	size_t group;
	bool turned; /* samples in the other order */
};

static struct duplicates_facts facts_of(struct shape shape)
{
	struct profile *p = profile_new();
	const struct profile_label label = {.key = "thread", .str = shape.label};
	const struct profile_line line = {.function = 1};
	struct duplicates_facts read;
	uint32_t locations[2];

	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_period(p, "space", "bytes", 4096);
	profile_set_time(p, shape.time_ns, 0);
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

		profile_add_sample(p, &locations[which], 1, &value, &label, 1);
	}
	assert_int_equal(profile_error(p), 0);
	assert_int_equal(duplicates_facts_read(&read, p, shape.event, false, shape.group), 0);
	profile_free(p);
	return read;
}

static uint64_t measurement_of(struct shape shape)
{
	struct duplicates_facts read = facts_of(shape);
	const uint64_t measurement = read.measurement;

	duplicates_facts_fini(&read);
	return measurement;
}

static void names_and_order_are_no_difference(void **state)
{
	const struct shape shape = {5, 100, "", "session=1-2 start=3", "main", "", 0, false};
	struct shape other = shape;
	struct duplicates_facts read;

	other.name = "f";
	other.turned = true;
	assert_true(measurement_of(shape) == measurement_of(other));
	read = facts_of(other);
	assert_int_equal(read.names, 2);
	duplicates_facts_fini(&read);
	read = facts_of(shape);
	assert_int_equal(read.names, 0);
	duplicates_facts_fini(&read);
}

static void times_values_comments_and_labels_are_a_difference(void **state)
{
	const struct shape shape = {5, 100, "f", "session=1-2 start=3", "main", "", 0, false};
	struct shape others[4];

	for (size_t i = 0; i < 4; i++)
		others[i] = shape;
	others[0].time_ns++;
	others[1].value++;
	others[2].comment = "pid=2";
	others[3].label = "worker";
	for (size_t i = 0; i < 4; i++)
		assert_true(measurement_of(shape) != measurement_of(others[i]));
}

/* A sum of heaps has no events in it, nor what is on the other side of a comparison. */
static void a_process_is_known_by_event_and_group(void **state)
{
	const struct shape shape = {5, 100, "f", "session=1-2 start=3", "main", "", 0, false};
	struct shape event = shape, group = shape;
	struct duplicates_facts read[3];

	event.event = "cpu-clock";
	group.group = 1;
	read[0] = facts_of(shape);
	read[1] = facts_of(event);
	read[2] = facts_of(group);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(read[i].process_count, 1);
	assert_true(read[0].processes[0] != read[1].processes[0]);
	assert_true(read[0].processes[0] != read[2].processes[0]);
	for (size_t i = 0; i < 3; i++)
		duplicates_facts_fini(&read[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(the_one_with_most_names_counts, clear),
	    cmocka_unit_test_setup(without_a_time_or_in_another_group_they_are_two, clear),
	    cmocka_unit_test_setup(a_sum_of_what_is_there_adds_nothing, clear),
	    cmocka_unit_test(names_and_order_are_no_difference),
	    cmocka_unit_test(times_values_comments_and_labels_are_a_difference),
	    cmocka_unit_test(a_process_is_known_by_event_and_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
