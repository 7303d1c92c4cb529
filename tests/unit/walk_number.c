/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of stacks as hooks and sampler share them: one number for a hash, one dump for a number,
 * whoever comes when, and whatever anybody has written there.
 */
#include "proto/walk_number.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKERS = 4, HASHES = 2999 }; /* a prime: each worker's steps meet them all */

static struct walk_numbers *numbers;

static int begin(void **state)
{
	(void)state;
	numbers = mmap(NULL, sizeof(*numbers), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return numbers == MAP_FAILED;
}

static int end(void **state)
{
	(void)state;
	return munmap(numbers, sizeof(*numbers));
}

static uint64_t hash_at(uint64_t i)
{
	uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	return z ^ z >> 27;
}

static bool asks(uint32_t number)
{
	bool asked;

	assert_true(walk_number_use(numbers, number, &asked));
	return asked;
}

static void a_stack_has_one_number(void **state)
{
	(void)state;
	uint32_t first = walk_number_take(numbers, hash_at(1)),
	         second = walk_number_take(numbers, hash_at(2));
	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	assert_int_equal(walk_number_take(numbers, hash_at(1)), first);
	assert_int_equal(walk_numbers_given(numbers), 2);
}

static void its_first_sample_is_dumped(void **state)
{
	bool asked;

	(void)state;
	uint32_t number = walk_number_take(numbers, hash_at(1));
	assert_true(asks(number));
	assert_false(asks(number));
	walk_number_ask_again(numbers, number); /* there was no buffer */
	assert_true(asks(number));
	atomic_store(&numbers->of[number].state, WALK_NUMBER_KNOWN);
	assert_false(asks(number));
	walk_number_ask_again(numbers, number); /* too late: it has come after all */
	assert_false(asks(number));
	atomic_store(&numbers->of[number].state, WALK_NUMBER_UNUSED);
	assert_false(walk_number_use(numbers, number, &asked));
	assert_false(asked);
}

static void a_full_neighbourhood_takes_no_number(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= WALK_STACK_PROBES; i++)
		assert_int_equal(walk_number_take(numbers, i << 32 | 77), i);
	assert_int_equal(walk_number_take(numbers, 99ull << 32 | 77), 0);
	assert_int_equal(walk_numbers_given(numbers), WALK_STACK_PROBES);
	for (uint64_t i = 1; i <= WALK_STACK_PROBES; i++)
		assert_int_equal(walk_number_take(numbers, i << 32 | 77), i);
}

static void the_last_entries_go_on_at_the_first(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= WALK_STACK_PROBES; i++)
		assert_int_equal(walk_number_take(numbers, i << 32 | (WALK_STACK_ENTRIES - 1)), i);
	assert_int_equal(numbers->entry[0], 2);
}

static void numbers_come_to_an_end(void **state)
{
	(void)state;
	atomic_store(&numbers->given, WALK_STACKS - 3);
	assert_int_equal(walk_number_take(numbers, hash_at(1)), WALK_STACKS - 2);
	assert_int_equal(walk_number_take(numbers, hash_at(2)), WALK_STACKS - 1);
	assert_int_equal(walk_number_take(numbers, hash_at(3)), 0);
	assert_int_equal(walk_number_take(numbers, hash_at(1)), WALK_STACKS - 2);
	assert_int_equal(walk_numbers_given(numbers), WALK_STACKS - 1);
}

/* The number is drawn and the thread gone: the stack gets another one from whoever comes next. */
static void a_thread_that_dies_costs_a_number(void **state)
{
	(void)state;
	assert_int_equal(walk_number_draw(numbers, hash_at(1)), 1);
	assert_int_equal(walk_number_take(numbers, hash_at(1)), 2);
	assert_true(asks(2));
}

/* A sampler has ended while a thread was held up with a number, and the next one has emptied the entries.
 * Then
 * the thread enters it, into an entry that is another stack's by now. */
static void a_late_number_is_no_other_stacks(void **state)
{
	(void)state;
	const uint64_t early = 1ull << 32 | 5, late = 2ull << 32 | 5;
	uint32_t number = walk_number_draw(numbers, early);
	memset((void *)numbers->entry, 0, sizeof(numbers->entry));
	uint32_t other = walk_number_take(numbers, late);
	numbers->entry[5] = number;
	assert_int_not_equal(walk_number_take(numbers, late), number);
	assert_int_not_equal(walk_number_take(numbers, late), 0);
	assert_int_equal(walk_number_take(numbers, early), number);
	assert_int_not_equal(other, number);
}

