/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/module.h"
#include "sampler/unwind/cfi.h"
#include "sampler/unwind/module_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKETS = 1024 };

/*
 * Every module is in one bucket (by build id, else by inode, else by path) and in one list by time of use, in
 * which the unreferenced ones are looked for when there are too many of them and the idle ones when
 * descriptors run short.
 */
struct modules {
	struct module *bucket[BUCKETS];
	struct module *newest, *oldest;
	struct module *vdso;
	uint32_t last_id;
	unsigned count;
	unsigned unreferenced;
	unsigned cached_max;
	unsigned fds, fds_max;
	struct module_counters counters;
};

/* FNV-1a, 64 bits. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static unsigned bucket_of(bool readable, const uint8_t *build_id, uint8_t len, uint64_t ino, const char *path)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	if (len)
		hash = hash_bytes(hash, build_id, len);
	else if (readable)
		hash = hash_bytes(hash, &ino, sizeof(ino));
	else
		hash = hash_bytes(hash, path, strlen(path));
	return (hash ^ hash >> 32) % BUCKETS;
}

static unsigned module_bucket(const struct module *module)
{
	return bucket_of(module->readable, module->build_id, module->build_id_len, module->ino, module->path);
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

static void list_unlink(struct module *module)
{
	struct modules *store = module->store;

	*(module->newer ? &module->newer->older : &store->newest) = module->older;
	*(module->older ? &module->older->newer : &store->oldest) = module->newer;
	module->newer = module->older = NULL;
}

static void list_push(struct module *module)
{
	struct modules *store = module->store;

	module->older = store->newest;
	module->newer = NULL;
	*(store->newest ? &store->newest->newer : &store->oldest) = module;
	store->newest = module;
}

static void touch(struct module *module)
{
	if (module->store->newest == module)
		return;
	list_unlink(module);
	list_push(module);
}

static void close_fd(struct module *module)
{
	if (module->fd < 0)
		return;
	close(module->fd);
	module->fd = -1;
	module->store->fds--;
}

static void free_unlinked(struct module *module)
{
	cfi_free(module->cfi);
	free(module->path);
	free(module->open_path);
	free(module->segments);
	free(module);
}

static void release(struct module *module)
{
	struct modules *store = module->store;
	struct module **link = &store->bucket[module_bucket(module)];

	while (*link != module)
		link = &(*link)->next_in_bucket;
	*link = module->next_in_bucket;
	list_unlink(module);
	close_fd(module);
	if (!module->references)
		store->unreferenced--;
	if (store->vdso == module)
		store->vdso = NULL;
	store->count--;
	store->counters.released++;
	free_unlinked(module);
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
		module->store->unreferenced--;
	return module;
}

static void trim_cache(struct modules *store)
{
	struct module *newer;

	for (struct module *m = store->oldest; m && store->unreferenced > store->cached_max; m = newer) {
		newer = m->newer;
		if (!m->references)
			release(m);
	}
}

void module_unref(struct module *module)
{
	if (!module || --module->references)
		return;
	module->store->unreferenced++;
	/* What could not be read is worth nothing once nobody names it. */
	if (!module->readable)
		release(module);
	else
		trim_cache(module->store);
}

/* Can the descriptor be had again? Only then it may be closed while somebody holds the module. */
static bool can_reopen(const struct module *module)
{
	struct stat st;

	return (stat(module->open_path, &st) == 0 && module_file_same(module, &st)) ||
	    (stat(module->path, &st) == 0 && module_file_same(module, &st));
}

