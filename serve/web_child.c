/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/web_child.h"

#include "pprof/text/log_line.h"
#include "sampler/linux/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { END_MS = 10000 }; /* for it to end */

/* waitpid(2) for so long at most: 0 if it has not ended. SIGCHLD is blocked. */
static pid_t wait_for(pid_t web, int *status, uint64_t patience_ms)
{
	const uint64_t end_ns = clock_now_ns() + patience_ms * CLOCK_NS_PER_MS;
	sigset_t child;
	pid_t ended;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while ((ended = waitpid(web, status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
		uint64_t now_ns = clock_now_ns(), left_ns = now_ns < end_ns ? end_ns - now_ns : 0;
		const struct timespec left = {
		    (time_t)(left_ns / CLOCK_NS_PER_S), (long)(left_ns % CLOCK_NS_PER_S)};

		if (!left_ns)
			return 0;
		(void)sigtimedwait(&child, NULL, &left);
	}
	return ended;
}

int web_child_await(pid_t web)
{
	pid_t ended;
	int status;

	ended = wait_for(web, &status, END_MS);
	if (ended == 0) {
		log_line("the web process does not end, and is killed");
		kill(web, SIGKILL);
		waitpid(web, &status, 0);
		return EXIT_FAILURE;
	}
	if (ended < 0)
		return EXIT_FAILURE;
	if (WIFSIGNALED(status)) {
		log_line("the web process was killed by signal %d (%s)", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
		return EXIT_FAILURE;
	}
	return WEXITSTATUS(status);
}
