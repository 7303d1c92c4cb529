/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that `heaptap serve` and `heaptap record --listen` start this program with. Users give them to
 * heaptap, whose tables of options check and explain them; here each has its long form only.
 */
#ifndef SERVE_COMMAND_LINE_H
#define SERVE_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { COMMAND_LINE_LISTEN_MAX = 8, COMMAND_LINE_NO_FD = -1 };

#define COMMAND_LINE_LISTEN_DEFAULT "127.0.0.1:7337"

struct command_line {
	const char *listen[COMMAND_LINE_LISTEN_MAX]; /* all borrowed from argv, or the configuration */
	size_t listen_count;
	const char *token_file; /* NULL: none */
	const char *socket;     /* of the daemon; NULL: where it usually is */
	pid_t sampler;          /* record --listen: no other sampler is asked; 0: all are */
	int front_fd;          /* record --listen: a byte is written when all is ready, and its end is ours */
	int verbosity;         /* -1 quiet, 0, 1 verbose */
	char *const *operands; /* files and folders, NULL-terminated */
	int operand_count;
};

/* 0, or -EINVAL with one line in error. */
int command_line_parse(struct command_line *line, int argc, char *argv[], char *error, size_t error_bytes);

#endif
