/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the files that the sampler writes: a pattern such as `out/%e.%p.%n.pb.gz`, filled in for each
 * profile.
 *
 *     %e executable   %p pid   %n snapshot's name   %h host   %t unix seconds   %% a percent sign
 *
 * What is not known is "unknown".
 * The values come from the target (an executable's name, a snapshot named through the API) and are not
 * trusted: only letters, digits and "._+-" stay, a leading dot or dash is replaced, and the rest is cut at
 * OUTPUT_WORD_BYTES. Within a run each name is given out once; further files with that name get `-2`, `-3`.
 */
#ifndef SAMPLER_WRITE_OUTPUT_H
#define SAMPLER_WRITE_OUTPUT_H

#include "pprof/codec/folder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define OUTPUT_DEFAULT    "heaptap.%e.%p.%n.pb.gz"
#define OUTPUT_DIRECTIVES "%e %p %n %h %t %%"
#define OUTPUT_WORD_BYTES 64

struct output_facts {
	const char *program;  /* %e; a path is cut to its last component; NULL or empty: "unknown" */
	pid_t pid;            /* %p */
	const char *snapshot; /* %n: "exit", "0001" */
	time_t seconds;       /* %t */
};

struct output_used; /* the names of this run */

struct output {
	char *pattern;
	/* The folder that all files are in or below. It is opened once, as soon as it exists, so the files
	 * stay together if its path leads elsewhere later. `place` is the beginning of their paths, up to the
	 * '/' behind that folder, or "". */
	struct folder base;
	char *place;
	char host[OUTPUT_WORD_BYTES + 1];
	struct output_used *used;
};

/* Pure. Returns 0, or -EINVAL with one line in `error` if the pattern is empty or has an unknown % directive.
 * */
int output_check(const char *pattern, char *error, size_t error_bytes);

/*
 * Pure: fills `pattern` in. A pattern that ends in '/' gets OUTPUT_DEFAULT appended. Returns 0, -ENAMETOOLONG
 * or -EINVAL.
 */
int output_expand(
    const char *pattern, const struct output_facts *facts, const char *host, char *path, size_t path_bytes);

/* Pure. Puts "-number" before the ".pb.gz" of a path, else before its last extension, else at its end.
 * Returns 0 or -ENAMETOOLONG. */
int output_number(const char *path, unsigned int number, char *numbered, size_t numbered_bytes);

/*
 * `argument` is -o's value or NULL for the default; an existing directory means the default name inside it.
 * The pattern is copied; the folder is opened if it exists. Returns 0 or -errno.
 */
int output_init(struct output *output, const char *argument);
void output_fini(struct output *output);

/* Pure. Gives the folder that all files are in or below, as an absolute path, and how many folders below it
 * they may be. Returns 0 or -ENAMETOOLONG. */
int output_place(const struct output *output, const char *working_folder, char *path, size_t path_bytes,
    unsigned int *depth);

/* Closes the folder until the next file is named: an open folder keeps its file system from being unmounted.
 * */
void output_let_go(struct output *output);

/*
 * Opens the folder of a path that output_reserve() has made, from the folder that is open
 * (file_open_folder()). With FILE_MKDIR a folder that was removed meanwhile is made again.
 */
int output_open_folder(const struct output *output, const char *path, unsigned int flags,
    struct folder *folder, const char **name);

/* The files that -o's value (as for output_init) can give, as a pattern of the shell: "out/heaptap.*.pb.gz".
 * Returns 0 or -errno. */
int output_describe(const char *argument, char *files, size_t files_bytes);

/*
 * Can profiles be written where `argument` (as for output_init) says? Makes the folder if it is missing, and
 * creates and removes a file in it. A line tells that folders above it were made too, unless `quiet`. Returns
 * 0, or -errno with a line on stderr. A device needs no folder, and a directive in the folder's name cannot
 * be filled in yet: both give 0.
 */
int output_check_folder(const char *argument, bool quiet);

/*
 * Makes the path of one file; no later call makes the same path. A pattern without %n is the name of the exit
 * profile; the name of another snapshot is put before its extension: heap.pb.gz, heap-0001.pb.gz,
 * heap-peak.pb.gz. Files of earlier runs may be replaced. A name is skipped if its file cannot be replaced (a
 * FIFO, another user's file in a sticky folder). All profiles go into a device that is named without %:
 * nothing is made beside it. Each path takes 16 bytes of memory until the end of the run.
 */
int output_reserve(struct output *output, const struct output_facts *facts, char *path, size_t path_bytes);

#endif
