/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the files we write: a pattern such as `out/%e.%p.%n.pb.gz`, filled in per profile.
 *
 *     %e executable   %p pid   %n snapshot's name   %h host   %t unix seconds   %% a percent sign
 *
 * The values come from the target (an executable's name, a snapshot named through the API) and are hostile:
 * only letters, digits and "._+-" are taken from them, no '/' and no leading dot or dash, and they are cut at
 * OUTPUT_WORD_BYTES. Within a run each name is given out once; further files with that name get `-2`, `-3`.
 */
#ifndef SAMPLER_SNAPSHOT_OUTPUT_H
#define SAMPLER_SNAPSHOT_OUTPUT_H

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
	/* The folder that all files are in or below, open from the first moment that it exists: should its
	 * path be led elsewhere, the files stay together. `place` is how their paths begin: "", or up to the
	 * '/' behind that folder. */
	struct folder base;
	char *place;
	char host[OUTPUT_WORD_BYTES + 1];
	struct output_used *used;
};

/* Pure: 0, or -EINVAL with one line in `error` if the pattern is empty or has an unknown % directive. */
int output_check(const char *pattern, char *error, size_t error_bytes);

/*
 * Pure: fills `pattern` in. A pattern that ends in '/' gets OUTPUT_DEFAULT appended. Returns 0, -ENAMETOOLONG
 * or -EINVAL.
 */
int output_expand(
    const char *pattern, const struct output_facts *facts, const char *host, char *path, size_t path_bytes);

/* Pure: `path` with "-number" before its ".pb.gz" or, failing that, before its last extension, or at its end.
 * */
int output_number(const char *path, unsigned int number, char *numbered, size_t numbered_bytes);

/* Pure: likewise "-word", cleaned as %n is. */
int output_word(const char *path, const char *word, char *worded, size_t worded_bytes);

/*
 * `argument` is -o's value or NULL for the default; an existing directory means the default name inside it.
 * The pattern is copied; the folder is opened if it exists. Returns 0 or -errno.
 */
int output_init(struct output *output, const char *argument);
void output_fini(struct output *output);

/* Pure: the folder that all files are in, as an absolute path, and how many folders below it they are. 0 or
 * -ENAMETOOLONG. */
int output_place(const struct output *output, const char *working_folder, char *path, size_t path_bytes,
    unsigned int *depth);

/* Closes the folder, which keeps its file system busy, until the next file is named. */
void output_let_go(struct output *output);

/*
 * Opens the folder of a path that output_reserve() has made (file_open_folder()), by the folder that is open.
 * If that was removed meanwhile, it is made again, with FILE_MKDIR.
 */
int output_open_folder(const struct output *output, const char *path, unsigned int flags,
    struct folder *folder, const char **name);

/* All files that -o's value (as for output_init) can give, as a pattern of the shell's:
 * "out/heaptap.*.pb.gz". 0 or -errno. */
int output_describe(const char *argument, char *files, size_t files_bytes);

/*
 * Can profiles be written where `argument` (as for output_init) says? The folder is made if it is missing and
 * a file is created in it and removed; that folders above it were missing too is said, unless `quiet`. 0, or
 * -errno with a line on stderr. 0 also for a device, which needs no folder, and for a directive in the
 * folder's name, which nobody can fill in before there is a profile.
 */
int output_check_folder(const char *argument, bool quiet);

/*
 * Gives out the name for one file; every call gives out another one. A pattern without %n is the name of the
 * exit profile; any other snapshot's name is then put before its extension: heap.pb.gz, heap-0001.pb.gz,
 * heap-peak.pb.gz. Files of earlier runs may be replaced. A name is skipped if it was given out before or its
 * file cannot be replaced (a FIFO, another user's file in a sticky folder). Memory: 16 bytes per name ever
 * given out.
 */
int output_reserve(struct output *output, const struct output_facts *facts, char *path, size_t path_bytes);

#endif
