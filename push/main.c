/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap-push: sends profiles to servers. `heaptap push` starts it; nothing else of heaptap speaks HTTP. */
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "push/command_line.h"
#include "push/follow.h"
#include "push/one_shot.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run(struct command_line *line)
{
	return line->follow || line->paths_fd != COMMAND_LINE_NO_FD ? follow_run(line) : one_shot_run(line);
}

int main(int argc, char *argv[])
{
	struct command_line line;
	char error[1024];
	int status = STATUS_USAGE;
	sigset_t none;

	/* As after SIGHUP, when the signals are still blocked. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (command_line_parse(&line, argc, argv, error, sizeof(error)))
		log_line("%s", error);
	else
		status = run(&line);
	command_line_fini(&line);
	if (status == FOLLOW_AGAIN) {
		execv("/proc/self/exe", argv);
		log_line("cannot start again with the new configuration: %s", strerror(errno));
		status = 1;
	}
	exit(status);
}
