/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that `heaptap push` and `heaptap record --push` start this program with. heaptap has checked what
 * the user wrote, by its tables of options. Here each option has its long form only.
 */
#ifndef PUSH_COMMAND_LINE_H
#define PUSH_COMMAND_LINE_H

#include "push/target.h"

#include <stdbool.h>

/* How much heaptap-push says on stderr. -1: what went wrong. 0: also what the user should know. 1: also what
 * it does. */
extern int verbosity;

enum { COMMAND_LINE_NO_FD = -1 };

struct command_line {
	struct target target; /* of --to and what goes with it */
	bool has_target, has_target_options, follow, dry_run;
	const char *config; /* borrowed from argv, as are the operands */
	int end_fd;         /* record --push: record shuts it down, and then waits until the rest is sent */
	int paths_fd;       /* record --push: the paths of profiles come from here; or COMMAND_LINE_NO_FD */
	char *const *operands; /* files or folders, NULL-terminated */
	int operand_count;
};

/* 0, or -EINVAL with one line in error. command_line_fini() is due in any case. */
int command_line_parse(struct command_line *line, int argc, char *argv[], char *error, size_t error_bytes);
void command_line_fini(struct command_line *line);

#endif
