/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/module.h"

#include "pprof/table/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKETS = 1024 };

/* A module, and the members that only the store uses. */
struct entry {
	struct module module;
	struct cfi *cfi; /* NULL until the unwinder needs it */
	struct modules *store;
	struct entry *next_in_bucket;
	struct entry *newer, *older; /* by time of use */
};

/*
 * Every module is in one bucket (by build id, else by inode, else by path) and in one list by time of use,
 * which serves to find unreferenced modules when there are too many of them, and idle ones when descriptors
 * are short.
 */
struct modules {
	struct module_library library;
	struct entry *bucket[BUCKETS]; /* lists, since modules also go */
	struct entry *newest, *oldest;
	struct entry *vdso;
	unsigned count;
	unsigned unreferenced;
	unsigned cached_max;
	unsigned fds, fds_max;
	struct module_counters counters;
};

/* The entry of a module that has a holder. */
static struct entry *entry_of(struct module *module)
{
	return (struct entry *)module;
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
	return index_fold(hash) % BUCKETS;
}

static unsigned entry_bucket(const struct entry *entry)
{
	const struct module *m = &entry->module;

	return bucket_of(m->readable, m->file.build_id, m->file.build_id_len, m->file.ino, m->path);
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
	store->cached_max = MODULE_CACHED_DEFAULT;
	return store;
}

static void list_unlink(struct entry *entry)
{
	struct modules *store = entry->store;

	*(entry->newer ? &entry->newer->older : &store->newest) = entry->older;
	*(entry->older ? &entry->older->newer : &store->oldest) = entry->newer;
	entry->newer = entry->older = NULL;
}

static void list_push(struct entry *entry)
{
	struct modules *store = entry->store;

	entry->older = store->newest;
	entry->newer = NULL;
	*(store->newest ? &store->newest->newer : &store->oldest) = entry;
	store->newest = entry;
}

static void touch(struct entry *entry)
{
	if (entry->store->newest == entry)
		return;
	list_unlink(entry);
	list_push(entry);
}

static void close_fd(struct entry *entry)
{
	if (entry->module.file.fd < 0)
		return;
	close(entry->module.file.fd);
	entry->module.file.fd = -1;
	entry->store->fds--;
}

