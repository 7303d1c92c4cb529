/* SPDX-License-Identifier: Apache-2.0 */
/* The hook's index of live samples, compiled into the test: what is entered is found, what is not is not,
 * whoever asks. */
#include "preload/live.c"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { FIRST_SAMPLES = 1 << (FIRST_BITS_MOST - 1) };

static void *map_zeroes(size_t bytes)
{
	void *memory =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static unsigned char *first, *above;

static void open_size(struct live_size size)
{
	live_close();
	first = map_zeroes(live_first_bytes(&size));
	above = size.levels > 1 ? map_zeroes(live_above_bytes(&size)) : NULL;
	live_open(&size, first, above);
}

static int reset(void **unused)
{
	open_size((struct live_size){1, FIRST_BITS_MOST, LAST_BITS_MOST});
	return 0;
}

static int reset_large(void **unused)
{
	open_size(live_size_for(1));
	return 0;
}

static const void *block(uint64_t number)
{
	return (const void *)(uintptr_t)(0x7f0000000000ull + number * 48);
}

static struct live_entry entry_of(uint64_t number)
{
	return (struct live_entry){
	    .sample = {
	        .seq = number, .size_bytes = number * 7 + 1, .period_bytes = 4096, .slot = (uint32_t)number}};
}

static uint32_t put(uint64_t number)
{
	struct live_entry entry = entry_of(number), stale;

	return live_put(block(number), &entry, &stale);
}

static bool take(uint64_t number)
{
	struct live_entry entry, wanted = entry_of(number);

	if (!live_take(block(number), &entry))
		return false;
	assert_memory_equal(&wanted, &entry, sizeof(entry));
	return true;
}

static size_t filter_sum(void)
{
	size_t sum = 0;

	for (size_t i = 0; i <= live_spans->mask; i++)
		sum += live_spans->counts[i];
	for (size_t i = 0; i < 2 * filter_bytes(levels[0].key_bits); i++)
		sum += levels[0].filter[i];
	return sum;
}

static void comes_and_goes(void **unused)
{
	for (int round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < FIRST_SAMPLES - 96; i++)
			assert_int_equal(0, put(i * 13 + 5));
		for (uint64_t i = 0; i < FIRST_SAMPLES - 96; i++) {
			assert_true(live_maybe(block(i * 13 + 5)) && live_maybe_here(block(i * 13 + 5)));
			assert_false(take(i * 13 + 6));
			assert_true(take(i * 13 + 5));
			assert_false(take(i * 13 + 5));
		}
		assert_int_equal(0, filter_sum());
		assert_int_equal(0, levels[0].used);
	}
}

/* free(NULL) with other blocks' counts in NULL's filter bytes: an empty key was taken for its entry. */
static void null_is_never_live(void **unused)
{
	uint64_t number = 1;

	while (filter_byte(&levels[0], block(number)) != filter_byte(&levels[0], NULL))
		number++;
	assert_int_equal(0, put(number));
	count_up(confirm_byte(&levels[0], NULL));
	assert_true(live_maybe_here(NULL));
	struct live_entry entry;
	assert_false(live_take(NULL, &entry));
	assert_false(live_take((void *)1, &entry));
	assert_false(live_take((void *)UINTPTR_MAX, &entry));
	assert_false(live_take((void *)(UINTPTR_MAX - 1), &entry));
	assert_int_equal(1, levels[0].used);
	assert_true(take(number));
	count_down(confirm_byte(&levels[0], NULL));
	assert_int_equal(0, filter_sum());
}

/* As of a pool that takes mmap's failure for a block: its key would be that of an empty or a busy entry. */
static void the_last_addresses_are_not_entered(void **unused)
{
	const struct live_entry entry = entry_of(1);
	struct live_entry stale;

	for (uintptr_t end = 1; end <= 2; end++) {
		const void *last = (const void *)(0 - end);

		assert_int_equal(LIVE_PUT_FULL, live_put(last, &entry, &stale));
		assert_false(live_maybe(last));
		assert_false(live_take(last, &stale));
	}
	assert_int_equal(0, levels[0].used);
	assert_int_equal(0, filter_sum());
	assert_int_equal(0, live_put((const void *)(UINTPTR_MAX - 2), &entry, &stale));
	assert_true(live_take((const void *)(UINTPTR_MAX - 2), &stale));
}

