/* SPDX-License-Identifier: Apache-2.0 */
/* How a process ended, in words, and which ends a user wants to hear of. */
#include "sampler/write/end_phrase.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void an_end_as_a_phrase(void **state)
{
	const struct {
		enum target_end end;
		int status;
		const char *text;
	} ends[] = {{TARGET_EXITED, 0, "exited with status 0"},
	    {TARGET_EXITED, 255 << 8, "exited with status 255"},
	    {TARGET_EXITED, SIGKILL, "was killed by SIGKILL"},
	    {TARGET_EXITED, SIGSEGV | WCOREFLAG, "was killed by SIGSEGV"},
	    {TARGET_EXITED, 40, "was killed by SIG?"}, /* a real-time signal has no name */
	    {TARGET_EXEC, 0, "executed another program"},
	    {TARGET_GONE, 7 << 8, "has ended; how is not known (not a child of heaptap)"},
	    {TARGET_UNSEEN, 0, "had ended before heaptap saw it; how is not known"},
	    {TARGET_ALIVE, 0, "is running"}};
	char text[96];
	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const struct target target = {.end = ends[i].end, .status = ends[i].status};

		end_phrase_plain(&target, text, sizeof(text));
		assert_string_equal(text, ends[i].text);
	}
	memset(text, 'x', sizeof(text));
	const struct target target = {.end = TARGET_EXITED};
	end_phrase_plain(&target, text, 7);
	assert_string_equal(text, "exited");
	assert_int_equal(text[7], 'x');
	const struct target unseen = {
	    .end = TARGET_EXEC, .unprofiled = "executed /bin/sudo, which is not profiled"};
	end_phrase_plain(&unseen, text, sizeof(text));
	assert_string_equal(text, unseen.unprofiled);
}

/* The OOM killer's count says how many it took while we watched, not that this one was among them. */
static void a_kill_beside_the_oom_killer(void **state)
{
	static const char counter[] = "oom 3\noom_kill 5\n";
	struct oom_watch watch = {.fd = memfd_create("memory.events", MFD_CLOEXEC), .before = 3};
	struct target target = {.end = TARGET_EXITED, .status = SIGKILL};
	char text[END_PHRASE_BYTES];

	(void)state;
	assert_int_equal(write(watch.fd, counter, sizeof(counter) - 1), sizeof(counter) - 1);
	end_phrase_describe(&target, &watch, text, sizeof(text));
	assert_string_equal(text, "was killed by SIGKILL; the OOM killer took 2 processes meanwhile");
	strcpy(watch.cgroup, "/redis.service");
	end_phrase_describe(&target, &watch, text, sizeof(text));
	assert_string_equal(text,
	    "was killed by SIGKILL; the OOM killer took 2 in its memory cgroup /redis.service meanwhile");
	target.status = SIGSEGV; /* it takes by SIGKILL only */
	end_phrase_describe(&target, &watch, text, sizeof(text));
	assert_string_equal(text, "was killed by SIGSEGV");
	close(watch.fd);
}

static void which_ends_alarm(void **state)
{
	const struct {
		enum target_end end;
		int status;
		enum end_phrase_alarm alarm;
	} ends[] = {{TARGET_EXITED, 0, END_PHRASE_QUIET}, {TARGET_EXITED, 139 << 8, END_PHRASE_QUIET},
	    {TARGET_EXITED, SIGPIPE, END_PHRASE_QUIET}, {TARGET_GONE, SIGKILL, END_PHRASE_QUIET},
	    {TARGET_EXITED, SIGTERM, END_PHRASE_TOLD}, {TARGET_EXITED, SIGKILL, END_PHRASE_KILLED},
	    {TARGET_EXITED, SIGABRT | WCOREFLAG, END_PHRASE_KILLED}};
	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const struct target target = {.end = ends[i].end, .status = ends[i].status};

		assert_int_equal(end_phrase_alarm(&target), ends[i].alarm);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_end_as_a_phrase),
	    cmocka_unit_test(a_kill_beside_the_oom_killer),
	    cmocka_unit_test(which_ends_alarm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
