/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of profiles: those that a command was given are read into memory with their origins, and the
 * profile that it makes is written. A file that is not a profile (a log in a glob) is passed over with a
 * line, if there is a profile besides. A profile that is damaged or missing, and any other file with a
 * profile's name, is an error, or is at least named and counted: a sum must not lack a process in silence.
 * Duplicates do not count: copies, and the raw twin of a profile that `heaptap symbolize` wrote. Nor does a
 * sum of processes (`heaptap merge`) that lies in a folder beside profiles of single processes.
 */
#ifndef SAMPLER_CMD_REPORT_PROFILE_FILES_H
#define SAMPLER_CMD_REPORT_PROFILE_FILES_H

#include "pprof/model/origin.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/report/operands.h"
#include "sampler/cmd/report/selection.h"

#include <stddef.h>

struct profile;

struct profile_file {
	const char *path;
	struct profile *profile; /* NULL: only its origin and size are wanted, or it is not needed any more */
	struct origin origin;
	int64_t inuse_bytes;     /* -1: not a heap profile */
	int64_t inherited_bytes; /* of these: what its parent had allocated when it forked the process */
	size_t operand;          /* the number of the operand that it came from */
	bool chosen;
	uint64_t measurement; /* seeded hash of all but stacks: types, times, comments, and sums of values */
	uint64_t names;       /* addresses that have a name */
	bool timed;           /* without a time, equal profiles may be of two processes */
	size_t group;         /* profiles of two groups are never duplicates */
	const char *same_as;  /* of a duplicate: the path of the file that counts; NULL for a sum */
	bool is_copy;         /* a duplicate with as many names as the file that counts */
	bool is_left_out;     /* a sum of processes, beside profiles of processes in a folder */
};

struct profile_files {
	struct operands operands;
	struct profile_file *files;
	const struct origin **origins; /* of each */
	size_t count;
	size_t duplicate_count; /* so many files behind the first `count` are duplicates */
	size_t unread_count;    /* files and folders that could not be read */
	size_t held_bytes;      /* memory of the profiles */
};

struct profile_files_choice {
	bool origins_only; /* origins and bytes in use; the profiles are freed again */
	bool each_counts;  /* no file is passed over; files of two operands are never duplicates */
	/* A file that cannot be read is named and counted. It is no error if another file can be read. */
	bool pass_unread;
	bool half_memory; /* the profiles may take half of --max-memory: the output needs the rest */
	enum store_moment_wanted
	    services; /* what a service's name stands for, unless --state is delta or all */
};

/* Reads the operands, or the current folder's profiles. Returns 0, or the exit status after a line that says
 * why. The caller ends it with profile_files_fini() in both cases. */
int profile_files_read(
    struct profile_files *files, const struct options *options, const struct profile_files_choice *choice);
void profile_files_fini(struct profile_files *files);

/* Fills in what a duplicate is known by (measurement, names, timed) from the profile. Pure. */
void profile_files_measure(struct profile_file *file);

/* Of profiles that are the same, the one with the most names counts, else the first: the others are its
 * duplicates. 0 or -ENOMEM. Pure. */
int profile_files_find_duplicates(struct profile_file *files, size_t count);

/* Chooses among `count` files from `first` on. Says which files do not count, and why. Returns 0; -ERANGE
 * without a line: there is no session of that number; or the exit status after a line. The caller calls
 * selection_fini() in any case. */
int profile_files_select(const struct profile_files *files, size_t first, size_t count,
    const struct selection_choice *choice, struct selection *selection);

/* The line: the exit status. */
int profile_files_say_no_session(int32_t number, size_t session_count);

/* Encodes, packs and publishes a profile (flags: enum file_flags). path NULL: to standard output. 0, or
 * -errno after a line that says why. */
int profile_files_write(const struct profile *profile, const char *path, unsigned int flags);

#endif
