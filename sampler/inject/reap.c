/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/reap.h"

#include "pprof/text/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

/* How long we wait for a killed child. */
static const uint64_t killed_ns = CLOCK_NS_PER_S;

/* True if the child has ended, or was reaped elsewhere. */
static bool await_end(pid_t child, uint64_t limit_ns)
{
	const struct timespec pause = {.tv_nsec = CLOCK_NS_PER_MS};
	const uint64_t end_ns = clock_now_ns() + limit_ns;

	for (;;) {
		pid_t got = waitpid(child, NULL, WNOHANG);

		if (got == child || (got < 0 && errno != EINTR))
			return true;
		if (clock_now_ns() >= end_ns)
			return false;
		nanosleep(&pause, NULL);
	}
}

void reap_within(pid_t child, uint64_t patience_ns)
{
	if (await_end(child, patience_ns))
		return;
	kill(child, SIGKILL);
	(void)await_end(child, killed_ns);
}
