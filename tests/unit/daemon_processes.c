/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is, and what is remembered of it. */
#include "sampler/cmd/daemon/process_table.h"
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

static struct process_entry *enter(
    struct process_table *table, pid_t pid, uint64_t ticks, uint64_t stack, bool *is_new)
{
	const struct thread_birth identity = {.ticks = ticks, .stack_start = stack};
	struct process_entry *entry = process_table_enter(table, pid, &identity, is_new);

	assert_non_null(entry);
	return entry;
}

/* The same pid after an exec, or of another process, is another entry. */
static void test_another_program_is_another_entry(void **state)
{
	struct process_table table = {0};
	bool is_new;

	(void)state;
	struct process_entry *entry = enter(&table, 10, 1, 100, &is_new);
	assert_true(is_new);
	entry->state = PROCESS_PROFILED;
	process_entry_set(&entry->service, "redis");
	assert_ptr_equal(enter(&table, 10, 1, 100, &is_new), entry);
	assert_false(is_new);
	entry = enter(&table, 10, 1, 200, &is_new);
	assert_true(is_new);
	assert_int_equal(entry->state, PROCESS_NEW);
	assert_null(entry->service);
	enter(&table, 10, 2, 200, &is_new);
	assert_true(is_new);
	assert_int_equal(table.count, 1);
	process_table_fini(&table);
}

static void test_sorted_and_forgotten(void **state)
{
	struct process_table table = {0};
	bool is_new;

	(void)state;
	for (pid_t i = 0; i < 1000; i++)
		enter(&table, 1 + i * 7919 % 1000, 1, 1, &is_new)->round = (uint64_t)(i % 2);
	assert_int_equal(table.count, 1000);
	for (size_t i = 0; i < table.count; i++)
		assert_int_equal(table.entries[i]->pid, i + 1);
	process_table_remove(&table, 500);
	process_table_remove(&table, 5000);
	assert_null(process_table_find(&table, 500));
	assert_non_null(process_table_find(&table, 501));
	process_table_forget(&table, 1);
	for (size_t i = 0; i < table.count; i++)
		assert_int_equal(table.entries[i]->round, 1);
	assert_in_range(table.count, 499, 500);
	process_table_fini(&table);
}

/* A child that writes a profile has copies of all descriptors: one that is closed here is out of the set. */
static void test_closed_for_the_set_too(void **state)
{
	struct process_table table = {.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	struct epoll_event event;
	bool is_new;

	(void)state;
	struct process_entry *entry = enter(&table, 10, 1, 100, &is_new);
	entry->pidfd = eventfd(1, EFD_CLOEXEC);
	int copy = dup(entry->pidfd);
	assert_int_equal(epoll_set_add(table.epoll_fd, entry->pidfd), 0);
	assert_int_equal(epoll_wait(table.epoll_fd, &event, 1, 0), 1);
	enter(&table, 10, 2, 100, &is_new); /* another process */
	assert_int_equal(epoll_wait(table.epoll_fd, &event, 1, 0), 0);
	close(copy);
	close(table.epoll_fd);
	process_table_fini(&table);
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
