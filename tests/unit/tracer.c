/* SPDX-License-Identifier: Apache-2.0 */
/* Who stops a thread lets it go, or is ended: here by those who forget it, or take too long. */
#include "sampler/inject/tracer.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/linux/proc.h"
#include "tests/unit/stranger.h"

static void pause_1_ms(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
}

/* Until the process is in a tracing stop, or is not. */
static bool await_stop(pid_t pid, bool stops)
{
	for (int ms = 0; ms < STRANGER_DEADLINE_MS; ms++, pause_1_ms())
		if ((proc_state(pid) == 't') == stops)
			return true;
	return false;
}

static void who_answers_late_keeps_nobody(void **state)
{
	struct stranger target = stranger_start(NULL, NULL);
	struct tracer *tracer = tracer_new(-1);
	const struct remote_call call = {.function = 1};
	int error = tracer_stop(tracer, target.pid);

	if (error == -EPERM) {
		print_message("no process can be stopped here\n");
		skip();
	}
	assert_int_equal(error, 0);
	assert_true(await_stop(target.pid, false));
	assert_int_equal(tracer_end(tracer, &call), -EAGAIN); /* it is not called any more */
	for (int i = 0; i < 3; i++) {                         /* nothing of a stop is left for the next */
		assert_int_equal(tracer_stop(tracer, target.pid), 0);
		assert_int_equal(tracer_end(tracer, NULL), -EAGAIN);
		assert_true(await_stop(target.pid, false));
	}
	tracer_free(tracer);
	stranger_end(&target);
}

/* SIGALRM, 0.4 s after the stop. */
static void who_never_lets_go_is_ended(void **state)
{
	static struct stopped_thread thread = {.cancel_fd = -1};
	struct stranger target = stranger_start(NULL, NULL);
	int status;
	pid_t child = fork();

	if (child == 0) {
		int error = stopped_thread_stop(&thread, target.pid, UINT64_C(10) * 1000000000);

		while (!error)
			pause();
		_exit(-error);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EPERM) {
		print_message("no process can be stopped here\n");
		skip();
	}
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
	assert_true(await_stop(target.pid, false));
	stranger_end(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_answers_late_keeps_nobody),
	    cmocka_unit_test(who_never_lets_go_is_ended),
	};

	return cmocka_run_group_tests_name("tracer", tests, NULL, NULL);
}
