/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose system calls end it while it computes (Syscall User Dispatch), as those of Windows' code do
 * something else in wine. Prints "ready", and why not if it cannot; ends at the end of its input. With an
 * argument it computes until a signal ends it.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum { SPINS = 3000 * 1000, SET_DISPATCH = 59, DISPATCH_ON = 1, ALLOW = 0, BLOCK = 1 };

static volatile char selector = ALLOW;

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	(void)argv;
	if (prctl(SET_DISPATCH, DISPATCH_ON, 0, 0, &selector) != 0) {
		puts("ready");
		perror("not dispatched");
		return 0;
	}
	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		selector = BLOCK;
		for (volatile int i = 0; i < SPINS || argc > 1; i += argc == 1)
			;
		selector = ALLOW;
	}
	return 0;
}