/* Every value in range, and no other: what is written here chooses places in memory. */
static void made_up_words_lead_nowhere(void **state)
{
	bool asked;

	(void)state;
	uint32_t *words = (uint32_t *)(void *)numbers;
	for (uint64_t round = 0; round < 8; round++) {
		for (size_t i = 0; i < sizeof(*numbers) / sizeof(*words); i++)
			words[i] = (uint32_t)hash_at(round * 1000003 + i) >> (round % 4 * 8);
		for (uint64_t i = 0; i < 20000; i++) {
			uint32_t number = walk_number_take(numbers, hash_at(i));

			assert_in_range(number, 0, WALK_STACKS - 1);
			if (number)
				(void)walk_number_use(numbers, number, &asked);
		}
		assert_in_range(walk_numbers_given(numbers), 0, WALK_STACKS - 1);
	}
	atomic_store(&numbers->given, UINT32_MAX);
	memset((void *)numbers->entry, 0, sizeof(numbers->entry));
	assert_int_equal(walk_number_take(numbers, hash_at(1)), 0);
}

/* ---- at the same time */

struct found {
	uint32_t number[HASHES];
	uint32_t asked[HASHES];
};

/* All hashes three times, each worker in an order of its own. */
static void meet_all(struct found *found, uint64_t worker)
{
	bool asked;

	for (uint64_t i = 0; i < 3 * HASHES; i++) {
		uint64_t at = (i * (worker * 2 + 1) + worker * 997) % HASHES;
		uint32_t number = walk_number_take(numbers, hash_at(at));

		if (!number || (found->number[at] && found->number[at] != number))
			_exit(1);
		found->number[at] = number;
		found->asked[at] += walk_number_use(numbers, number, &asked) && asked;
	}
}

static void all_agree(const struct found *found)
{
	static uint32_t owner[WALK_STACKS];

	memset(owner, 0, sizeof(owner));
	for (uint32_t at = 0; at < HASHES; at++) {
		uint32_t asked = 0;

		for (int w = 0; w < WORKERS; w++) {
			assert_int_equal(found[w].number[at], found[0].number[at]);
			asked += found[w].asked[at];
		}
		assert_int_equal(asked, 1);
		assert_int_equal(owner[found[0].number[at]], 0);
		owner[found[0].number[at]] = at + 1;
	}
	/* each race that is lost leaves a number, and at most all but one of the workers lose it */
	assert_in_range(walk_numbers_given(numbers), HASHES, WORKERS * HASHES);
}

static struct found *shared_found(void)
{
	struct found *found =
	    mmap(NULL, WORKERS * sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(found, MAP_FAILED);
	return found;
}

static pthread_barrier_t together;
static struct found *thread_found;

static void *work(void *argument)
{
	uint64_t worker = (uint64_t)(uintptr_t)argument;

	pthread_barrier_wait(&together);
	meet_all(&thread_found[worker], worker);
	return NULL;
}

static void threads_agree(void **state)
{
	pthread_t threads[WORKERS];

	(void)state;
	thread_found = shared_found();
	assert_int_equal(pthread_barrier_init(&together, NULL, WORKERS), 0);
	for (uintptr_t w = 0; w < WORKERS; w++)
		assert_int_equal(pthread_create(&threads[w], NULL, work, (void *)w), 0);
	for (int w = 0; w < WORKERS; w++)
		assert_int_equal(pthread_join(threads[w], NULL), 0);
	pthread_barrier_destroy(&together);
	all_agree(thread_found);
	munmap(thread_found, WORKERS * sizeof(*thread_found));
}

static void forked_children_agree(void **state)
{
	pid_t children[WORKERS];

	(void)state;
	struct found *found = shared_found();
	for (uint64_t w = 0; w < WORKERS; w++)
		if ((children[w] = fork()) == 0) {
			meet_all(&found[w], w);
			_exit(0);
		}
	for (int w = 0; w < WORKERS; w++) {
		int status;

		assert_int_equal(waitpid(children[w], &status, 0), children[w]);
		assert_int_equal(status, 0);
	}
	all_agree(found);
	munmap(found, WORKERS * sizeof(*found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_stack_has_one_number, begin, end),
	    cmocka_unit_test_setup_teardown(its_first_sample_is_dumped, begin, end),
	    cmocka_unit_test_setup_teardown(a_full_neighbourhood_takes_no_number, begin, end),
	    cmocka_unit_test_setup_teardown(the_last_entries_go_on_at_the_first, begin, end),
	    cmocka_unit_test_setup_teardown(numbers_come_to_an_end, begin, end),
	    cmocka_unit_test_setup_teardown(a_thread_that_dies_costs_a_number, begin, end),
	    cmocka_unit_test_setup_teardown(a_late_number_is_no_other_stacks, begin, end),
	    cmocka_unit_test_setup_teardown(made_up_words_lead_nowhere, begin, end),
	    cmocka_unit_test_setup_teardown(threads_agree, begin, end),
	    cmocka_unit_test_setup_teardown(forked_children_agree, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
