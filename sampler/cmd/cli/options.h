/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, parsed: what a user asked for, checked and in units.
 *
 * Each option is a row of a table (options_rows.h). Parser, help, error lines, completions and the
 * manual page are made from these rows, so they always agree. Parsing is pure: it reads only the given words,
 * and never prints.
 */
#ifndef SAMPLER_CMD_CLI_OPTIONS_H
#define SAMPLER_CMD_CLI_OPTIONS_H

#include "pprof/analysis/grouping.h"
#include "pprof/model/sample_types.h"
#include "sampler/cmd/cli/option_value.h"
#include "sampler/core/heap_capture_options.h"
#include "sampler/symbol/answer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define ON_LIMIT_NS_DEFAULT (UINT64_C(10) * 1000000000)
#define KEEP_MAX            1000000u
#define MIN_SAMPLES_DEFAULT 16u /* 1 where every allocation is recorded */
#define MIN_SAMPLES_MAX     1000000000u
#define COMPARE_WALKS_MAX   1000000000u
#define OPTION_EVENTS_MAX   16
#define OPTION_PIDS_MAX     64
#define OPTION_LABELS_MAX   12
#define OPTION_LISTEN_MAX   8
#define INTERVAL_NS_MIN     (UINT64_C(1) * 1000000)
#define INTERVAL_NS_MAX     (UINT64_C(1000) * 3600 * 1000000000)

enum sort_key {
	SORT_DEFAULT,
#define SORT_CONSTANT(constant, word, type) SORT_##constant,
	MEASURES(SORT_CONSTANT)
#undef SORT_CONSTANT
	    SORT_PEAK,
};

/* Which profiles of a process count. */
enum read_state {
	READ_NEWEST,
	READ_PEAK,
	READ_DELTA,
	READ_ALL,
};

enum fail_on { FAIL_ON_NOTHING, FAIL_ON_GROWTH };

enum { SESSION_DEFAULT = 0, SESSION_NEWEST = 1, SESSION_ALL = INT32_MAX };

#define ROWS_ALL                   INT32_MAX
#define FAIL_OVER_NEVER            UINT64_MAX
#define THRESHOLD_PERMILLE_DEFAULT 10u
#define MEMORY_MAX_BYTES_DEFAULT   (UINT64_C(1) << 30)

/* What the commands that read profiles were asked for. NULL strings, zero numbers: not given. */
struct read_options {
	enum sort_key sort;
	enum grouping by;
	int32_t rows; /* ROWS_ALL; 0: the command's default */
	enum read_state state;
	int32_t session; /* SESSION_DEFAULT, SESSION_ALL, or a number, 1 for the newest */
	bool tree, inverted, cum, lines, leaks, timeline, json, normalize, anonymize, no_pager;
	bool full_names; /* with template arguments */
	bool all_frames; /* rows begin at the leaf, nothing is folded */
	const char *focus, *ignore, *module, *thread, *hide;
	struct option_range size_bytes, age_ns;
	uint32_t threshold_permille; /* of the total; smaller nodes of a tree are folded */
	const char *suppressions;
	uint64_t fail_over_bytes; /* FAIL_OVER_NEVER: not given */
	enum fail_on fail_on;
	int format; /* number of an export format (pprof/export/format.h); -1: not given */
	bool strict;
	bool debuginfod;           /* symbolize: missing debug files may be fetched */
	const char *store;         /* of the daemon, for words that name services */
	uint64_t memory_max_bytes; /* limit for the profiles that are read */
};

/* What `heaptap push` was asked for, and `record --push`. NULL strings, zero numbers: not given. */
struct push_options {
	const char *url; /* --to, or record --push */
	const char *token_file, *user, *tenant, *ca_file;
	const char *types;                     /* sample types, separated by commas */
	const char *labels[OPTION_LABELS_MAX]; /* "K=V" */
	size_t label_count;
	uint64_t timeout_ns;
	const char *config;
	bool follow, dry_run;
	int paths_fd; /* record --push: where names of profiles go; filled in by front_run */
};

