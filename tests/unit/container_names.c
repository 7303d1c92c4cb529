/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/container_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEX  "3726184226f5d3147c25fdeab5b60097e378e8a720503a5e19ecfdf29f869860"
#define TASK "34dc0b5e626f2c5c4c5170e34b10e765"
#define UUID "2d3da189-6407-48e3-9ab6-78188d75e609"

/* Paths as these runtimes make them. */
static void paths_tell_unit_container_and_pod(void **state)
{
	static const struct {
		const char *path, *unit, *container, *pod;
	} cases[] = {
	    {"/", "", "", ""},
	    {"/system.slice/redis-server.service", "redis-server.service", "", ""},
	    {"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", "", ""},
	    {"/system.slice/php.service/worker", "php.service", "", ""},
	    {"/user.slice/user-1000.slice/user@1000.service/app.slice/mail.service", "mail.service", "", ""},
	    {"/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "", ""},
	    {"/system.slice/docker-" HEX ".scope", "", HEX, ""},
	    {"/docker/" HEX, "", HEX, ""},
	    {"/system.slice/docker.service/docker/" HEX, "", HEX, ""},
	    {"/system.slice/containerd.service/"
	     "kubepods-burstable-pod2d3da189_6407_48e3_9ab6_78188d75e609.slice:"
	     "cri-containerd:" HEX,
	        "", HEX, UUID},
	    {"/kubepods.slice/kubepods-burstable.slice/"
	     "kubepods-burstable-pod2d3da189_6407_48e3_9ab6_78188d75e609.slice/cri-containerd-" HEX ".scope",
	        "", HEX, UUID},
	    {"/kubepods/besteffort/pod" UUID "/" HEX, "", HEX, UUID},
	    {"/kubepods/besteffort/pod" UUID, "", "", UUID},
	    {"/kubepods/burstable/pod" TASK "/" HEX, "", HEX, TASK},
	    {"/machine.slice/libpod-" HEX ".scope/container", "", HEX, ""},
	    {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" HEX ".scope/container",
	        "user@1000.service", HEX, ""},
	    {"/system.slice/web.service/libpod-payload-" HEX, "web.service", HEX, ""},
	    {"/ecs/" TASK "/" TASK "-3394022069", "", TASK "-3394022069", ""},
	    {"/garden/6f265890-5165-7fab-6b52-18d1", "", "6f265890-5165-7fab-6b52-18d1", ""},
	    {"/" UUID, "", UUID, ""},
	    {"/lxc.payload.web", "", "web", ""},
	    {"/system.slice/x" HEX ".service", "x" HEX ".service", "", ""},
	    {"/.service", "", "", ""},
	    {"/../../system.slice/a.service", "a.service", "", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct container_names names;

		container_names_of_path(&names, cases[i].path);
		assert_string_equal(names.path, cases[i].path);
		assert_string_equal(names.unit, cases[i].unit);
		assert_string_equal(names.container_id, cases[i].container);
		assert_string_equal(names.pod_uid, cases[i].pod);
	}
}

static void the_line_that_tells_most_counts(void **state)
{
	struct container_names names;

	container_names_parse(&names, "0::/system.slice/a.service\n");
	assert_string_equal(names.unit, "a.service");
	/* hybrid, nothing in version 2 */
	container_names_parse(&names,
	    "12:pids:/x\n11:memory:/system.slice/m.service\n1:name=systemd:/system.slice/s.service\n0::/\n");
	assert_string_equal(names.unit, "m.service");
	container_names_parse(&names, "3:cpu,cpuacct:/\n1:name=systemd:/system.slice/s.service\n");
	assert_string_equal(names.unit, "s.service");
	container_names_parse(&names, "9:memory:/docker/" HEX "\n0::/system.slice/v2.service\n");
	assert_string_equal(names.unit, "v2.service");
	container_names_parse(&names, "");
	assert_string_equal(names.path, "");
	container_names_parse(&names, "garbage\n::\n7:x\n0::relative\n");
	assert_string_equal(names.path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(paths_tell_unit_container_and_pod),
	    cmocka_unit_test(the_line_that_tells_most_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
