/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/loader_log.h"

#include <string.h>

enum { TRIES = 8 };

static bool is_good(const struct loader_log_file *file)
{
	return file->since <= file->until && file->start < file->end &&
	    file->build_id_bytes <= LOADER_LOG_BUILD_ID_BYTES && memchr(file->path, '\0', sizeof(file->path));
}

static void copy_files(const struct loader_log *log, struct loader_log_copy *copy)
{
	const uint32_t files = *(const volatile uint32_t *)&log->files;

	copy->count = *(const volatile uint64_t *)&log->count;
	copy->whole_since = *(const volatile uint64_t *)&log->whole_since;
	copy->full = *(const volatile uint32_t *)&log->full != 0;
	copy->files = 0;
	for (uint32_t i = 0; i < files && i < LOADER_LOG_FILES; i++) {
		struct loader_log_file *to = &copy->file[copy->files];

		memcpy(to, &log->file[i], sizeof(*to));
		copy->files += is_good(to);
	}
}

bool loader_log_read(const struct loader_log *log, struct loader_log_copy *copy)
{
	for (unsigned i = 0; i < TRIES; i++) {
		const uint64_t before = atomic_load_explicit(&log->changes, memory_order_acquire);

		if (before % 2)
			continue;
		copy_files(log, copy);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&log->changes, memory_order_relaxed) == before)
			return true;
	}
	return false;
}
