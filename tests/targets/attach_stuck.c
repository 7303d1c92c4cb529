/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that never is at a safe point while it is told so: its only thread is in the loader then, in the
 * constructor of a library.
 *
 *     attach_stuck LIBRARY [beside]    says "ready"; the line "in" makes it load LIBRARY
 *                                      (attach_stuck_module), and the line after that lets it return from
 *                                      there; at the end of the input it ends with 0 if every line was read
 *                                      once. beside: another thread waits in poll, and is at a safe point
 */
/* build: -ldl */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One line, without stdio: nothing of it is in memory when the library reads the next. */
static int read_line(char *line, size_t bytes)
{
	size_t length = 0;
	while (length + 1 < bytes && read(0, line + length, 1) == 1 && line[length] != '\n')
		length++;
	line[length] = '\0';
	return length > 0;
}

static void *wait_beside(void *argument)
{
	(void)poll(NULL, 0, -1);
	return argument;
}

int main(int argc, char *argv[])
{
	char line[16];
	pthread_t thread;
	if (argc == 3 && pthread_create(&thread, NULL, wait_beside, NULL) != 0)
		return 3;
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (argc >= 2 && read_line(line, sizeof(line))) {
		void *library = strcmp(line, "in") == 0 ? dlopen(argv[1], RTLD_NOW) : NULL;
		if (library)
			dlclose(library);
		free(malloc(1000));
		puts(library ? "out" : "other");
	}
	return 0;
}
