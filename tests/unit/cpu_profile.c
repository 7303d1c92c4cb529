/* SPDX-License-Identifier: Apache-2.0 */
/* Why there is no CPU profile. This program is its own heaptap: one that has nothing to write. */
#include "sampler/core/cpu_profile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/unit/stranger.h"

enum { ASKER = 5 };

static int given;

static void give(void *context, uint64_t asker, pid_t pid, int fd)
{
	(void)context;
	assert_int_equal(asker, ASKER);
	assert_true(pid > 0);
	given = fd;
}

static void end(struct cpu_profiles *profiles)
{
	int status;
	const pid_t child = profiles->items[0].child;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(cpu_profiles_reap(profiles, child + 1, status));
	assert_true(cpu_profiles_reap(profiles, child, status));
	assert_int_equal(profiles->items[0].child, 0);
}

static void a_process_that_ends_meanwhile_has_ended(void **state)
{
	struct cpu_profiles profiles = {.giver = {give, NULL}};
	struct stranger stranger = stranger_start(NULL, NULL);
	const pid_t pid = stranger.pid;

	(void)state;
	assert_int_equal(cpu_profiles_start(&profiles, pid, 1000, ASKER, "/nonexistent/cpu"), 0);
	end(&profiles);
	assert_int_equal(given, -EACCES); /* it runs: that was not the reason */
	assert_int_equal(cpu_profiles_start(&profiles, pid, 1000, ASKER, "/nonexistent/cpu"), 0);
	stranger_end(&stranger);
	end(&profiles);
	assert_int_equal(given, -ESRCH);
	assert_int_equal(cpu_profiles_start(&profiles, pid, 1000, ASKER, "/nonexistent/cpu"), 0);
	end(&profiles);
	assert_int_equal(given, -ESRCH);
}

/* Those whose client has hung up have their places until their children have ended. */
static void without_a_place_it_says_so(void **state)
{
	struct cpu_profiles profiles = {.giver = {give, NULL}};
	struct stranger stranger = stranger_start(NULL, NULL);
	const pid_t pid = stranger.pid;
	int status;

	(void)state;
	for (int i = 0; i < CPU_PROFILES; i++)
		assert_int_equal(cpu_profiles_start(&profiles, pid, 1000, ASKER, "/nonexistent/cpu"), 0);
	cpu_profiles_cancel(&profiles, ASKER);
	assert_int_equal(cpu_profiles_start(&profiles, pid, 1000, ASKER, "/nonexistent/cpu"), -EBUSY);
	const pid_t child = profiles.items[3].child;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(cpu_profiles_reap(&profiles, child, status));
	assert_int_equal(cpu_profiles_start(&profiles, pid, 1000, ASKER, "/nonexistent/cpu"), 0);
	cpu_profiles_fini(&profiles);
	stranger_end(&stranger);
}

static void at_our_own_end_who_waits_is_told(void **state)
{
	struct cpu_profiles profiles = {.giver = {give, NULL}};
	struct stranger stranger = stranger_start(NULL, NULL);
	const pid_t pid = stranger.pid;

	(void)state;
	given = 0;
	assert_int_equal(cpu_profiles_start(&profiles, pid, 1000, ASKER, "/nonexistent/cpu"), 0);
	cpu_profiles_fini(&profiles);
	assert_int_equal(given, -ECANCELED);
	assert_int_equal(cpu_profiles_start(&profiles, pid, 1000, ASKER, "/nonexistent/cpu"), 0);
	stranger_end(&stranger);
	cpu_profiles_fini(&profiles);
	assert_int_equal(given, -ESRCH);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_process_that_ends_meanwhile_has_ended),
	    cmocka_unit_test(at_our_own_end_who_waits_is_told),
	    cmocka_unit_test(without_a_place_it_says_so),
	};

	(void)argv;
	if (argc > 1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
