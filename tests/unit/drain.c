/* SPDX-License-Identifier: Apache-2.0 */
/* Whose samples and frees are read when there is no time for all. */
#include "sampler/books/drain.h"
#include "sampler/books/program_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

enum { RUNS = 3 };

static struct memory_bound memory;
static struct intake intake;
static struct probe probe;
static struct registry registry;
static struct program_run *runs[RUNS];

static int begin(void **state)
{
	(void)state;
	intake = (struct intake){.books.memory = &memory};
	probe = (struct probe){.backend = BACKEND_COPY};
	registry = (struct registry){.setup = {.intake = &intake, .probe = &probe, .verbosity = -1}};
	registry_init(&registry);
	for (int i = RUNS; i-- > 0;) {
		struct region *region = malloc(sizeof(*region));

		fixture_open(region, 64);
		runs[i] = program_run_new(region, 1);
		runs[i]->life.state = RUN_READY;
		assert_int_equal(books_add_run(&intake.books, runs[i]), 0);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < RUNS; i++)
		program_run_free(runs[i]);
	books_fini(&intake.books);
	return 0;
}

static void a_free(int i)
{
	_Atomic uint64_t *head = &region_header(runs[i]->region)->frees_head;

	fixture_free(runs[i]->region, atomic_load(head), 0, 0, 500, 7);
	atomic_fetch_add(head, 1);
}

static void assert_read(uint64_t first, uint64_t second, uint64_t third)
{
	assert_int_equal(runs[0]->frees.seen, first);
	assert_int_equal(runs[1]->frees.seen, second);
	assert_int_equal(runs[2]->frees.seen, third);
}

static void each_has_its_turn(void **state)
{
	(void)state;
	for (int i = 0; i < RUNS; i++)
		a_free(i);
	assert_int_equal(drain_some(&registry, 0), 1);
	assert_read(1, 0, 0);
	a_free(0); /* it has always something to read */
	assert_int_equal(drain_some(&registry, 0), 1);
	assert_read(1, 1, 0);
	a_free(1);
	assert_int_equal(drain_some(&registry, 0), 1);
	assert_read(1, 1, 1);
	assert_int_equal(drain_some(&registry, 0), 1); /* no look reads nothing */
	assert_read(2, 1, 1);
	assert_int_equal(drain_some(&registry, 0), 1);
	assert_read(2, 2, 1);
}

static void where_there_is_time_all_are_read(void **state)
{
	(void)state;
	for (int round = 1; round < 4; round++) {
		for (int i = 0; i < RUNS; i++)
			a_free(i);
		assert_int_equal(drain_some(&registry, UINT64_MAX), RUNS);
		assert_read((uint64_t)round, (uint64_t)round, (uint64_t)round);
	}
}

static void one_that_is_asked_for_is_read_alone(void **state)
{
	(void)state;
	for (int i = 0; i < RUNS; i++)
		a_free(i);
	drain_run(&registry, runs[1]);
	assert_read(0, 1, 0);
	assert_int_equal(drain_some(&registry, UINT64_MAX), RUNS - 1);
	assert_read(1, 1, 1);
}

/* Else the hooks would take the rings for full for ever. */
static void dumps_are_read_when_the_rings_are(void **state)
{
	(void)state;
	for (uint64_t dumps = 7; dumps < 10; dumps++) {
		atomic_store(&region_header(runs[1]->region)->dumps, dumps);
		drain_all(&registry);
		assert_int_equal(atomic_load(&region_header(runs[1]->region)->dumps_read), dumps);
		assert_int_equal(atomic_load(&region_header(runs[0]->region)->dumps_read), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(each_has_its_turn, begin, end),
	    cmocka_unit_test_setup_teardown(where_there_is_time_all_are_read, begin, end),
	    cmocka_unit_test_setup_teardown(one_that_is_asked_for_is_read_alone, begin, end),
	    cmocka_unit_test_setup_teardown(dumps_are_read_when_the_rings_are, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
