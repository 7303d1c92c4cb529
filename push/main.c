/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap-push: sends profiles to servers. `heaptap push` starts it; nothing else of heaptap speaks HTTP. */
#include "push/command_line.h"
#include "push/notice.h"
#include "push/one_shot.h"

#include <signal.h>
#include <stdlib.h>

enum { STATUS_USAGE = 2 };

int main(int argc, char *argv[])
{
	struct command_line line;
	char error[1024];
	int status;

	signal(SIGPIPE, SIG_IGN);
	if (command_line_parse(&line, argc, argv, error, sizeof(error))) {
		notice("%s", error);
		status = STATUS_USAGE;
	} else {
		status = one_shot_run(&line);
	}
	command_line_fini(&line);
	exit(status);
}
