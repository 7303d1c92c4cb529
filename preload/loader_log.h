/* SPDX-License-Identifier: Apache-2.0 */
/* Counts calls of dlclose, and notes which files are mapped before and after each (proto/loader_log.h). */
#ifndef PRELOAD_LOADER_LOG_H
#define PRELOAD_LOADER_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct loader_log_call {
	uint64_t key; /* of the region */
	bool counted; /* in the process' place */
};

/* Around a call of dlclose. Notes nothing where another thread has the lock of the loader's list. claimed:
 * the process has a place now; image: that of the image's own process, which notes. */
struct loader_log_call loader_log_begin(bool claimed, bool image);
void loader_log_end(struct loader_log_call call, bool claimed, bool image);

/* The count, for a stack that is copied; and for a place that is taken. */
uint64_t loader_log_now(void);
void loader_log_open(void);

#endif