/* What `heaptap daemon` was asked for. NULL strings: not given. */
struct daemon_options {
	const char *config, *store;
	bool check; /* the configuration, and nothing else */
};

/* What `heaptap enable` and `disable` were asked for. NULL strings: not given. */
struct enable_options {
	const char *root;    /* a folder in place of / */
	const char *library; /* its absolute path, below `root` if that is given */
	bool now;            /* also the file `off` beside the control socket */
};

/* What `heaptap serve` was asked for, and `record --listen`. */
struct serve_options {
	const char *listen[OPTION_LISTEN_MAX]; /* none: the default */
	size_t listen_count;
	const char *token_file; /* NULL: none */
};

struct command;
struct event;

/* What `heaptap record` was asked for, or `attach` or `adopt`. NULL strings, zero numbers: not given. */
struct record_options {
	struct heap_capture_options heap;
	uint64_t interval_ns;                /* between periodic snapshots: see interval.h */
	uint64_t keep;                       /* numbered snapshots of a process, the newest; 0: all */
	uint64_t min_samples;                /* processes with fewer leave no profile, COMMAND does */
	struct threshold on[THRESHOLDS_MAX]; /* of --on: snapshots when they are crossed */
	size_t on_count;
	uint64_t on_limit_ns; /* between two of one process for the same threshold, 0: none */
	enum symbol_detail symbols;
	bool debuginfod;                            /* missing debug files may be fetched */
	uint64_t rss_max_bytes;                     /* of the sampler, 0: no limit */
	uint32_t cpu_max_percent;                   /* of one CPU, the sampler and its writers, 0: no limit */
	const char *event_texts[OPTION_EVENTS_MAX]; /* of -e, in order */
	size_t event_count;
	const struct event *events;  /* event_count of them; filled in by front_run, not by parsing */
	bool no_heap;                /* events only: nothing is preloaded */
	pid_t pids[OPTION_PIDS_MAX]; /* running processes instead of COMMAND */
	size_t pid_count;
	uint64_t duration_ns; /* of recording them; 0: until they end */
	bool force;           /* also where a seccomp filter may end them */
	bool no_children;     /* their children are not recorded */
};

/* What `heaptap snapshot` was asked for. */
struct snapshot_options {
	bool all;            /* every process of every session */
	pid_t session;       /* every process of this process' session; 0: not given */
	const char *service; /* every process of this service; NULL: not given */
};

/* All strings are borrowed: from argv, or from the caller who fills the field. */
struct options {
	int verbosity;                /* -1 for -q, 0, or the number of -v */
	bool help, help_all, version; /* given; then the other options are not checked */
	char *const *operands; /* what follows the options, NULL-terminated: COMMAND and its arguments */
	int operand_count;
	const char *output; /* as given to -o, its % directives already checked; NULL: the default name */
	const char *socket; /* of the daemon; NULL: see sampler/core/control_socket.h */
	struct record_options record;
	struct snapshot_options snapshot;
	struct read_options read;
	struct push_options push;
	struct daemon_options daemon;
	struct enable_options enable;
	struct serve_options serve;
	/* all there are, for completions; filled in by main, not by parsing */
	const struct command *commands;
	size_t command_count;
};

/* As without any word. */
void options_defaults(struct options *options);

/*
 * Parses the words after the command's own name (argv[0] is the first of them) into `options`, defaults
 * included. The first word that is no option, or the one after `--`, begins the operands. Returns 0, or
 * -EINVAL with one line (no newline, no prefix) in `error`, which lists what is allowed. --help, --help-all
 * and --version win over what follows them. Where a command mixes options and operands the words are
 * reordered, as getopt(3) does.
 */
int options_parse(struct options *options, const struct command *command, int argc, char *argv[], char *error,
    size_t error_bytes);

/* What a value is called on the command line: "samples", "error". */
const char *sort_key_name(enum sort_key key); /* "" for SORT_DEFAULT */

#endif
