/* SPDX-License-Identifier: Apache-2.0 */
/* The command line's entry: finds the command, parses its options, runs it. The only file that calls exit. */
#include "sampler/session/snapshot_client.h"
#include "sampler/cli/command.h"
#include "sampler/cli/completion.h"
#include "sampler/cli/status.h"
#include "sampler/report/check.h"
#include "sampler/report/diff.h"
#include "sampler/doctor/doctor.h"
#include "sampler/doctor/event_list.h"
#include "sampler/report/export.h"
#include "sampler/session/front.h"
#include "sampler/report/ls.h"
#include "sampler/report/merge.h"
#include "sampler/terminal/log_line.h"
#include "sampler/terminal/text.h"
#include "sampler/cli/options.h"
#include "sampler/report/report.h"
#include "sampler/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One entry per command; `bit` chooses its options. */
static const struct command commands[] = {
    {.name = "record",
        .bit = COMMAND_RECORD,
        .synopsis = "[OPTIONS] [--] COMMAND [ARG...]",
        .operand = "COMMAND",
        .summary = "launch COMMAND and profile its heap, and that of every process it starts",
        .run = front_run},
    {.name = "snapshot",
        .bit = COMMAND_SNAPSHOT,
        .synopsis = "PID | --all",
        .summary = "write a snapshot of a process that is being profiled, now, and print its path",
        .run = snapshot_client_run},
    {.name = "adopt",
        .bit = COMMAND_ADOPT,
        .synopsis = "[OPTIONS] PID",
        .operand = "PID",
        .summary = "continue to profile a process whose sampler has died",
        .run = session_adopt},
    {.name = "report",
        .bit = COMMAND_REPORT,
        .synopsis = "[OPTIONS] [PROFILE | FOLDER]...",
        .mixed = true,
        .summary = "show what is in a profile: tables, call tree, leaks",
        .run = report_run},
    {.name = "diff",
        .bit = COMMAND_DIFF,
        .synopsis = "[OPTIONS] BASE NEW | [FOLDER]",
        .mixed = true,
        .summary = "show what changed between two profiles, folders or sessions",
        .run = diff_run},
    {.name = "export",
        .bit = COMMAND_EXPORT,
        .synopsis = "--format FORMAT [OPTIONS] [PROFILE | FOLDER]...",
        .mixed = true,
        .summary = "write a profile in the format of another tool",
        .run = export_run},
    {.name = "merge",
        .bit = COMMAND_MERGE,
        .synopsis = "-o FILE [PROFILE | FOLDER]...",
        .mixed = true,
        .summary = "merge profiles into one by adding them up",
        .run = merge_run},
    {.name = "ls",
        .bit = COMMAND_LS,
        .synopsis = "[OPTIONS] [PROFILE | FOLDER]...",
        .mixed = true,
        .summary = "list sessions, their processes and profiles, the newest first",
        .run = ls_run},
    {.name = "check",
        .bit = COMMAND_CHECK,
        .synopsis = "[OPTIONS] PROFILE...",
        .operand = "PROFILE",
        .mixed = true,
        .summary = "report what is wrong with a profile that other tools reject",
        .run = check_run},
    {.name = "events",
        .bit = COMMAND_EVENTS,
        .synopsis = "[REGEX]",
        .summary = "list the perf events that record -e can sample here, and why not the others",
        .run = event_list_run},
    {.name = "doctor",
        .bit = COMMAND_DOCTOR,
        .synopsis = "[PID | PROGRAM]",
        .summary = "say what can be profiled here or in a program, and how to fix the rest",
        .run = doctor_run},
    {.name = "completion",
        .bit = COMMAND_COMPLETION,
        .synopsis = "bash | zsh",
        .operand = "shell",
        .summary = "print completions for a shell",
        .run = completion_run},
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
	fprintf(out,
	    "usage: heaptap COMMAND [OPTIONS] ...\n"
	    "       heaptap help COMMAND | --help | --version\n\ncommands:\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
}

static int fail_unknown(const char *word)
{
	char list[256] = "";

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		text_append(list, sizeof(list), " %s", commands[i].name);
	log_line("unknown command '%s'; allowed:%s help --help --version", word, list);
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
		log_line("%s", error);
		return STATUS_USAGE;
	}
	if (options.help)
		return help_run(command->name);
	if (options.version)
		return version_run();
	options.commands = commands;
	options.command_count = COMMAND_COUNT;
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
