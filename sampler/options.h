/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, parsed: what a user asked for, checked and in units.
 *
 * Options live in one table (options.c), from which parsing, the help texts and the list in an error message are
 * made, so that they cannot drift apart. Commands live in one table in main.c. Parsing is pure: it looks at the
 * words it is given and at nothing else, and never prints.
 */
#ifndef SAMPLER_OPTIONS_H
#define SAMPLER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum backend {
	BACKEND_AUTO,
	BACKEND_UPROBE,
	BACKEND_BREAKPOINT,
	BACKEND_COPY,
};

enum symbol_detail {
	SYMBOL_FULL,      /* functions, inlined calls, files and lines */
	SYMBOL_FUNCTIONS, /* functions only */
	SYMBOL_RAW,       /* addresses and build ids; the reader symbolizes */
};

#define PERIOD_BYTES_DEFAULT (512u << 10)
#define PERIOD_BYTES_MAX     (UINT64_C(1) << 40)
#define STACK_BYTES_DEFAULT  (32u << 10)
#define STACK_BYTES_MIN      256u
#define STACK_BYTES_MAX      (64u << 10)
#define INTERVAL_NS_DEFAULT  (UINT64_C(60) * 1000000000)
#define TEMPORARY_NS_DEFAULT (UINT64_C(1) * 1000000)
#define KEEP_MAX             1000000u
#define INTERVAL_NS_MIN      (UINT64_C(1) * 1000000)
#define INTERVAL_NS_MAX      (UINT64_C(1000) * 3600 * 1000000000)

/* All strings are borrowed: from argv, or from the caller who fills the field. */
struct options {
	uint64_t period_bytes;      /* mean bytes between samples, 1 .. PERIOD_BYTES_MAX; 1 samples everything */
	const char *output;         /* as given to -o, its % directives already checked; NULL: the default name */
	enum backend backend;
	uint32_t stack_bytes;       /* most stack bytes per sample, STACK_BYTES_MIN .. STACK_BYTES_MAX, any number */
	uint64_t interval_ns;       /* between periodic snapshots, 0: none */
	uint64_t keep;              /* numbered snapshots of a process, the newest; 0: all */
	int signal;                 /* that asks for a snapshot, 0: none */
	unsigned int labels;        /* enum heap_labels */
	uint64_t temporary_ns;      /* what is freed sooner is temporary */
	bool paused;                /* no samples until the program wants them */
	bool delta, timeline, lifetimes; /* files to write besides */
	bool sync;                  /* fsync what is written */
	bool all;                   /* snapshot: of every process */
	enum symbol_detail symbols;
	uint64_t rss_max_bytes;     /* of the sampler, 0: no limit */
	uint32_t cpu_max_percent;   /* of one CPU, the sampler and its writers, 0: no limit */
	int verbosity;              /* -1 for -q, 0, or the number of -v */
	bool help, version;         /* asked for; nothing else need be valid then */
	char *const *operands;      /* what follows the options, NULL-terminated: COMMAND and its arguments */
	int operand_count;
	const char *library;        /* absolute path of libheaptap.so; filled in by launch_run, not by parsing */
};

/* The commands an option belongs to, as bits. */
enum {
	COMMAND_RECORD   = 1 << 0,
	COMMAND_SNAPSHOT = 1 << 1,
	COMMAND_ADOPT    = 1 << 8,
};

struct command {
	const char *name;     /* "record" */
	unsigned int bit;     /* COMMAND_RECORD: which rows of the option table it takes */
	const char *synopsis; /* "[OPTIONS] [--] COMMAND [ARG...]" */
	const char *summary;  /* one line, for the list of commands */
	const char *operand;  /* name of the operand that may not be missing, NULL: none needed */
	int (*run)(struct options *options); /* returns the exit status */
};

/*
 * Parses the words after the command's own name (argv[0] is the first of them) into `options`, defaults included.
 * The first word that is no option, or the one after `--`, begins the operands. Returns 0, or -EINVAL with one line
 * (no newline, no prefix) in `error`, which lists what is allowed. --help and --version win over what follows them.
 */
int options_parse(struct options *options, const struct command *command, int argc, char *const argv[], char *error,
    size_t error_bytes);

/* Writes the help of one command, made from the option table. */
void options_help(FILE *out, const struct command *command);

/* What a value is called on the command line: "copy", "functions". */
const char *backend_name(enum backend backend);
const char *symbol_detail_name(enum symbol_detail detail);

#endif
