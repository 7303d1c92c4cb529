/* SPDX-License-Identifier: Apache-2.0 */
/* The command line's entry: finds the command, parses its options, runs it. The only file that calls exit. */
#include "sampler/ask.h"
#include "sampler/launch.h"
#include "sampler/notice.h"
#include "sampler/options.h"
#include "sampler/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line per command; `bit` chooses its rows of the option table. */
static const struct command commands[] = {
    {"record", COMMAND_RECORD, "[OPTIONS] [--] COMMAND [ARG...]",
	"launch COMMAND and profile its heap, and that of every process it starts", "COMMAND", launch_run},
    {"snapshot", COMMAND_SNAPSHOT, "PID | --all",
	"write a snapshot of a process that is being profiled, now, and print its path", NULL, ask_run},
    {"adopt", COMMAND_ADOPT, "[OPTIONS] PID",
	"go on profiling a process whose sampler has died", "PID", session_adopt},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static void usage_print(FILE *out)
{
	fprintf(out, "usage: heaptap COMMAND [OPTIONS] ...\n"
		     "       heaptap help COMMAND | --help | --version\n\ncommands:\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
}

static int fail_unknown(const char *word)
{
	char list[256] = "";
	size_t length = 0;

	for (size_t i = 0; i < COMMAND_COUNT && length < sizeof(list); i++)
		length += (size_t)snprintf(list + length, sizeof(list) - length, " %s", commands[i].name);
	notice_print("unknown command '%s'; allowed:%s help --help --version", word, list);
	return STATUS_USAGE;
}

/* `heaptap help`, `heaptap help record` */
static int help_run(const char *name)
{
	const struct command *command = name ? command_find(name) : NULL;

	if (name && !command)
		return fail_unknown(name);
	if (command)
		options_help(stdout, command);
	else
		usage_print(stdout);
	return EXIT_SUCCESS;
}

static int version_run(void)
{
	printf("heaptap %s\n", HEAPTAP_VERSION);
	return EXIT_SUCCESS;
}

static int command_run(const struct command *command, int argc, char *argv[])
{
	struct options options;
	char error[1024];

	if (options_parse(&options, command, argc, argv, error, sizeof(error))) {
		notice_print("%s", error);
		return STATUS_USAGE;
	}
	if (options.help)
		return help_run(command->name);
	if (options.version)
		return version_run();
	return command->run(&options);
}

static int word_run(int argc, char *argv[])
{
	const struct command *command = command_find(argv[1]);

	if (command)
		return command_run(command, argc - 2, argv + 2);
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help_run(argv[2]);
	if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0)
		return version_run();
	return fail_unknown(argv[1]);
}

int main(int argc, char *argv[])
{
	if (argc < 2) {
		usage_print(stderr);
		exit(STATUS_USAGE);
	}
	exit(word_run(argc, argv));
}
