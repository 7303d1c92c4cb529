/* SPDX-License-Identifier: Apache-2.0 */
/* A command of heaptap, and the functions that run the commands. main.c has the table of all commands. */
#ifndef SAMPLER_CMD_CLI_COMMAND_H
#define SAMPLER_CMD_CLI_COMMAND_H

#include <stdbool.h>

struct options;

/* The commands an option belongs to, as bits. */
enum {
	COMMAND_RECORD = 1 << 0,
	COMMAND_SNAPSHOT = 1 << 1,
	COMMAND_ADOPT = 1 << 8,
	COMMAND_DETACH = 1 << 9,
	COMMAND_DAEMON = 1 << 10,
	COMMAND_ATTACH = 1 << 11, /* takes record's options; this bit stands in `common` alone */

	COMMAND_REPORT = 1 << 16,
	COMMAND_DIFF = 1 << 17,
	COMMAND_EXPORT = 1 << 18,
	COMMAND_MERGE = 1 << 19,
	COMMAND_DOCTOR = 1 << 20,
	COMMAND_COMPLETION = 1 << 21,
	COMMAND_EVENTS = 1 << 22,
	COMMAND_CHECK = 1 << 23,
	COMMAND_SYMBOLIZE = 1 << 24,
	COMMAND_LS = 1 << 25,
	COMMAND_PUSH = 1 << 26,
	COMMAND_STATUS = 1 << 27,
	COMMAND_ENABLE = 1 << 28,
	COMMAND_DISABLE = 1 << 29,
	COMMAND_SERVE = 1 << 30,
};

enum command_group {
	COMMAND_USE,
	COMMAND_LOOK,
	COMMAND_ALWAYS_ON,
	COMMAND_FILES,
	COMMAND_REPAIR,
	COMMAND_GROUPS
};

struct command {
	const char *name;                    /* "record" */
	unsigned int bit;                    /* COMMAND_RECORD: the options that it takes */
	const char *synopsis;                /* "[OPTIONS] [--] COMMAND [ARG...]" */
	const char *summary;                 /* one line, for the list of commands */
	const char *examples;                /* lines separated by '\n', for --help; NULL: none */
	const char *operand;                 /* name of the required operand; NULL: none is required */
	int (*run)(struct options *options); /* returns the exit status */
	enum command_group group;            /* the heading of `heaptap --help` that it stands under */
	bool takes_pids;                     /* the operands are process ids, as those of --pid */
	/* options may stand after operands too; otherwise the first operand ends them */
	bool mixed;
};

/* The functions of the commands, each in a file of its name: front_run in record/front.c. Each returns the
 * exit status. Files that do more than run a command have a header: there are the functions of report,
 * adopt, detach, push, serve and status. */
int front_run(struct options *options); /* record, attach */
int snapshot_client_run(struct options *options);
int enable_command_run(struct options *options);
int disable_command_run(struct options *options); /* in enable/enable_command.c */
int daemon_run(struct options *options);
int diff_run(struct options *options);
int export_run(struct options *options);
int merge_run(struct options *options);
int symbolize_run(struct options *options);
int ls_run(struct options *options);
int check_run(struct options *options);
int event_list_run(struct options *options); /* events, in doctor/ */
int doctor_run(struct options *options);
int completion_run(struct options *options); /* in cli/ */

#endif