/* Closes one descriptor, oldest use first: of a module nobody holds, else of one that can be opened again. */
static bool drop_one_fd(struct modules *store)
{
	for (struct module *m = store->oldest; m; m = m->newer) {
		if (!m->references && m->fd >= 0) {
			release(m);
			return true;
		}
	}
	for (struct module *m = store->oldest; m; m = m->newer) {
		if (m->fd >= 0 && can_reopen(m)) {
			close_fd(m);
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

/* module_file_open() with descriptors made free as long as that is what it lacks. */
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
	return module->build_id_len == len && (!len || memcmp(module->build_id, build_id, len) == 0);
}

/*
 * A build id is what a file's owner wrote there: another user's file may carry that of root's libc. So a
 * module stands for every file with its build id only if root or we own it; one of anybody else for files of
 * the same owner and size, which takes a file that is open (NULL: not yet).
 */
static bool stands_for(const struct module *module, const struct module_file *file)
{
	return module->uid == 0 || module->uid == geteuid() ||
	    (file && module->uid == file->st.st_uid && module->file_bytes == (uint64_t)file->st.st_size);
}

static struct module *find_build_id(
    struct modules *store, const uint8_t *build_id, uint8_t len, const struct module_file *file)
{
	struct module *m = store->bucket[bucket_of(true, build_id, len, 0, "")];

	while (m && !(m->readable && !m->vdso && same_build_id(m, build_id, len) && stands_for(m, file)))
		m = m->next_in_bucket;
	return m;
}

static struct module *find_file(struct modules *store, const struct module_file *file)
{
	struct module *m;

	if (file->build_id_len)
		return find_build_id(store, file->build_id, file->build_id_len, file);
	m = store->bucket[bucket_of(true, NULL, 0, file->st.st_ino, "")];
	while (m && !(m->readable && !m->build_id_len && module_file_same(m, &file->st)))
		m = m->next_in_bucket;
	return m;
}

static struct module *find_unreadable(
    struct modules *store, const struct module_request *request, const char *path)
{
	struct module *m = store->bucket[bucket_of(false, request->build_id, request->build_id_len, 0, path)];

	while (m &&
	    !(!m->readable && same_build_id(m, request->build_id, request->build_id_len) &&
	        m->ino == request->ino && strcmp(m->path, path) == 0))
		m = m->next_in_bucket;
	return m;
}

/* A module with one reference for the caller; takes PATH. NULL: out of memory, PATH is freed. */
static struct module *new_module(struct modules *store, char *path)
{
	struct module *module = path ? calloc(1, sizeof(*module)) : NULL;

	if (!module) {
		free(path);
		return NULL;
	}
	module->store = store;
	module->id = ++store->last_id;
	module->references = 1;
	module->fd = -1;
	module->path = path;
	store->count++;
	list_push(module);
	return module;
}

static void link_bucket(struct module *module)
{
	struct module **bucket = &module->store->bucket[module_bucket(module)];

	module->next_in_bucket = *bucket;
	*bucket = module;
}

static void describe(struct module *module, struct module_file *file)
{
	module->readable = true;
	module->build_id_len = file->build_id_len;
	memcpy(module->build_id, file->build_id, file->build_id_len);
	module->dev = file->st.st_dev;
	module->ino = file->st.st_ino;
	module->uid = file->st.st_uid;
	module->file_bytes = (uint64_t)file->st.st_size;
	module->mtime_ns = module_file_mtime_ns(&file->st);
	module->e_machine = file->e_machine;
	module->e_type = file->e_type;
	module->n_segments = file->n_segments;
	module->segments = file->segments;
	module->open_path = file->open_path;
	file->segments = NULL;
	file->open_path = NULL;
}

static struct module *get_unreadable(
    struct modules *store, const struct module_request *request, char *path, int err)
{
	struct module *module = path ? find_unreadable(store, request, path) : NULL;

	if (module) {
		free(path);
		touch(module);
		return module_ref(module);
	}
	module = new_module(store, path);
	if (!module)
		return NULL;
	module->error = err;
	module->dev = request->dev;
	module->ino = request->ino;
	module->build_id_len = request->build_id_len;
	if (request->build_id_len)
		memcpy(module->build_id, request->build_id, request->build_id_len);
	link_bucket(module);
	return module;
}

static struct module *share(struct module *module)
{
	module->store->counters.shared++;
	touch(module);
	return module_ref(module);
}

struct module *module_get(struct modules *store, const struct module_request *given)
{
	struct module_request request = *given;
	struct module_file file;
	struct module *module;
	int err;

	if (!request.build_id || request.build_id_len > MODULE_BUILD_ID_BYTES)
		request.build_id_len = 0;
	if (request.build_id_len) {
		module = find_build_id(store, request.build_id, request.build_id_len, NULL);
		if (module)
			return share(module);
	}
	err = open_file(store, &request, &file);
	if (err)
		return get_unreadable(store, &request, module_file_path(request.path), err);
	module = find_file(store, &file);
	if (module) {
		if (module->fd < 0) {
			module->fd = file.fd;
			file.fd = -1;
			store->fds++;
		}
		module_file_close(&file);
		return share(module);
	}
	module = new_module(store, module_file_path(request.path));
	if (module) {
		module->fd = file.fd;
		file.fd = -1;
		store->fds++;
		describe(module, &file);
		store->counters.opened++;
		link_bucket(module);
	}
	module_file_close(&file);
	return module;
}

struct module *module_get_vdso(struct modules *store)
{
	struct module_file file;
	struct module *module;
	const void *image;

	if (store->vdso)
		return share(store->vdso);
	image = module_file_vdso(&file);
	if (!image)
		return NULL;
	module = new_module(store, strdup("[vdso]"));
	if (module) {
		describe(module, &file);
		module->vdso = true;
		module->image = image;
		store->vdso = module;
		link_bucket(module);
	}
	module_file_close(&file);
	return module;
}

int module_fd(struct module *module)
{
	struct modules *store = module->store;
	int fd;

	touch(module);
	if (module->fd >= 0)
		return module->fd;
	if (!module->readable)
		return module->error;
	if (module->vdso)
		return -ENOENT;
	make_room(store);
	do
		fd = module_file_reopen(module);
	while ((fd == -EMFILE || fd == -ENFILE) && drop_one_fd(store));
	if (fd == -EMFILE || fd == -ENFILE)
		store->counters.descriptors_short++;
	if (fd >= 0) {
		module->fd = fd;
		store->fds++;
	}
	return fd;
}

int module_read(struct module *module, void *to, size_t n, uint64_t offset)
{
	int fd;

	if (offset > INT64_MAX)
		return -EIO;
	if (module->vdso) {
		if (offset > module->file_bytes || n > module->file_bytes - offset)
			return -EIO;
		memcpy(to, (const char *)module->image + offset, n);
		return 0;
	}
	fd = module_fd(module);
	if (fd < 0)
		return fd;
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		done += (size_t)got;
	}
	return 0;
}

bool module_vaddr(const struct module *module, uint64_t offset, bool executable, uint64_t *vaddr)
{
	const uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	const struct module_segment *found = NULL;

	if (!module->readable) {
		*vaddr = offset;
		return true;
	}
	for (uint32_t i = 0; i < module->n_segments; i++) {
		const struct module_segment *s = &module->segments[i];
		uint64_t first = s->offset & ~page_mask;
		uint64_t last = (s->offset + s->file_bytes + page_mask) & ~page_mask;

		if (offset >= first && offset < last &&
		    (!found || (executable && s->executable && !found->executable)))
			found = s;
	}
	if (!found)
		return false;
	*vaddr = found->vaddr + (offset - found->offset);
	return true;
}