/* What is near a sample, and what is not. */
static void spans_keep_the_rest_away(void **unused)
{
	const char *sampled = (const char *)0x7f0000002010, *far = sampled + ((uintptr_t)64 << 20);
	struct live_entry entry = entry_of(1), stale;

	assert_int_equal(0, live_put(sampled, &entry, &stale));
	assert_true(live_maybe(sampled) && live_maybe(sampled + 0x1fe0) && !live_maybe(sampled + 0x1ff0));
	assert_false(live_maybe(sampled - 0x20) || live_maybe(far) || live_maybe_here(sampled + 16));
	assert_true(live_take(sampled, &entry));
	assert_false(live_maybe(sampled));
}

static void stale_entry_is_handed_back(void **unused)
{
	struct live_entry old = entry_of(1), new = entry_of(2), stale;

	assert_int_equal(0, live_put(block(9), &old, &stale));
	assert_int_equal(LIVE_PUT_STALE, live_put(block(9), &new, &stale));
	assert_memory_equal(&old, &stale, sizeof(stale));
	assert_true(live_take(block(9), &stale));
	assert_memory_equal(&new, &stale, sizeof(stale));
	assert_int_equal(0, filter_sum());
}

static void full_is_said(void **unused)
{
	uint64_t number = 0;

	while (put(number) == 0)
		number++;
	/* Half of the keys, or a window that happens to be full a little before. */
	assert_in_range(number, FIRST_SAMPLES - 192, FIRST_SAMPLES);
	for (uint64_t i = 0; i < number; i++)
		assert_true(take(i));
	assert_int_equal(0, put(number));
}

/* However densely they lie: half of a level's keys are enough for half as many blocks. */
static void neighbours_of_any_size_fit(void **unused)
{
	static const uintptr_t spacing[] = {16, 32, 48, 64, 112, 1024, 4096, 65536, 1 << 20};
	const struct live_entry entry = entry_of(1);

	for (size_t s = 0; s < sizeof(spacing) / sizeof(spacing[0]); s++) {
		struct live_entry other;

		for (uintptr_t i = 1; i <= FIRST_SAMPLES - 96; i++)
			assert_int_equal(0, live_put((const void *)(i * spacing[s]), &entry, &other));
		for (uintptr_t i = 1; i <= FIRST_SAMPLES - 96; i++)
			assert_true(live_take((const void *)(i * spacing[s]), &other));
		assert_int_equal(0, levels[0].used);
	}
}

/* Small blocks of several pages may have the same keys: a few of them go to the next level. */
static void pages_that_meet_have_room(void **unused)
{
	enum { PAGES = 32, EACH = 125 };
	const struct live_entry entry = entry_of(1);
	struct live_entry stale;
	uintptr_t page = 1;
	uint32_t full = 0;

	for (uint32_t i = 0; i < PAGES * EACH; i++) {
		if (i % EACH == 0)
			page = page * 0x5851f42d4c957f2dull + 1;
		full += live_put((const void *)(page % (1ull << 47) / 4096 * 4096 + i % EACH * 32), &entry,
		            &stale) != 0;
	}
	assert_in_range(full, 0, PAGES * EACH / 50);
	live_clear();
	assert_int_equal(0, levels[0].used);
}

static void neighbours_have_keys_that_are_neighbours(void **unused)
{
	enum { BLOCKS_OF_A_PAGE = 64 };
	const struct live_entry entry = entry_of(1);
	struct live_entry stale;
	uint32_t least = UINT32_MAX, last = 0;

	for (uintptr_t i = 0; i < BLOCKS_OF_A_PAGE; i++)
		assert_int_equal(0, live_put((const void *)(0x555555557000 + i * 64), &entry, &stale));
	for (uint32_t i = 0; i < 1u << levels[0].key_bits; i++) {
		if (levels[0].keys[i] == KEY_EMPTY)
			continue;
		least = i < least ? i : least;
		last = i;
	}
	assert_in_range(last - least, BLOCKS_OF_A_PAGE, 4096 / 16);
	live_clear();
}

