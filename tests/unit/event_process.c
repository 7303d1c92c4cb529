/* SPDX-License-Identifier: Apache-2.0 */
/* Processes whose events are sampled: when one has ended, and when there is no telling by a descriptor. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/events/event_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void end_without_descriptors(void **state)
{
	struct event_processes subjects = {.modules = modules_new(4)};
	struct rlimit before, none;
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	struct event_process *s = event_processes_add(&subjects, child, NULL, 0);
	assert_non_null(s);
	assert_false(target_has_ended(&s->target));
	int fds = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(fds);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fds;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool alive = !target_has_ended(&s->target);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	bool ended = target_has_ended(&s->target);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(alive);
	assert_true(ended);
	assert_true(target_has_ended(&s->target));
	event_processes_fini(&subjects);
	modules_free(subjects.modules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(end_without_descriptors)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
