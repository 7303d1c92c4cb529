/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that `heaptap push` and `heaptap record --push` start this program with. heaptap has checked what
 * the user wrote, by its tables of options. Here each option has its long form only.
 */
#ifndef PUSH_COMMAND_LINE_H
#define PUSH_COMMAND_LINE_H

#include "push/target.h"

#include <stdbool.h>

/* How much heaptap-push says on stderr: -1: only what went wrong; 0; 1: what is done, too. */
extern int verbosity;

enum { COMMAND_LINE_NO_FD = -1 };

struct command_line {
	struct target target; /* of --to and what goes with it */
	bool has_target, has_target_options, follow, dry_run;
	const char *config;    /* borrowed from argv, as are the operands */
	int end_fd;            /* record --push: when it is shut down, record waits for what is left */
	int paths_fd;          /* record --push: paths of profiles come from there; or COMMAND_LINE_NO_FD */
	char *const *operands; /* files or folders, NULL-terminated */
	int operand_count;
};

/* 0, or -EINVAL with one line in error. command_line_fini() is due in any case. */
int command_line_parse(struct command_line *line, int argc, char *argv[], char *error, size_t error_bytes);
void command_line_fini(struct command_line *line);

#endif
