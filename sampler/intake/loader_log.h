/* SPDX-License-Identifier: Apache-2.0 */
/* What a program run says of the files that it has mapped (proto/loader_log.h), read and checked. */
#ifndef SAMPLER_INTAKE_LOADER_LOG_H
#define SAMPLER_INTAKE_LOADER_LOG_H

#include "proto/loader_log.h"

#include <stdbool.h>

struct loader_log_copy {
	uint64_t count, whole_since; /* it is whole for [whole_since, count) */
	bool full;                   /* there was no room for a file */
	uint32_t files;
	struct loader_log_file file[LOADER_LOG_FILES]; /* with since <= until, start < end, and a path */
};

/* False: it is being written, all the time. */
bool loader_log_read(const struct loader_log *log, struct loader_log_copy *copy);

#endif
