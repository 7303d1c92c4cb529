/* SPDX-License-Identifier: Apache-2.0 */
/* What heap and events share of a process: its name, its maps, its end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/target/target.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void maps_are_read_while_it_executes_our_program(void **state)
{
	struct modules *modules = modules_new(4);
	struct target target;

	(void)state;
	assert_true(target_init(&target, getpid(), 1));
	target.maps = maps_new(modules, getpid(), false);
	assert_non_null(target.maps);
	assert_false(target_read_maps(&target, 1000, 0)); /* nobody has checked the pid */
	target.readable = true;
	target.code_address = UINT64_MAX - 1; /* is mapped nowhere: another program's maps */
	assert_true(target_read_maps(&target, 1000, 0));
	assert_int_equal(maps_count(target.maps), 0);
	assert_false(target_read_maps(&target, 1010, 11));
	target.code_address = (uintptr_t)maps_are_read_while_it_executes_our_program;
	assert_true(target_read_maps(&target, 1011, 11));
	assert_non_null(maps_find(target.maps, target.code_address));
	target_fini(&target);
	modules_free(modules);
}

static void the_end_is_seen_with_and_without_a_descriptor(void **state)
{
	pid_t child = fork();
	struct target by_pidfd, by_pid;

	(void)state;
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(target_init(&by_pidfd, child, 0) && target_init(&by_pid, child, 0));
	by_pidfd.pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_true(by_pidfd.pidfd >= 0);
	assert_false(target_has_ended(&by_pidfd));
	assert_false(target_has_ended(&by_pid));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(target_has_ended(&by_pidfd));
	assert_true(target_has_ended(&by_pid));
	target_fini(&by_pidfd);
	target_fini(&by_pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(maps_are_read_while_it_executes_our_program),
	    cmocka_unit_test(the_end_is_seen_with_and_without_a_descriptor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
