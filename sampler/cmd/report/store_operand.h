/* SPDX-License-Identifier: Apache-2.0 */
/* SERVICE[@TIME] on the command line: profiles of the daemon's store. */
#ifndef SAMPLER_CMD_REPORT_STORE_OPERAND_H
#define SAMPLER_CMD_REPORT_STORE_OPERAND_H

#include "pprof/store/store_moment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_operand_choice {
	const char *store; /* --store; NULL: the stores of config_file_stores() */
	enum store_moment_wanted wanted;
};

struct store_operand_file {
	char *path;
	/* Of a peak, if a time was asked for; else 0. The name has the time of the process' first peak, and
	 * later peaks replace the file: a peak after this time (since 1970) does not count. */
	int64_t until_ns;
};

struct store_operand {
	struct store_operand_file *files; /* by time; for store_operand_fini() */
	size_t count;
};

/* Finds the files that the word stands for. Returns 1; 0 if no store has such a service, after a line if
 * there is a store and `is_told`; -ENOMEM; or -errno after a line. The caller ends it with
 * store_operand_fini() in any case. */
int store_operand_find(
    struct store_operand *found, const char *word, const struct store_operand_choice *choice, bool is_told);
void store_operand_fini(struct store_operand *found);

#endif
