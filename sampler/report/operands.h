/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operands of a command that reads profiles, as paths of files: a folder stands for its profiles, which
 * are known by the end of their names, and no operand for the current folder. A word that names no file may
 * be SERVICE[@TIME]: then it stands for profiles of the daemon's store (pprof/service/store_moment.h).
 */
#ifndef SAMPLER_REPORT_OPERANDS_H
#define SAMPLER_REPORT_OPERANDS_H

#include "sampler/report/store_operand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERANDS_ENDINGS    "*.pb.gz, *.pb"
#define OPERANDS_SYMBOLIZED ".symbolized" /* what `heaptap symbolize` appends to a profile's name */

struct operand_path {
	char *path;
	size_t operand;   /* which one it came from */
	bool from_folder; /* it was there a moment ago: whoever records there may have removed it since */
	int64_t until_ns; /* as in struct store_operand_file */
};

struct operands {
	struct operand_path *paths;
	size_t count, capacity;
	size_t operand_count; /* at least 1 */
	size_t unread_count;  /* folders that cannot be read; a line has said why */
	bool has_folder, is_default;
};

/* Looks only at folders: a path may name anything. services NULL: words are paths. Returns 0, or -errno
 * after a line (-ENOMEM; -ENODATA: the store has nothing of a service then; -EINVAL: no time). The caller
 * ends it with operands_fini() in any case. */
int operands_expand(
    struct operands *operands, char *const *words, int count, const struct store_operand_choice *services);

void operands_fini(struct operands *operands);

/* Is it called as a profile is? Also as one that got its names later. */
bool operands_is_profile_name(const char *path);

#endif