static void levels_follow(void **unused)
{
	enum { MANY = 300000 };

	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(0, put(i));
	assert_int_equal(3, levels_open());
	for (uint64_t i = 0; i < MANY; i++)
		assert_true(live_maybe(block(i)) && live_maybe_here(block(i)));
	/* What lies between them and was never entered. */
	size_t mistaken = 0;
	for (uint64_t i = 0; i < MANY; i++)
		mistaken += live_maybe_here((const char *)block(i) + 16);
	assert_in_range(mistaken, 0, MANY / 20);
	for (uint64_t i = 0; i < MANY; i++)
		assert_true(take(i));
	assert_false(live_maybe_here(block(1)));
	assert_int_equal(0, filter_sum());
}

/* What is entered stays found, and nothing is entered where no memory is. */
static void unused_levels_are_given_back(void **unused)
{
	enum { MANY = 20000, TOO_MANY = 200000 };
	const size_t second = level_bytes(SECOND_BITS), third = level_bytes(LAST_BITS_MOST);

	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(0, put(i));
	assert_int_equal(2, levels_open());
	assert_int_equal(second, live_give_back());
	assert_int_equal(second, live_give_back());
	assert_int_equal(0, mprotect(above + second, third, PROT_NONE));
	for (uint64_t i = MANY; i < TOO_MANY; i++)
		put(i);
	assert_int_equal(2, levels_open());
	assert_int_equal(LIVE_PUT_FULL, put(TOO_MANY));
	for (uint64_t i = 0; i < MANY; i++)
		assert_true(take(i));
}

/* As a signal handler may call it between the two loads of a free. */
static void nothing_is_found_in_closed_tables(void **unused)
{
	for (uint64_t i = 0; i < 20000; i++)
		assert_int_equal(0, put(i));
	const struct live_spans *read_before = live_spans;
	live_close();
	assert_true(read_before == (const struct live_spans *)first);
	assert_int_equal(0, mprotect(above, level_bytes(SECOND_BITS), PROT_NONE));
	assert_false(live_maybe(block(1)) || live_maybe_here(block(1)) || take(1));
	assert_int_equal(LIVE_PUT_FULL, put(30000));
	live_clear();
}

/* Before there is a region: whatever is freed. */
static void without_memory_there_is_nothing(void **unused)
{
	live_close();
	for (uintptr_t address = 1; address; address <<= 1)
		assert_false(live_maybe((const void *)address) || live_maybe((const void *)-address));
	assert_false(live_maybe(NULL));
	assert_int_equal(LIVE_PUT_FULL, put(1));
}

static void a_smaller_period_has_more_room(void **unused)
{
	const uint64_t heap_bytes = UINT64_C(32) << 30;
	uint32_t before = UINT32_MAX;

	for (uint64_t period = 1; period <= UINT64_C(1) << 40; period *= 2) {
		const struct live_size size = live_size_for(period);
		const uint32_t room = live_size_samples(&size);

		assert_true(room <= before && (room >= heap_bytes / period || room >= 1 << 20));
		before = room;
	}
	struct live_size size = live_size_for(1), least;
	do {
		open_size(least = size);
		const uint32_t room = live_size_samples(&size);
		uint64_t number = 0;
		while (number < 5000 && put(number) == 0)
			number++;
		assert_true(number >= 5000 || number > room * 9 / 10);
		for (uint64_t i = 0; i < number; i++)
			assert_true(live_maybe(block(i)) && live_maybe_here(block(i)) && take(i));
	} while (live_size_lower(&size));
	assert_true(live_first_bytes(&least) < 500000); /* under `ulimit -d 4000` an eighth is 512,000 */
}

static bool keep_even(const void *pointer, struct live_entry *entry)
{
	entry->place = 5;
	return entry->sample.seq % 2 == 0;
}

