/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/books/unprofiled.h"

#define IS(name, arguments) unprofiled_is_container_starter(name, arguments, sizeof(arguments))

static void who_starts_containers(void **state)
{
	assert_true(IS("podman", "podman\0--root\0/r\0run\0--rm\0image\0true"));
	assert_true(IS("runc", "/usr/sbin/runc\0run\0id"));
	assert_true(IS("docker", "docker\0compose\0up"));
	assert_true(IS("crun", "crun\0exec\0id\0sh"));
}

static void who_does_not(void **state)
{
	assert_false(IS("podman", "podman\0ps"));
	assert_false(IS("podman", "podman"));
	assert_false(IS("run", "run\0run"));
	assert_false(IS("redis-server", "redis-server\0run"));
	assert_false(IS("podmanx", "podman\0run"));
	/* A name alone, and no arguments: it has ended. */
	assert_false(unprofiled_is_container_starter("podman", "", 0));
	/* The first word is the name that it was executed by. */
	assert_false(IS("runc", "run\0list"));
}

static void the_user_passes_it_on(void **state)
{
	assert_false(IS("podman", "podman\0run\0-e\0LD_PRELOAD\0-e\0HEAPTAP\0image"));
	assert_false(IS("podman", "podman\0run\0--env=LD_PRELOAD\0image"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_starts_containers),
	    cmocka_unit_test(who_does_not),
	    cmocka_unit_test(the_user_passes_it_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
