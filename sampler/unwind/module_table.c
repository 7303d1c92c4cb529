/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/module.h"

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

/* Hashes what tells files without a build id apart. For files with a build id also the time of change: their
 * owner can choose all else, and make thousands of such files. */
static uint64_t hash_of_file(const struct module_file *file)
{
	uint64_t hash = index_mix(index_seed(), file->dev);

	hash = index_mix(hash, file->ino);
	hash = index_mix(hash, file->bytes);
	hash = index_mix(hash, (uint64_t)file->mtime_ns);
	return file->build_id_len ? index_mix(hash, (uint64_t)file->ctime_ns) : hash;
}

static uint64_t hash_of_build_id(const uint8_t *build_id, uint8_t len)
{
	return index_mix_bytes(index_seed(), build_id, len);
}

static uint64_t hash_of_unreadable(const uint8_t *build_id, uint8_t len, uint64_t ino, const char *path)
{
	return index_mix_bytes(index_mix(hash_of_build_id(build_id, len), ino), path, strlen(path));
}

static uint64_t hash_of_entry(const struct module_entry *entry)
{
	const struct module *m = &entry->module;
	const struct module_file *file = &m->file;

	if (!m->readable)
		return hash_of_unreadable(file->build_id, file->build_id_len, file->ino, m->path);
	if (!file->build_id_len || entry->by_file)
		return hash_of_file(file);
	return hash_of_build_id(file->build_id, file->build_id_len);
}

static uint64_t hash_of_inode(uint64_t dev, uint64_t ino, pid_t pid)
{
	return index_mix(index_mix(index_mix(index_seed(), dev), ino), (uint64_t)pid);
}

static struct module_entry **bucket_of(const struct modules *store, uint64_t hash)
{
	return &store->bucket[index_fold(hash) & (store->buckets - 1)];
}

static struct module_entry **inode_bucket(const struct modules *store, uint64_t dev, uint64_t ino, pid_t pid)
{
	return &store->of_inode[index_fold(hash_of_inode(dev, ino, pid)) & (store->buckets - 1)];
}

static struct module_entry **inode_bucket_of(const struct module_entry *entry)
{
	const struct module_file *file = &entry->module.file;

	return inode_bucket(entry->store, file->dev, file->ino, file->copied.pid);
}

struct module_entry *modules_of_inode(const struct modules *store, uint64_t dev, uint64_t ino, pid_t pid)
{
	return *inode_bucket(store, dev, ino, pid);
}

struct module_entry *modules_with_build_id(const struct modules *store, const uint8_t *build_id, uint8_t len)
{
	return *bucket_of(store, hash_of_build_id(build_id, len));
}

struct module_entry *modules_of_file(const struct modules *store, const struct module_file *file)
{
	return *bucket_of(store, hash_of_file(file));
}

struct module_entry *modules_unreadable(
    const struct modules *store, const uint8_t *build_id, uint8_t len, uint64_t ino, const char *path)
{
	return *bucket_of(store, hash_of_unreadable(build_id, len, ino, path));
}

struct modules *modules_new(unsigned fds_max)
{
	struct modules *store = calloc(1, sizeof(*store));
	struct rlimit limit;

	if (!store)
		return NULL;
	store->bucket = calloc(MODULES_BUCKETS, sizeof(struct module_entry *));
	store->of_inode = calloc(MODULES_BUCKETS, sizeof(struct module_entry *));
	if (!store->bucket || !store->of_inode) {
		free(store->bucket);
		free(store->of_inode);
		free(store);
		return NULL;
	}
	store->buckets = MODULES_BUCKETS;
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
	*(entry->newer ? &entry->newer->older : &entry->list->newest) = entry->older;
	*(entry->older ? &entry->older->newer : &entry->list->oldest) = entry->newer;
	entry->newer = entry->older = NULL;
}

static void list_push(struct module_list *list, struct module_entry *entry)
{
	entry->list = list;
	entry->older = list->newest;
	entry->newer = NULL;
	*(list->newest ? &list->newest->newer : &list->oldest) = entry;
	list->newest = entry;
}

