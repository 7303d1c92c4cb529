/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/command_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum word {
	WORD_LISTEN,
	WORD_TOKEN_FILE,
	WORD_SOCKET,
	WORD_SAMPLER,
	WORD_FRONT_FD,
	WORD_QUIET,
	WORD_VERBOSE
};

static const struct option words[] = {
    {"listen", required_argument, NULL, WORD_LISTEN},
    {"token-file", required_argument, NULL, WORD_TOKEN_FILE},
    {"socket", required_argument, NULL, WORD_SOCKET},
    {"sampler", required_argument, NULL, WORD_SAMPLER},
    {"front-fd", required_argument, NULL, WORD_FRONT_FD},
    {"quiet", no_argument, NULL, WORD_QUIET},
    {"verbose", no_argument, NULL, WORD_VERBOSE},
    {0},
};

static const char *take(struct command_line *line, int word)
{
	switch (word) {
	case WORD_LISTEN:
		if (line->listen_count == COMMAND_LINE_LISTEN_MAX)
			return "--listen may be given 8 times";
		line->listen[line->listen_count++] = optarg;
		return NULL;
	case WORD_TOKEN_FILE:
		line->token_file = optarg;
		return NULL;
	case WORD_SOCKET:
		line->socket = optarg;
		return NULL;
	case WORD_SAMPLER:
		line->sampler = (pid_t)atoi(optarg);
		return NULL;
	case WORD_FRONT_FD:
		line->front_fd = atoi(optarg);
		return NULL;
	case WORD_QUIET:
		line->verbosity = -1;
		return NULL;
	case WORD_VERBOSE:
		line->verbosity = 1;
		return NULL;
	default:
		return "unknown option; 'heaptap serve --help' lists all";
	}
}

int command_line_parse(struct command_line *line, int argc, char *argv[], char *error, size_t error_bytes)
{
	const char *wrong = NULL;
	int word;

	*line = (struct command_line){.front_fd = COMMAND_LINE_NO_FD};
	opterr = 0;
	while (!wrong && (word = getopt_long(argc, argv, "", words, NULL)) >= 0)
		wrong = take(line, word);
	line->operands = argv + optind;
	line->operand_count = argc - optind;
	if (!wrong)
		return 0;
	snprintf(error, error_bytes, "%s", wrong);
	return -EINVAL;
}
