/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Adds the signal to the mask, and sets its disposition to the default, whatever we inherited: while
 * SIGCHLD is ignored, no writer can be waited for. */
static void take(sigset_t *mask, int number)
{
	sigaddset(mask, number);
	signal(number, SIG_DFL);
}

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int signals_open(enum signals_role role, int snapshot)
{
	static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t mask;

	sigemptyset(&mask);
	if (role != SIGNALS_STOPS)
		take(&mask, SIGCHLD);
	bool stoppable = role == SIGNALS_FOREGROUND || role == SIGNALS_STOPS;
	for (size_t i = 0; stoppable && i < sizeof(stops) / sizeof(stops[0]); i++)
		if (!is_ignored(stops[i])) /* nohup, or a shell's job in the background */
			sigaddset(&mask, stops[i]);
	for (size_t i = 0; role == SIGNALS_DAEMON && i < sizeof(stops) / sizeof(stops[0]); i++)
		take(&mask, stops[i]);
	if (role == SIGNALS_FRONT)
		take(&mask, SIGTERM);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	if (snapshot)
		take(&mask, snapshot);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_read(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}
