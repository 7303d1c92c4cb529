/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/arguments.h"

#include "proto/region.h"

#include <limits.h>
#include <stddef.h>

extern char **environ;

/* Set by the loader to where the kernel put argc; argv, environment and auxiliary vector follow. */
extern void *__libc_stack_end __attribute__((weak));

/* The array of pointers behind argc; NULL: it does not look like one. */
static char **find(long *count)
{
	if (!&__libc_stack_end || !__libc_stack_end)
		return NULL;
	long *words = __libc_stack_end;
	char **argv = (char **)(words + 1);
	*count = words[0];
	return words[0] >= 0 && words[0] < INT_MAX && !argv[words[0]] ? argv : NULL;
}

char **arguments_find(void)
{
	long count;

	return find(&count);
}

/* Before the libc's own constructor (a library linked with -z initfirst) `environ` is not set yet. */
char **arguments_environment(void)
{
	long count;
	char **argv = environ ? NULL : find(&count);

	return argv ? argv + count + 1 : environ;
}

void arguments_write(char *area)
{
	size_t at = 0;

	for (char **argument = arguments_find(); argument && *argument; argument++) {
		if (at && at < REGION_COMMAND_LINE_BYTES - 1)
			area[at++] = ' ';
		for (const char *c = *argument; *c && at < REGION_COMMAND_LINE_BYTES - 1; c++)
			area[at++] = *c;
	}
}