static struct module_list *list_of(const struct module_entry *entry)
{
	struct modules *store = entry->store;

	if (!entry->module.references)
		return &store->idle;
	return entry->module.file.fd >= 0 && !entry->file_gone ? &store->closable : &store->others;
}

void modules_touch(struct module_entry *entry)
{
	struct module_list *list = list_of(entry);

	if (list->newest == entry)
		return;
	list_unlink(entry);
	list_push(list, entry);
}

static void close_fd(struct module_entry *entry)
{
	if (entry->module.file.fd < 0)
		return;
	close(entry->module.file.fd);
	entry->module.file.fd = -1;
	entry->store->fds--;
}

static bool is_file(const struct module_entry *entry)
{
	return entry->module.readable && !entry->module.vdso;
}

void modules_release(struct module_entry *entry)
{
	struct modules *store = entry->store;
	struct module_entry **link = bucket_of(store, hash_of_entry(entry));

	while (*link != entry)
		link = &(*link)->next_in_bucket;
	*link = entry->next_in_bucket;
	if (is_file(entry)) {
		for (link = inode_bucket_of(entry); *link != entry;)
			link = &(*link)->next_of_inode;
		*link = entry->next_of_inode;
	}
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
	struct module_list *lists[] = {&store->idle, &store->closable, &store->others};
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		while (lists[i]->oldest)
			modules_release(lists[i]->oldest);
	free(store->bucket);
	free(store->of_inode);
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
	list_push(&store->others, entry);
	return entry;
}

static void push(struct module_entry *entry)
{
	struct module_entry **bucket = bucket_of(entry->store, hash_of_entry(entry));

	entry->next_in_bucket = *bucket;
	*bucket = entry;
	if (!is_file(entry))
		return;
	bucket = inode_bucket_of(entry);
	entry->next_of_inode = *bucket;
	*bucket = entry;
}

/* If memory is short, the lists get longer. */
static void double_buckets(struct modules *store)
{
	struct module_entry **old = store->bucket, *e, *next;
	struct module_entry **bucket = calloc(store->buckets * 2, sizeof(struct module_entry *));
	struct module_entry **of_inode = calloc(store->buckets * 2, sizeof(struct module_entry *));

	if (!bucket || !of_inode) {
		free(bucket);
		free(of_inode);
		return;
	}
	free(store->of_inode);
	store->bucket = bucket;
	store->of_inode = of_inode;
	store->buckets *= 2;
	for (size_t i = 0; i < store->buckets / 2; i++)
		for (e = old[i]; e; e = next) {
			next = e->next_in_bucket;
			push(e);
		}
	free(old);
}

void modules_link(struct module_entry *entry)
{
	if (entry->store->count > entry->store->buckets)
		double_buckets(entry->store);
	push(entry);
}

void modules_trim(struct modules *store)
{
	while (store->unreferenced > store->cached_max)
		modules_release(store->idle.oldest);
}

/* Can the file be opened again? Only then the descriptor may be closed while the module has a holder. */
static bool can_reopen(const struct module *module)
{
	struct stat st;

	return (stat(module->file.open_path, &st) == 0 && module_file_same(&module->file, &st)) ||
	    (stat(module->path, &st) == 0 && module_file_same(&module->file, &st));
}

bool modules_drop_descriptor(struct modules *store)
{
	struct module_entry *e;

	for (e = store->idle.oldest; e; e = e->newer) {
		store->counters.looked_at++;
		if (e->module.file.fd >= 0) {
			modules_release(e);
			return true;
		}
	}
	while ((e = store->closable.oldest)) {
		store->counters.looked_at++;
		e->file_gone = !can_reopen(&e->module);
		if (!e->file_gone) {
			close_fd(e);
			store->counters.descriptors_dropped++;
		}
		modules_touch(e);
		if (!e->file_gone)
			return true;
	}
	return false;
}

void modules_make_room(struct modules *store)
{
	while (store->fds >= store->fds_max && modules_drop_descriptor(store))
		;
}
