/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap-serve: answers browsers and scrapers. `heaptap serve` and `heaptap record --listen` start it. */
#include "pprof/text/log_line.h"
#include "serve/command_line.h"

#include <signal.h>
#include <stdlib.h>

enum { STATUS_USAGE = 2 };

int main(int argc, char *argv[])
{
	struct command_line line;
	char error[512];

	signal(SIGPIPE, SIG_IGN);
	if (command_line_parse(&line, argc, argv, error, sizeof(error))) {
		log_line("%s", error);
		exit(STATUS_USAGE);
	}
	exit(EXIT_SUCCESS);
}
