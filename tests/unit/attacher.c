/* SPDX-License-Identifier: Apache-2.0 */
/* The child process that attaches: what it says reaches its parent, and if it says nothing that goes on. */
#include "sampler/inject/attacher.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"
#include "tests/unit/unkillable.h"

static int until[2]; /* the end of the second releases who cannot be killed */

static int answer_at_once(struct attachment *attachment, const struct attachment_wish *wish)
{
	(void)wish;
	*attachment = (struct attachment){.tries = 7};
	return 0;
}

static int answer_when_given_up(struct attachment *attachment, const struct attachment_wish *wish)
{
	struct pollfd cancel = {.fd = wish->cancel_fd, .events = POLLIN};

	*attachment = (struct attachment){.reason = "given up"};
	return poll(&cancel, 1, -1) == 1 ? -ECANCELED : 0;
}

static int answer_the_limit(struct attachment *attachment, const struct attachment_wish *wish)
{
	struct rlimit limit;

	(void)wish;
	getrlimit(RLIMIT_CPU, &limit);
	*attachment = (struct attachment){.tries = (uint32_t)limit.rlim_max};
	return 0;
}

static int answer_never(struct attachment *attachment, const struct attachment_wish *wish)
{
	(void)attachment;
	(void)wish;
	for (;;)
		pause();
	return 0;
}

static int answer_never_and_stay(struct attachment *attachment, const struct attachment_wish *wish)
{
	close(until[1]);
	return unkillable_become(until[0]) ? answer_never(attachment, wish) : 0;
}

static void the_result_is_that_of_the_child(void **state)
{
	struct attacher attacher;
	struct attachment attachment;

	(void)state;
	assert_int_equal(attacher_start(&attacher, answer_at_once, &(struct attachment_wish){.pid = 1}), 0);
	assert_int_equal(attacher_finish(&attacher, &attachment), 0);
	assert_int_equal(attachment.tries, 7);
	assert_int_equal(attacher.fd, -1);
	assert_int_equal(
	    attacher_start(&attacher, answer_when_given_up, &(struct attachment_wish){.pid = 1}), 0);
	attacher_give_up(&attacher);
	assert_int_equal(attacher_finish(&attacher, &attachment), -ECANCELED);
	assert_string_equal(attachment.reason, "given up");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
}

/* A target could make it read without end. */
static void its_processor_time_is_limited(void **state)
{
	struct attacher attacher;
	struct attachment attachment;

	(void)state;
	assert_int_equal(attacher_start(&attacher, answer_the_limit, &(struct attachment_wish){.pid = 1}), 0);
	assert_int_equal(attacher_finish(&attacher, &attachment), 0);
	assert_int_equal(attachment.tries, ATTACHER_CPU_S);
}

/* One can be killed, the other cannot. The patience is for both together, from when they were given up. */
static void who_never_answers_is_not_waited_for(void **state)
{
	struct attacher attachers[2];
	struct attachment attachment;
	struct region region;
	pid_t pids[2];

	(void)state;
	fixture_open(&region, 1);
	const struct attachment_wish wish = {.pid = 1, .region = &region};
	assert_int_equal(pipe(until), 0);
	assert_int_equal(attacher_start(&attachers[0], answer_never, &wish), 0);
	assert_int_equal(attacher_start(&attachers[1], answer_never_and_stay, &wish), 0);
	assert_int_equal(atomic_load(&region_header(&region)->attaching), REGION_ATTACHING);
	for (int i = 0; i < 2; i++) {
		pids[i] = attachers[i].child;
		assert_false(attacher_is_late(&attachers[i]));
		attacher_give_up(&attachers[i]);
	}
	assert_int_equal(attacher_finish(&attachers[0], &attachment), -EIO);
	assert_string_equal(attachment.reason, "the attaching process does not answer");
	const uint64_t given_up_ns = attachers[1].given_up_ns;
	attacher_give_up(&attachers[1]);
	assert_int_equal(attachers[1].given_up_ns, given_up_ns); /* nothing begins anew */
	assert_int_equal(attacher_finish(&attachers[1], &attachment), -EIO);
	assert_string_equal(attachment.reason, "the attaching process does not answer");
	/* What the target does yet is for nobody. */
	assert_int_equal(atomic_load(&region_header(&region)->attaching), REGION_GIVEN_UP);
	assert_int_equal(atomic_load(&region_header(&region)->mode), REGION_MODE_OFF);
	assert_int_equal(waitpid(pids[0], NULL, WNOHANG), -1);
	assert_int_equal(waitpid(pids[1], NULL, WNOHANG), 0); /* killed, and still there */
	close(until[1]);
	assert_int_equal(waitpid(pids[1], NULL, 0), pids[1]);
	close(until[0]);
	region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_result_is_that_of_the_child),
	    cmocka_unit_test(its_processor_time_is_limited),
	    cmocka_unit_test(who_never_answers_is_not_waited_for),
	};

	return cmocka_run_group_tests_name("attacher", tests, NULL, NULL);
}
