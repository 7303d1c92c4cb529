/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/modules.h"

#include "pprof/table/index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The entry of a module that has a holder. */
struct module_entry *modules_entry(struct module *module)
{
	return (struct module_entry *)module;
}

static unsigned bucket_of(bool readable, const uint8_t *build_id, uint8_t len, uint64_t ino, const char *path)
{
	uint64_t hash = index_seed();

	if (len)
		hash = index_mix_bytes(hash, build_id, len);
	else if (readable)
		hash = index_mix(hash, ino);
	else
		hash = index_mix_bytes(hash, path, strlen(path));
	return index_fold(hash) % MODULES_BUCKETS;
}

static unsigned entry_bucket(const struct module_entry *entry)
{
	const struct module *m = &entry->module;

	return bucket_of(m->readable, m->file.build_id, m->file.build_id_len, m->file.ino, m->path);
}

struct module_entry *modules_bucket(const struct modules *store, bool readable, const uint8_t *build_id,
    uint8_t len, uint64_t ino, const char *path)
{
	return store->bucket[bucket_of(readable, build_id, len, ino, path)];
}

struct modules *modules_new(unsigned fds_max)
{
	struct modules *store = calloc(1, sizeof(*store));
	struct rlimit limit;

	if (!store)
		return NULL;
	if (!fds_max) {
		fds_max = 192;
		if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 0)
			fds_max = limit.rlim_cur > 1 << 20 ? 768 * 1024 : (unsigned)limit.rlim_cur / 4 * 3;
	}
	store->fds_max = fds_max;
	store->rows.max_bytes = MODULE_ROWS_BYTES_MAX;
	store->cached_max = MODULE_CACHED_DEFAULT;
	return store;
}

static void list_unlink(struct module_entry *entry)
{
	struct modules *store = entry->store;

	*(entry->newer ? &entry->newer->older : &store->newest) = entry->older;
	*(entry->older ? &entry->older->newer : &store->oldest) = entry->newer;
	entry->newer = entry->older = NULL;
}

static void list_push(struct module_entry *entry)
{
	struct modules *store = entry->store;

	entry->older = store->newest;
	entry->newer = NULL;
	*(store->newest ? &store->newest->newer : &store->oldest) = entry;
	store->newest = entry;
}

void modules_touch(struct module_entry *entry)
{
	if (entry->store->newest == entry)
		return;
	list_unlink(entry);
	list_push(entry);
}

static void close_fd(struct module_entry *entry)
{
	if (entry->module.file.fd < 0)
		return;
	close(entry->module.file.fd);
	entry->module.file.fd = -1;
	entry->store->fds--;
}

void modules_release(struct module_entry *entry)
{
	struct modules *store = entry->store;
	struct module_entry **link = &store->bucket[entry_bucket(entry)];

	while (*link != entry)
		link = &(*link)->next_in_bucket;
	*link = entry->next_in_bucket;
	list_unlink(entry);
	close_fd(entry);
	if (!entry->module.references)
		store->unreferenced--;
	if (store->vdso == entry)
		store->vdso = NULL;
	store->count--;
	store->counters.released++;
	cfi_free(entry->cfi);
	free(entry->module.path);
	module_file_close(&entry->module.file);
	free(entry);
}

struct module_library *modules_library(struct modules *store)
{
	return &store->library;
}

void modules_free(struct modules *store)
{
	if (!store)
		return;
	while (store->oldest)
		modules_release(store->oldest);
	free(store);
}

unsigned modules_count(const struct modules *store)
{
	return store->count;
}

unsigned modules_open_fds(const struct modules *store)
{
	return store->fds;
}

const struct module_counters *modules_counters(const struct modules *store)
{
	return &store->counters;
}

struct module_entry *modules_add(struct modules *store, char *path)
{
	struct module_entry *entry = path ? calloc(1, sizeof(*entry)) : NULL;

	if (!entry) {
		free(path);
		return NULL;
	}
	entry->store = store;
	entry->module.references = 1;
	entry->module.path = path;
	entry->module.file.fd = -1;
	store->count++;
	list_push(entry);
	return entry;
}

void modules_link(struct module_entry *entry)
{
	struct module_entry **bucket = &entry->store->bucket[entry_bucket(entry)];

	entry->next_in_bucket = *bucket;
	*bucket = entry;
}

void modules_trim(struct modules *store)
{
	struct module_entry *newer;

	for (struct module_entry *e = store->oldest; e && store->unreferenced > store->cached_max;
	     e = newer) {
		newer = e->newer;
		if (!e->module.references)
			modules_release(e);
	}
}

/* Can the file be opened again? Only then the descriptor may be closed while the module has a holder. */
static bool can_reopen(const struct module *module)
{
	struct stat st;

	return (stat(module->file.open_path, &st) == 0 && module_file_same(&module->file, &st)) ||
	    (stat(module->path, &st) == 0 && module_file_same(&module->file, &st));
}

/* Closes one descriptor, oldest use first: of a module without a holder, else of one that can be opened
 * again. */
bool modules_drop_descriptor(struct modules *store)
{
	for (struct module_entry *e = store->oldest; e; e = e->newer) {
		if (!e->module.references && e->module.file.fd >= 0) {
			modules_release(e);
			return true;
		}
	}
	for (struct module_entry *e = store->oldest; e; e = e->newer) {
		if (e->module.file.fd >= 0 && can_reopen(&e->module)) {
			close_fd(e);
			store->counters.descriptors_dropped++;
			return true;
		}
	}
	return false;
}

void modules_make_room(struct modules *store)
{
	while (store->fds >= store->fds_max && modules_drop_descriptor(store))
		;
}
