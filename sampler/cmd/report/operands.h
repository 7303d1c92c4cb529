/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operands of a command that reads profiles, as paths of files. A folder stands for its profiles, which
 * are known by the ends of their names. No operand stands for the current folder. A word that names no file
 * may be SERVICE[@TIME]: it stands for profiles of the daemon's store (pprof/store/store_moment.h).
 */
#ifndef SAMPLER_CMD_REPORT_OPERANDS_H
#define SAMPLER_CMD_REPORT_OPERANDS_H

#include "pprof/store/store_moment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERANDS_ENDINGS    "*.pb.gz, *.pb"
#define OPERANDS_SYMBOLIZED ".symbolized" /* what `heaptap symbolize` appends to a profile's name */

enum { OPERANDS_NO_STORE_BYTES = 1024 };

struct operand_path {
	char *path;
	size_t operand;   /* the number of the operand that it came from */
	bool from_folder; /* it was found in a folder: a recording may have removed it since */
	/* Of a peak in a store, if a time was asked for; else 0. The name has the time of the process' first
	 * peak, and later peaks replace the file: a peak after this time (since 1970) does not count. */
	int64_t until_ns;
};

struct operands {
	struct operand_path *paths;
	size_t count, capacity;
	size_t operand_count; /* at least 1 */
	size_t unread_count;  /* folders that cannot be read, after a line */
	bool has_folder, is_default;
	/* "/var/lib/heaptap/store (Permission denied)": a word is no file, no store has services; "" */
	char no_store[OPERANDS_NO_STORE_BYTES];
};

/* What SERVICE[@TIME] stands for. */
struct operands_services {
	const char *store; /* --store; NULL: the stores of config_file_stores() */
	enum store_moment_wanted wanted;
};

/* Reads only folders and stores: a path may name anything. services NULL: all words are paths. 0, or -errno
 * after a line (-ENOMEM; -ENODATA: the store has nothing of the service at that time; -EINVAL: not a time).
 * The caller ends it with operands_fini() in any case. */
int operands_expand(
    struct operands *operands, char *const *words, int count, const struct operands_services *services);

void operands_fini(struct operands *operands);

/* Does the path end as a profile's name does, or as that of a profile that got its names later? */
bool operands_is_profile_name(const char *path);

#endif