static void release(struct entry *entry)
{
	struct modules *store = entry->store;
	struct entry **link = &store->bucket[entry_bucket(entry)];

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
		release(store->oldest);
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

struct module *module_ref(struct module *module)
{
	if (module->references++ == 0)
		entry_of(module)->store->unreferenced--;
	return module;
}

static void trim_cache(struct modules *store)
{
	struct entry *newer;

	for (struct entry *e = store->oldest; e && store->unreferenced > store->cached_max; e = newer) {
		newer = e->newer;
		if (!e->module.references)
			release(e);
	}
}

void module_unref(struct module *module)
{
	if (!module || --module->references)
		return;
	struct entry *entry = entry_of(module);
	entry->store->unreferenced++;
	/* A file that could not be read is not worth caching once it has no holder. */
	if (!module->readable)
		release(entry);
	else
		trim_cache(entry->store);
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
static bool drop_one_fd(struct modules *store)
{
	for (struct entry *e = store->oldest; e; e = e->newer) {
		if (!e->module.references && e->module.file.fd >= 0) {
			release(e);
			return true;
		}
	}
	for (struct entry *e = store->oldest; e; e = e->newer) {
		if (e->module.file.fd >= 0 && can_reopen(&e->module)) {
			close_fd(e);
			store->counters.descriptors_dropped++;
			return true;
		}
	}
	return false;
}

static void make_room(struct modules *store)
{
	while (store->fds >= store->fds_max && drop_one_fd(store))
		;
}

/* Calls module_file_open(), and closes descriptors as long as it fails for lack of them. */
static int open_file(struct modules *store, const struct module_request *request, struct module_file *file)
{
	int err;

	make_room(store);
	do
		err = module_file_open(request, file);
	while ((err == -EMFILE || err == -ENFILE) && drop_one_fd(store));
	if (err == -EMFILE || err == -ENFILE)
		store->counters.descriptors_short++;
	else if (err == -ESTALE)
		store->counters.mismatched++;
	else if (err == -ENOEXEC)
		store->counters.refused++;
	else if (err)
		store->counters.missing++;
	return err;
}

static bool same_build_id(const struct module *module, const uint8_t *build_id, uint8_t len)
{
	return module->file.build_id_len == len &&
	    (!len || memcmp(module->file.build_id, build_id, len) == 0);
}

/*
 * The owner of a file chooses its build id: another user's file may have that of root's libc. So a module
 * stands for every file with its build id only if root or we own it; one of another user stands only for
 * files of the same owner and size, which must be open to be compared (NULL: not yet).
 */
static bool stands_for(const struct module *module, const struct module_file *file)
{
	uint32_t uid = module->file.uid;
	return uid == 0 || uid == geteuid() ||
	    (file && uid == file->uid && module->file.bytes == file->bytes);
}

static struct entry *find_build_id(
    struct modules *store, const uint8_t *build_id, uint8_t len, const struct module_file *file)
{
	struct entry *e = store->bucket[bucket_of(true, build_id, len, 0, "")];

	while (e &&
	    !(e->module.readable && !e->module.vdso && same_build_id(&e->module, build_id, len) &&
	        stands_for(&e->module, file)))
		e = e->next_in_bucket;
	return e;
}

static struct entry *find_file(struct modules *store, const struct module_file *file)
{
	if (file->build_id_len)
		return find_build_id(store, file->build_id, file->build_id_len, file);
	struct entry *e = store->bucket[bucket_of(true, NULL, 0, file->ino, "")];
	while (e) {
		const struct module_file *known = &e->module.file;
		if (e->module.readable && !known->build_id_len && known->dev == file->dev &&
		    known->ino == file->ino && known->bytes == file->bytes &&
		    known->mtime_ns == file->mtime_ns)
			break;
		e = e->next_in_bucket;
	}
	return e;
}

static struct entry *find_unreadable(
    struct modules *store, const struct module_request *request, const char *path)
{
	struct entry *e = store->bucket[bucket_of(false, request->build_id, request->build_id_len, 0, path)];

	while (e &&
	    !(!e->module.readable && same_build_id(&e->module, request->build_id, request->build_id_len) &&
	        e->module.file.ino == request->ino && strcmp(e->module.path, path) == 0))
		e = e->next_in_bucket;
	return e;
}

/* An entry without a file, with one reference for the caller; takes ownership of `path`. NULL: out of memory,
 * `path` is freed. */
static struct entry *new_entry(struct modules *store, char *path)
{
	struct entry *entry = path ? calloc(1, sizeof(*entry)) : NULL;

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

static void link_bucket(struct entry *entry)
{
	struct entry **bucket = &entry->store->bucket[entry_bucket(entry)];

	entry->next_in_bucket = *bucket;
	*bucket = entry;
}

static struct module *share(struct entry *entry)
{
	touch(entry);
	return module_ref(&entry->module);
}

static struct module *get_unreadable(
    struct modules *store, const struct module_request *request, char *path, int err)
{
	struct entry *entry = path ? find_unreadable(store, request, path) : NULL;

	if (entry) {
		free(path);
		return share(entry);
	}
	entry = new_entry(store, path);
	if (!entry)
		return NULL;
	entry->module.error = err;
	entry->module.file.dev = request->dev;
	entry->module.file.ino = request->ino;
	entry->module.file.build_id_len = request->build_id_len;
	if (request->build_id_len)
		memcpy(entry->module.file.build_id, request->build_id, request->build_id_len);
	link_bucket(entry);
	return &entry->module;
}

/* A module of `file`, which is taken, or closed if there is no memory. */
static struct module *get_readable(struct modules *store, struct module_file *file, char *path)
{
	struct entry *entry = new_entry(store, path);

	if (!entry) {
		module_file_close(file);
		return NULL;
	}
	entry->module.readable = true;
	entry->module.vdso = file->memory;
	entry->module.file = *file;
	store->fds += file->fd >= 0;
	link_bucket(entry);
	return &entry->module;
}

struct module *module_get(struct modules *store, const struct module_request *given)
{
	struct module_request request = *given;
	struct module_file file;
	struct entry *entry = NULL;
	int err;

	if (!request.build_id || request.build_id_len > MODULE_BUILD_ID_BYTES)
		request.build_id_len = 0;
	if (request.build_id_len)
		entry = find_build_id(store, request.build_id, request.build_id_len, NULL);
	if (entry) {
		store->counters.shared++;
		return share(entry);
	}
	err = open_file(store, &request, &file);
	if (err)
		return get_unreadable(store, &request, module_file_path(request.path), err);
	entry = find_file(store, &file);
	if (!entry) {
		struct module *module = get_readable(store, &file, module_file_path(request.path));
		store->counters.opened += module != NULL;
		return module;
	}
	if (entry->module.file.fd < 0) {
		entry->module.file.fd = file.fd;
		file.fd = -1;
		store->fds++;
	}
	module_file_close(&file);
	store->counters.shared++;
	return share(entry);
}

struct module *module_get_vdso(struct modules *store)
{
	struct module_file file;
	struct module *module;

	if (store->vdso) {
		store->counters.shared++;
		return share(store->vdso);
	}
	if (module_file_open_vdso(&file) != 0)
		return NULL;
	module = get_readable(store, &file, strdup("[vdso]"));
	store->vdso = module ? entry_of(module) : NULL;
	return module;
}

int module_fd(struct module *module)
{
	struct modules *store = entry_of(module)->store;
	int fd;

	touch(entry_of(module));
	if (module->file.fd >= 0)
		return module->file.fd;
	if (!module->readable)
		return module->error;
	if (module->vdso)
		return -ENOENT;
	make_room(store);
	do
		fd = module_file_reopen(&module->file, module->path);
	while ((fd == -EMFILE || fd == -ENFILE) && drop_one_fd(store));
	if (fd == -EMFILE || fd == -ENFILE)
		store->counters.descriptors_short++;
	if (fd >= 0) {
		module->file.fd = fd;
		store->fds++;
	}
	return fd;
}

int module_read(struct module *module, void *to, size_t bytes, uint64_t offset)
{
	int fd = module->vdso ? 0 : module_fd(module);

	return fd < 0 ? fd : module_file_read(&module->file, to, bytes, offset);
}

bool module_vaddr(const struct module *module, uint64_t offset, bool executable, uint64_t *vaddr)
{
	if (module->readable)
		return module_file_vaddr(&module->file, offset, executable, vaddr);
	*vaddr = offset;
	return true;
}

const struct cfi_rule *module_rule(struct module *module, uint64_t vaddr)
{
	struct entry *entry = entry_of(module);
	const struct cfi_rule *known;

	if (!entry->cfi && module->readable)
		entry->cfi = cfi_new(module->file.e_machine);
	if (!entry->cfi)
		return &cfi_no_rule;
	known = cfi_known(entry->cfi, vaddr);
	if (known)
		return known;
	/* The descriptor may have been closed to make room. If it cannot be opened again, there is no
	 * rule. */
	module_fd(module);
	return cfi_find(entry->cfi, &module->file, vaddr);
}

void module_measure_cfi(const struct module *module, struct cfi_usage *usage)
{
	cfi_measure(((const struct entry *)module)->cfi, usage);
}
