/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/loader_log.h"

#include "preload/loader_lock.h"
#include "preload/lookup.h"
#include "preload/module_list.h"
#include "preload/place.h"
#include "preload/thread.h"
#include "proto/loader_log.h"
#include "proto/walk.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

/* This process' own, from its start on: a forked child goes on from where its parent was. */
static _Atomic uint64_t unmaps;
static _Atomic bool skipped; /* a count was not noted */

uint64_t loader_log_now(void)
{
	return atomic_load_explicit(&place_self()->unmaps, memory_order_acquire);
}

void loader_log_open(void)
{
	place_self()->forked_unmaps = atomic_load(&unmaps);
	atomic_store(&place_self()->unmaps, place_self()->forked_unmaps);
}

static struct loader_log *log_of(void)
{
	return &((struct walk_area *)place_part(place_view.region.offsets.walk))->loader_log;
}

/* ---- all of it within one call of dl_iterate_phdr, which holds the loader's lock */

struct noting {
	struct loader_log *log;
	uint64_t count; /* that ends */
	bool seen[LOADER_LOG_FILES];
};

static bool is_of_start(uint64_t start)
{
	const struct region_header *header = place_header();

	for (uint32_t i = 0; i < header->start_files && i < REGION_START_FILES; i++)
		if (header->start_file[i].start == start)
			return true;
	return false;
}

/* Read once: others may write there. */
static uint32_t files_of(const struct loader_log *log)
{
	const uint32_t files = *(const volatile uint32_t *)&log->files;

	return files < LOADER_LOG_FILES ? files : LOADER_LOG_FILES;
}

static bool is_same(const struct loader_log_file *a, const struct loader_log_file *b)
{
	return a->start == b->start && a->end == b->end && a->file_offset == b->file_offset &&
	    a->build_id_bytes == b->build_id_bytes &&
	    memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0 &&
	    strncmp(a->path, b->path, sizeof(a->path)) == 0;
}

/* Room for a file: the one that was unmapped first makes it. NULL: all are mapped. */
static struct loader_log_file *make_room(struct loader_log *log)
{
	struct loader_log_file *first = NULL;
	const uint32_t files = files_of(log);

	if (files < LOADER_LOG_FILES) {
		log->files = files + 1;
		return &log->file[files];
	}
	for (uint32_t i = 0; i < LOADER_LOG_FILES; i++)
		if (log->file[i].until != LOADER_LOG_STAYS && (!first || log->file[i].until < first->until))
			first = &log->file[i];
	if (first && log->whole_since <= first->until)
		log->whole_since = first->until + 1;
	return first;
}

static void note_file(struct noting *noting, const struct loader_log_file *file)
{
	struct loader_log *log = noting->log;
	const uint32_t files = files_of(log);

	for (uint32_t i = 0; i < files; i++)
		if (log->file[i].until == LOADER_LOG_STAYS && is_same(&log->file[i], file)) {
			noting->seen[i] = true;
			return;
		}
	struct loader_log_file *room = make_room(log);
	if (!room) {
		log->full = 1;
		return;
	}
	*room = *file;
	noting->seen[room - log->file] = true;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct noting *noting = argument;
	struct loader_log_file file = {.since = noting->count, .until = LOADER_LOG_STAYS};
	bool described = false;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		struct region_range range;

		if (!module_list_code(info, segment, &range) || is_of_start(range.start))
			continue;
		if (!described)
			file.build_id_bytes = module_list_build_id(info, file.build_id);
		if (!described && info->dlpi_name)
			strncpy(file.path, info->dlpi_name, sizeof(file.path) - 1);
		described = true;
		file.start = range.start;
		file.end = range.end;
		file.file_offset = segment->p_offset & ~(uint64_t)(REGION_PAGE_BYTES - 1);
		note_file(noting, &file);
	}
	return 0;
}

static void note_all(struct noting *noting)
{
	lookup_each(note_object, noting);
	for (uint32_t i = 0; i < files_of(noting->log); i++)
		if (!noting->seen[i] && noting->log->file[i].until == LOADER_LOG_STAYS)
			noting->log->file[i].until = noting->count;
}

static int note_locked(struct dl_phdr_info *info, size_t size, void *argument)
{
	/* Nothing has come or gone since: a call of dlclose mostly does no more than count down. */
	static unsigned long long adds, subs;
	static uint64_t key;
	const uint64_t delta = *(const uint64_t *)argument;
	struct loader_log *log = log_of();
	struct noting noting = {.log = log, .count = loader_log_count(loader_log_now())};
	const bool told = size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs);
	const bool changed =
	    !told || key != place_view.region.key || adds != info->dlpi_adds || subs != info->dlpi_subs;
	atomic_fetch_add(&log->changes, 1);
	if (changed)
		note_all(&noting);
	if (atomic_exchange(&skipped, false))
		log->whole_since = noting.count + 1;
	log->count = noting.count + 1;
	atomic_fetch_add(&log->changes, 1);
	atomic_fetch_add(&place_self()->unmaps, delta);
	if (told) {
		adds = info->dlpi_adds;
		subs = info->dlpi_subs;
		key = place_view.region.key;
	}
	return 1;
}

/* musl unmaps nothing, and holds no lock. */
static bool may_note(bool image)
{
	if (!image || !thread_libc_is_glibc())
		return false;
	if (loader_lock_try_list())
		return true;
	atomic_store(&skipped, true);
	return false;
}

static void change(uint64_t delta, bool counted, bool image)
{
	atomic_fetch_add(&unmaps, delta);
	if (!counted)
		return;
	if (may_note(image)) {
		lookup_each(note_locked, &delta);
		loader_lock_release_list();
	} else {
		atomic_fetch_add(&place_self()->unmaps, delta);
	}
}

struct loader_log_call loader_log_begin(bool claimed, bool image)
{
	const struct loader_log_call call = {.key = place_view.region.key, .counted = claimed};

	change(LOADER_LOG_BEGIN, claimed, image);
	return call;
}

/* Meanwhile a destructor may have forked, and this be the child, in whose place the call is counted too; or
 * this has got a place, or another region, only now. */
void loader_log_end(struct loader_log_call call, bool claimed, bool image)
{
	const bool begun = claimed && call.counted && call.key == place_view.region.key &&
	    loader_log_calls(loader_log_now());

	change(LOADER_LOG_END, begun, image);
	if (claimed && !begun)
		atomic_fetch_add(&place_self()->unmaps, 1ull << LOADER_LOG_CALLS_BITS);
}
