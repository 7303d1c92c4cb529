/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that `heaptap serve` and `heaptap record --listen` start this program with, and what `[daemon]`
 * of the user's configuration file says where the words do not. Users give the words to heaptap, whose tables
 * of options check and explain them; here each option has its long form only.
 */
#ifndef SERVE_COMMAND_LINE_H
#define SERVE_COMMAND_LINE_H

#include "pprof/store/config_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { COMMAND_LINE_LISTEN_MAX = 8, COMMAND_LINE_NO_FD = -1 };

#define COMMAND_LINE_LISTEN_DEFAULT "127.0.0.1:7337"

/* Borrows all strings from argv, or from the configuration. */
struct command_line {
	const char *listen[COMMAND_LINE_LISTEN_MAX];
	size_t listen_count;
	const char *token_file; /* NULL: none */
	const char *socket;     /* the daemon's; NULL: its usual place */
	pid_t sampler;          /* of record --listen: the only sampler that is asked; 0: all are */
	int front_fd;           /* of record --listen: gets a byte when all is ready; its end is ours */
	int verbosity;          /* -1 quiet, 0, 1 verbose */
	char *const *operands;  /* files and folders, NULL-terminated */
	int operand_count;
};

/* 0, or -EINVAL with one line in error. */
int command_line_parse(struct command_line *line, int argc, char *argv[], char *error, size_t error_bytes);

/* Reads the configuration file; it is no error if there is none. 0, or -errno with "FILE:LINE: what is wrong"
 * in error. The caller calls daemon_section_fini() in all cases. */
int command_line_read_section(struct daemon_section *section, char *error, size_t error_bytes);

/* Takes `listen` and `token-file` if the line has none of its own. The line borrows from the section. */
void command_line_take_listen(struct command_line *line, const struct daemon_section *section);
void command_line_take_token(struct command_line *line, const struct daemon_section *section);

#endif
