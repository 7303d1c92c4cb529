/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says about this process, a child of it, a zombie, nobody; and when we cannot look. */
#include "sampler/linux/thread_facts.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/descriptors.h"

static pid_t start_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	return child;
}

static void a_child_lives_and_ends(void **state)
{
	siginfo_t info;
	pid_t child = start_child();
	struct thread_facts facts = thread_facts_read(child);

	assert_int_equal(facts.pid, child);
	assert_int_equal(facts.parent, getpid());
	assert_int_not_equal(facts.inner, 0);
	assert_true(facts.like_us);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(thread_facts_read(child).pid, 0); /* a zombie */
	assert_int_equal(waitpid(child, NULL, 0), child);
	facts = thread_facts_read(child);
	assert_int_equal(facts.pid, 0);
	assert_false(facts.unread);
	assert_int_equal(thread_facts_birth(child).ticks, 0);
}

/* Fields 22, 28 and 51 of proc(5). */
static void when_it_was_forked(void **state)
{
	char text[1024], *rest;
	FILE *file = fopen("/proc/self/stat", "r");

	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	const char *field = strtok_r(strrchr(text, ')') + 1, " ", &rest);
	for (int i = 3; i < 22 && field; i++)
		field = strtok_r(NULL, " ", &rest);
	assert_non_null(field);
	struct thread_birth birth = thread_facts_birth(getpid());
	assert_int_equal(birth.ticks, strtoull(field, NULL, 10));
	assert_in_range(thread_facts_now(), birth.ticks, birth.ticks + UINT32_MAX);
	for (int i = 22; i < 28 && field; i++)
		field = strtok_r(NULL, " ", &rest);
	assert_non_null(field);
	assert_int_not_equal(birth.stack_start, 0);
	assert_int_equal(birth.stack_start, strtoull(field, NULL, 10));
	for (int i = 28; i < 51 && field; i++)
		field = strtok_r(NULL, " ", &rest);
	assert_non_null(field);
	assert_int_not_equal(birth.environment_end, 0);
	assert_int_equal(birth.environment_end, strtoull(field, NULL, 10));
}

static void without_descriptors_nothing_is_said(void **state)
{
	struct rlimit before = descriptors_take_away();
	struct thread_facts facts = thread_facts_read(getpid());

	descriptors_give_back(before);
	assert_true(facts.unread);
	assert_int_equal(facts.pid, 0);
	assert_false(thread_facts_read(getpid()).unread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_child_lives_and_ends),
	    cmocka_unit_test(when_it_was_forked),
	    cmocka_unit_test(without_descriptors_nothing_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
