/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is, and what is remembered of it. */
#include "sampler/daemon/roster.h"
#include "sampler/linux/epoll_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static struct roster_entry *enter(
    struct roster *roster, pid_t pid, uint64_t ticks, uint64_t stack, bool *is_new)
{
	const struct thread_birth identity = {.ticks = ticks, .stack_start = stack};
	struct roster_entry *entry = roster_enter(roster, pid, &identity, is_new);

	assert_non_null(entry);
	return entry;
}

/* The same pid after an exec, or of another process, is another entry. */
static void test_another_program_is_another_entry(void **state)
{
	struct roster roster = {0};
	bool is_new;

	(void)state;
	struct roster_entry *entry = enter(&roster, 10, 1, 100, &is_new);
	assert_true(is_new);
	entry->state = ROSTER_PROFILED;
	roster_set(&entry->service, "redis");
	assert_ptr_equal(enter(&roster, 10, 1, 100, &is_new), entry);
	assert_false(is_new);
	entry = enter(&roster, 10, 1, 200, &is_new);
	assert_true(is_new);
	assert_int_equal(entry->state, ROSTER_NEW);
	assert_null(entry->service);
	enter(&roster, 10, 2, 200, &is_new);
	assert_true(is_new);
	assert_int_equal(roster.count, 1);
	roster_fini(&roster);
}

static void test_sorted_and_forgotten(void **state)
{
	struct roster roster = {0};
	bool is_new;

	(void)state;
	for (pid_t i = 0; i < 1000; i++)
		enter(&roster, 1 + i * 7919 % 1000, 1, 1, &is_new)->round = (uint64_t)(i % 2);
	assert_int_equal(roster.count, 1000);
	for (size_t i = 0; i < roster.count; i++)
		assert_int_equal(roster.entries[i]->pid, i + 1);
	roster_remove(&roster, 500);
	roster_remove(&roster, 5000);
	assert_null(roster_find(&roster, 500));
	assert_non_null(roster_find(&roster, 501));
	roster_forget(&roster, 1);
	for (size_t i = 0; i < roster.count; i++)
		assert_int_equal(roster.entries[i]->round, 1);
	assert_in_range(roster.count, 499, 500);
	roster_fini(&roster);
}

/* A child that writes a profile has copies of all descriptors: one that is closed here is out of the set. */
static void test_closed_for_the_set_too(void **state)
{
	struct roster roster = {.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	struct epoll_event event;
	bool is_new;

	(void)state;
	struct roster_entry *entry = enter(&roster, 10, 1, 100, &is_new);
	entry->pidfd = eventfd(1, EFD_CLOEXEC);
	int copy = dup(entry->pidfd);
	assert_int_equal(epoll_set_add(roster.epoll_fd, entry->pidfd), 0);
	assert_int_equal(epoll_wait(roster.epoll_fd, &event, 1, 0), 1);
	enter(&roster, 10, 2, 100, &is_new); /* another process */
	assert_int_equal(epoll_wait(roster.epoll_fd, &event, 1, 0), 0);
	close(copy);
	close(roster.epoll_fd);
	roster_fini(&roster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_another_program_is_another_entry),
	    cmocka_unit_test(test_sorted_and_forgotten),
	    cmocka_unit_test(test_closed_for_the_set_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
