/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says of kernels and capabilities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/cmd/doctor/doctor_machine.h"

#include <string.h>

#define CAP(bit) (UINT64_C(1) << (bit))
enum { IPC_LOCK = 14, SYS_ADMIN = 21, PERFMON = 38 };

static void kernels_by_their_number(void **state)
{
	assert_true(doctor_machine_new_enough("4.18.0-553.el8_10.x86_64"));
	assert_true(doctor_machine_new_enough("5.4.0-1.el7"));
	assert_true(doctor_machine_new_enough("6.12.95+deb13-cloud-amd64"));
	assert_true(doctor_machine_new_enough("10.0"));
	assert_false(doctor_machine_new_enough("4.17.19"));
	assert_false(doctor_machine_new_enough("4.9.0-19-amd64"));
	assert_false(doctor_machine_new_enough("3.10.0-1160.el7.x86_64"));
	assert_true(doctor_machine_new_enough("unknown"));
}

static void capabilities_by_their_own_names(void **state)
{
	char text[128];

	doctor_machine_describe_capabilities(0, text, sizeof(text));
	assert_string_equal(text, "");
	doctor_machine_describe_capabilities(CAP(PERFMON), text, sizeof(text));
	assert_string_equal(text, ", CAP_PERFMON");
	/* One does not stand for the other. */
	doctor_machine_describe_capabilities(CAP(SYS_ADMIN) | CAP(IPC_LOCK), text, sizeof(text));
	assert_string_equal(text, ", CAP_SYS_ADMIN, CAP_IPC_LOCK");
	doctor_machine_describe_capabilities(~UINT64_C(0), text, 20);
	assert_string_equal(text, ", CAP_SYS_ADMIN");
}

static void the_remedy_is_what_is_missing(void **state)
{
	/* Uprobes are not to be had by CAP_PERFMON (seen on 6.12 and 6.18). */
	assert_non_null(strstr(doctor_machine_uprobe_remedy(0, FEATURES_REACHED), "CAP_SYS_ADMIN"));
	assert_non_null(strstr(doctor_machine_uprobe_remedy(CAP(PERFMON), FEATURES_REACHED), "run as root"));
	assert_null(strstr(doctor_machine_uprobe_remedy(CAP(SYS_ADMIN), FEATURES_REACHED), "run as root"));
	assert_non_null(strstr(doctor_machine_uprobe_remedy(CAP(SYS_ADMIN), FEATURES_FILTERED), "seccomp"));
	const char *filtered = doctor_machine_breakpoint_remedy(FEATURES_FILTERED, 2);
	assert_null(strstr(filtered, "sysctl"));
	assert_non_null(strstr(filtered, "--cap-add PERFMON,SYS_ADMIN"));
	/* Above 2, CAP_PERFMON is none (seen on Debian's 6.1 at 3), whatever the filter would let through. */
	assert_non_null(strstr(doctor_machine_breakpoint_remedy(FEATURES_FILTERED, 3), "--privileged"));
	for (enum features_obstacle obstacle = FEATURES_REACHED; obstacle <= FEATURES_PARANOID; obstacle++) {
		const char *remedy = doctor_machine_breakpoint_remedy(obstacle, 3);

		if (obstacle == FEATURES_FILTERED)
			continue;
		assert_non_null(strstr(remedy, "sudo sysctl kernel.perf_event_paranoid=2"));
		assert_non_null(strstr(remedy, "CAP_PERFMON is refused"));
	}
	/* At 2 and below that setting is not what refuses them. */
	assert_null(strstr(doctor_machine_breakpoint_remedy(FEATURES_REACHED, 2), "sysctl"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(kernels_by_their_number),
	    cmocka_unit_test(capabilities_by_their_own_names),
	    cmocka_unit_test(the_remedy_is_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
