/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What heaptap-push is told: the words that `heaptap push` and `heaptap record --push` start it with, and the
 * configuration file. heaptap has checked the words that the user wrote, by its tables of options. Here each
 * option has its long form only.
 */
#ifndef PUSH_COMMAND_LINE_H
#define PUSH_COMMAND_LINE_H

#include "push/target.h"

#include <stdbool.h>
#include <stddef.h>

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

/* 0, or -EINVAL with one line in error. The caller calls command_line_fini() in all cases. */
int command_line_parse(struct command_line *line, int argc, char *argv[], char *error, size_t error_bytes);
void command_line_fini(struct command_line *line);

/* ---- heaptap's configuration file (INI, read by libinih), as far as it is about pushing: `[push NAME]`
 * sections, one per target, and `store` of `[daemon]`. Other sections are the daemon's. */

enum { CONFIG_TARGETS_MAX = 16 };

struct config {
	struct target targets[CONFIG_TARGETS_MAX];
	size_t count;
	char *store; /* NULL: not given */
};

/* 0, or -errno with one line in error, "FILE:LINE: what is wrong". The caller calls
 * command_line_fini_config() in all cases. */
int command_line_read_config(struct config *config, const char *path, char *error, size_t error_bytes);

/* The same of text; name is for error lines. */
int command_line_parse_config(
    struct config *config, const char *text, const char *name, char *error, size_t error_bytes);
void command_line_fini_config(struct config *config);

#endif
