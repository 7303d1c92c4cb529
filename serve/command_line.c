/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/command_line.h"

#include "pprof/store/config_file.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- the configuration file */

_Static_assert(
    (int)DAEMON_SECTION_LISTEN_MOST <= (int)COMMAND_LINE_LISTEN_MAX, "what the file has fits into the line");

static int on_value(void *context, const char *section, const char *name, const char *value, int line,
    char error[INI_TEXT_ERROR_BYTES])
{
	(void)line;
	return strcmp(section, "daemon") == 0 ? daemon_section_set(context, name, value, error) : 0;
}

int command_line_read_section(struct daemon_section *section, char *error, size_t error_bytes)
{
	const struct ini_text_reader reader = {.value = on_value, .context = section};
	char path[DAEMON_SECTION_PATH_BYTES];
	int err;

	daemon_section_init(section);
	if (daemon_section_file(path) != 0)
		return 0;
	err = config_file_read(&reader, path, error, error_bytes);
	/* no error either: a file in the home of the user who called us as another user */
	return err == -ENOENT || err == -EACCES ? 0 : err;
}

void command_line_take_listen(struct command_line *line, const struct daemon_section *section)
{
	for (size_t i = 0; i < section->listen_count; i++)
		line->listen[line->listen_count++] = section->listen[i];
}

void command_line_take_token(struct command_line *line, const struct daemon_section *section)
{
	if (!line->token_file)
		line->token_file = section->token_file;
}
