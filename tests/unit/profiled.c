/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say of their sampler, in environments of any length. */
#include "sampler/inject/profiled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/region_pool.h"
#include "tests/unit/stranger.h"

/* More than anybody would look through: it costs who has it nothing, since nothing of it was ever written. */
#define ENDLESS_BYTES (UINT64_C(64) << 30)
#define VARIABLE      REGION_ENV "=/proc/4711/fd/5"

struct environment {
	size_t bytes, at; /* where the variable is */
};

/* Where the kernel says that this process' memory is. */
static bool read_places(struct prctl_mm_map *map)
{
	enum { CODE = 26, STACK = 28, DATA = 45, BREAK = 47, ARGUMENTS = 48, FIELDS = 52 };
	uint64_t fields[FIELDS + 1] = {0};
	char text[2048];
	FILE *file = fopen("/proc/self/stat", "re");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	text[length] = '\0';
	char *at = strrchr(text, ')');
	if (!at)
		return false;
	at += 3; /* the state, a letter */
	for (int field = 4; field <= FIELDS; field++)
		fields[field] = strtoull(at + 1, &at, 10);
	*map = (struct prctl_mm_map){.start_code = fields[CODE],
	    .end_code = fields[CODE + 1],
	    .start_stack = fields[STACK],
	    .start_data = fields[DATA],
	    .end_data = fields[DATA + 1],
	    .start_brk = fields[BREAK],
	    .brk = (uintptr_t)sbrk(0),
	    .arg_start = fields[ARGUMENTS],
	    .arg_end = fields[ARGUMENTS + 1],
	    .exe_fd = (uint32_t)-1};
	return true;
}

/* What the kernel shows of it from now on. No privilege is needed for that. */
static bool become(const struct environment *environment)
{
	struct prctl_mm_map map;
	char *start = mmap(NULL, environment->bytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (start == MAP_FAILED || !read_places(&map))
		return false;
	memcpy(start + environment->at, VARIABLE, sizeof(VARIABLE));
	map.env_start = (uintptr_t)start;
	map.env_end = map.env_start + environment->bytes;
	return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) == 0;
}

static void hold(int fd, void *argument)
{
	char byte = (char)!become(argument);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static pid_t sampler_of(struct environment environment)
{
	char byte;
	pid_t sampler = -1;
	struct stranger target = stranger_start(hold, &environment);

	assert_int_equal(read(target.fd, &byte, 1), 1);
	if (byte == 0)
		sampler = profiled_sampler(target.pid);
	stranger_end(&target);
	if (byte != 0) {
		print_message("no process can say here where its environment is\n");
		skip();
	}
	return sampler;
}

/* The shell's completion asks, of the processes of all users. */
static void an_environment_is_not_read_for_ever(void **state)
{
	(void)state;
	alarm(60); /* it took some minutes */
	assert_int_equal(sampler_of((struct environment){ENDLESS_BYTES, ENDLESS_BYTES / 2}), 0);
	alarm(0);
}

static void the_sampler_is_found(void **state)
{
	(void)state;
	assert_int_equal(sampler_of((struct environment){4096, 0}), 4711);
	assert_int_equal(sampler_of((struct environment){4096, 200}), 4711);
	assert_int_equal(sampler_of((struct environment){4096, 4096 - sizeof(VARIABLE)}), 4711);
	assert_int_equal(sampler_of((struct environment){128 << 10, 100 << 10}), 4711);
	assert_int_equal(sampler_of((struct environment){1 << 20, 100}), 4711);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_sampler_is_found),
	    cmocka_unit_test(an_environment_is_not_read_for_ever),
	};

	return cmocka_run_group_tests_name("profiled", tests, NULL, NULL);
}
