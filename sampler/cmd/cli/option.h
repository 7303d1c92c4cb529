/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options as rows of a table, and what is made from the table: the parser, and the list of allowed values in
 * an error line. help.h makes the help and the manual pages from the same rows.
 *
 * A row says which commands take the option, what kind of value it has, and which field of struct options the
 * value goes to. This file knows nothing else of struct options.
 */
#ifndef SAMPLER_CMD_CLI_OPTION_H
#define SAMPLER_CMD_CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command;
struct options;

enum option_kind {          /* the field                          the value */
	OPTION_FLAG,        /* bool, set to true                  none */
	OPTION_STOP,        /* bool, set to true none; what follows is ignored (--help) */
	OPTION_TEXT,        /* const char *                       anything but "" */
	OPTION_CHOICE,      /* enum, uint32_t: index + least      one of `choices` */
	OPTION_COUNT,       /* uint32_t, uint64_t                 a whole number, least to most */
	OPTION_BYTES,       /* uint32_t, uint64_t                 with K, M or G, least to most bytes */
	OPTION_TIME,        /* uint64_t, nanoseconds              with a unit, 0 or least to most ns */
	OPTION_BYTES_RANGE, /* struct option_range, bytes         MIN:MAX */
	OPTION_TIME_RANGE,  /* struct option_range, nanoseconds   MIN:MAX */
	OPTION_SET,         /* whatever set() changes             what it takes; none without `value` */
};

struct option {
	unsigned int commands; /* bits of command.h; 0: a heading */
	char letter;           /* '\0': the long form only */
	const char *name;
	enum option_kind kind;
	size_t offset, bytes; /* the field: OPTION_FIELD() */
	uint64_t least, most;
	int (*set)(struct options *options, const char *value); /* 0 or -EINVAL */
	const char *by_name;        /* a value is a list of process ids, which this command takes too; NULL */
	const char *value;          /* "BYTES"; NULL if it takes no value, or one of `choices` */
	const char *const *choices; /* NULL-terminated */
	const char *allowed;        /* what a value may be, for error lines; NULL with choices */
	unsigned int common;        /* the commands whose short help has it */
	const char *help;           /* lines of at most 50 columns separated by '\n', without full stop */
};

/* A row that stands before the rows of one subject. */
#define OPTION_HEADING(text)   \
	{                      \
		.help = (text) \
	}

#define OPTION_FIELD(member) offsetof(struct options, member), sizeof(((struct options *)NULL)->member)

struct option_table {
	const struct option *rows;
	size_t count;
};

/* Tables are lists of these that end with NULL; all their rows are one table. NULL after the last row. */
const struct option *option_at(const struct option_table *const *tables, size_t index);
bool option_takes_value(const struct option *option);

/* "BYTES" or "auto|uprobe|copy" */
void option_value_describe(const struct option *option, char *text, size_t text_bytes);

/*
 * Parses words into `options`. *first becomes the place of the first operand; where the command mixes options
 * and operands, options are moved in front, as getopt(3) does. Returns 0; 1 if an OPTION_STOP was met; or
 * -EINVAL with one line appended to `error`.
 */
int option_parse(const struct option_table *const *tables, const struct command *command,
    struct options *options, int argc, char *argv[], int *first, char *error, size_t error_bytes);

#endif