static void visit_changes_and_drops(void **unused)
{
	for (uint64_t i = 0; i < 20000; i++)
		assert_int_equal(0, put(i));
	live_visit(keep_even);
	for (uint64_t i = 0; i < 20000; i++) {
		struct live_entry entry;

		assert_int_equal(i % 2 == 0, live_take(block(i), &entry));
		if (i % 2 == 0)
			assert_int_equal(5, entry.place);
	}
	assert_int_equal(0, filter_sum());
	assert_int_equal(0, levels[0].used + levels[1].used);
}

/* Threads that ended in the middle of something leave keys busy; the others go round them. */
static void busy_keys_are_gone_round(void **unused)
{
	for (size_t i = 0; i < (size_t)1 << levels[0].key_bits; i += 3)
		levels[0].keys[i] = KEY_BUSY;
	for (uint64_t i = 0; i < FIRST_SAMPLES / 2; i++)
		assert_int_equal(0, put(i));
	live_visit(keep_even);
	for (uint64_t i = 0; i < FIRST_SAMPLES / 2; i += 2) {
		struct live_entry entry;

		assert_true(live_take(block(i), &entry));
	}
	assert_int_equal(0, filter_sum());
}

enum { THREADS = 4, BLOCKS = 600 };

static void *churn(void *argument)
{
	uint64_t random = (uintptr_t)argument * 0x9e3779b97f4a7c15u + 1;
	bool in[BLOCKS] = {false};

	for (int i = 0; i < 300000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t n = (random >> 33) % BLOCKS, number = n * THREADS + (uintptr_t)argument;
		if (in[n] ? !take(number) : take(number) || put(number) != 0)
			return (void *)1;
		in[n] = !in[n];
	}
	for (uint64_t n = 0; n < BLOCKS; n++)
		if (in[n] && !take(n * THREADS + (uintptr_t)argument))
			return (void *)1;
	return NULL;
}

/* Neighbouring addresses, so the threads meet in every window. */
static void threads_do_not_disturb_each_other(void **unused)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, churn, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(0, levels[0].used);
	assert_int_equal(0, filter_sum());
}

/* The program's bug, not ours: two threads free one block. One of them gets it. */
static _Atomic int won;
static pthread_barrier_t barrier;

static void *race(void *argument)
{
	for (uint64_t i = 0; i < 5000; i++) {
		pthread_barrier_wait(&barrier);
		if (argument)
			put(i);
		pthread_barrier_wait(&barrier);
		struct live_entry entry;
		if (live_take(block(i), &entry))
			won++;
	}
	return NULL;
}

static void double_free_is_taken_once(void **unused)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, race, NULL);
	race((void *)1);
	pthread_join(thread, NULL);
	assert_int_equal(5000, won);
	assert_int_equal(0, filter_sum());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(comes_and_goes, reset),
	    cmocka_unit_test_setup(null_is_never_live, reset),
	    cmocka_unit_test_setup(the_last_addresses_are_not_entered, reset),
	    cmocka_unit_test_setup(spans_keep_the_rest_away, reset),
	    cmocka_unit_test_setup(stale_entry_is_handed_back, reset),
	    cmocka_unit_test_setup(full_is_said, reset),
	    cmocka_unit_test_setup(neighbours_of_any_size_fit, reset),
	    cmocka_unit_test_setup(pages_that_meet_have_room, reset),
	    cmocka_unit_test_setup(neighbours_have_keys_that_are_neighbours, reset),
	    cmocka_unit_test_setup(levels_follow, reset_large),
	    cmocka_unit_test_setup(unused_levels_are_given_back, reset_large),
	    cmocka_unit_test_setup(nothing_is_found_in_closed_tables, reset_large),
	    cmocka_unit_test(without_memory_there_is_nothing),
	    cmocka_unit_test(a_smaller_period_has_more_room),
	    cmocka_unit_test_setup(visit_changes_and_drops, reset_large),
	    cmocka_unit_test_setup(busy_keys_are_gone_round, reset),
	    cmocka_unit_test_setup(threads_do_not_disturb_each_other, reset),
	    cmocka_unit_test_setup(double_free_is_taken_once, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
