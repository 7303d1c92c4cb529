/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/module.h"

#include "pprof/text/throttle.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REOPEN_WORK = 64 << 10 }; /* to look for a file that is not found (cfi.h) */

struct module *module_ref(struct module *module)
{
	if (module->references++ == 0) {
		modules_entry(module)->store->unreferenced--;
		modules_touch(modules_entry(module));
	}
	return module;
}

void module_unref(struct module *module)
{
	if (!module || --module->references)
		return;
	struct module_entry *entry = modules_entry(module);
	entry->store->unreferenced++;
	modules_touch(entry);
	/* Without a holder, a module is not worth caching if its file could not be read, or if only one
	 * process can have it. */
	if (!module->readable || module->file.copied.pid)
		modules_release(entry);
	else
		modules_trim(entry->store);
}

/* A mapping whose file has no name any more, by the kernel's word, and whose build id is unknown. */
static bool is_of_deleted(const struct module_request *request)
{
	return request->pid > 0 && request->ino && !request->listed && !request->build_id_len &&
	    proc_undeleted_length(request->path) != strlen(request->path);
}

/* Calls module_file_open(), and closes descriptors as long as it fails for lack of them. A deleted file is
 * copied from the process' memory if all else fails. */
static int open_file(struct modules *store, const struct module_request *request, struct module_file *file)
{
	int err;

	modules_make_room(store);
	do
		err = module_file_open(request, file);
	while ((err == -EMFILE || err == -ENFILE) && modules_drop_descriptor(store));
	if (err && err != -EMFILE && err != -ENFILE && is_of_deleted(request) && request->copy_bytes_max) {
		store->counters.copies++;
		err = module_memory_open(request, file) == 0 ? 0 : err;
	}
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
 * Was the file installed by root of this machine or by us? In a container everything is root's, and a folder
 * that the container shares with the machine may have the same path in both. So the process that maps the
 * file must see the same file at the path as we do. (Paths of other owners are not looked at: they may lead
 * to a file system that never answers.)
 */
static bool is_installed(
    const struct module_request *request, const struct module_file *file, const char *path)
{
	struct stat st;

	return (file->uid == 0 || file->uid == geteuid()) &&
	    (request->pid > 0 ? proc_shares_paths(request->pid) : !request->told) && stat(path, &st) == 0 &&
	    module_file_same(file, &st);
}

/*
 * The author of a file chooses its build id, which may be the build id of root's libc. So an entry stands for
 * other files with its build id only if the entry's file is installed here and the others are not, and only
 * if their addresses mean the same: tools that change program headers keep the build id. An entry whose file
 * is not installed stands for that same file, also in the next container with its image, and for the user's
 * other files that resemble it.
 */
static bool stands_for(const struct module_entry *entry, const struct module_file *file, bool installed)
{
	const struct module_file *known = &entry->module.file;

	if (!module_file_resembles(known, file))
		return false;
	return (entry->installed && !installed) ||
	    (known->uid == file->uid && (known->uid != 0 || module_file_is(known, file, true)));
}

/* From an entry of the bucket (NULL: its end) on, the next entry that the build id finds. */
static struct module_entry *with_build_id(struct module_entry *e, const uint8_t *build_id, uint8_t len)
{
	for (; e; e = e->next_in_bucket) {
		e->store->counters.looked_at++;
		if (e->module.readable && !e->module.vdso && !e->by_file &&
		    same_build_id(&e->module, build_id, len))
			return e;
	}
	return NULL;
}

static struct module_entry *first_with_build_id(
    const struct modules *store, const uint8_t *build_id, uint8_t len)
{
	return with_build_id(modules_with_build_id(store, build_id, len), build_id, len);
}

static struct module_entry *next_with_build_id(const struct module_entry *e)
{
	return with_build_id(e->next_in_bucket, e->module.file.build_id, e->module.file.build_id_len);
}

/* The installed file with this build id; the one with this path if there is one. */
static struct module_entry *find_installed(
    const struct modules *store, const uint8_t *build_id, uint8_t len, const char *path)
{
	struct module_entry *found = NULL;

	for (struct module_entry *e = first_with_build_id(store, build_id, len); e; e = next_with_build_id(e))
		if (e->installed && strcmp(e->module.path, path) == 0)
			return e;
		else if (e->installed && !found)
			found = e;
	return found;
}

/* Are they the same file? The owner chooses the build id; without a build id there is less to compare. A copy
 * of a process' memory is the same as no file. */
static bool is_same(const struct module_file *known, const struct module_file *file)
{
	if (known->build_id_len != file->build_id_len || known->copied.pid || file->copied.pid)
		return false;
	if (file->build_id_len)
		return module_file_is(known, file, false) && module_file_resembles(known, file) &&
		    memcmp(known->build_id, file->build_id, file->build_id_len) == 0;
	return known->dev == file->dev && known->ino == file->ino && known->bytes == file->bytes &&
	    known->mtime_ns == file->mtime_ns;
}

static struct module_entry *find_same(const struct modules *store, const struct module_file *file)
{
	struct module_entry *e = NULL;

	if (file->build_id_len)
		e = first_with_build_id(store, file->build_id, file->build_id_len);
	while (e && !is_same(&e->module.file, file))
		e = next_with_build_id(e);
	if (e)
		return e;
	for (e = modules_of_file(store, file); e; e = e->next_in_bucket) {
		e->store->counters.looked_at++;
		if (e->module.readable && is_same(&e->module.file, file))
			return e;
	}
	return NULL;
}

/*
 * Thousands of different files can have one build id, and each look-up would go through all of them. From
 * here on they are found by the file's identity, and stand for no other file.
 */
static bool has_many_alike(const struct modules *store, const struct module_file *file, bool installed)
{
	unsigned alike = 0;

	if (!file->build_id_len)
		return false;
	for (struct module_entry *e = first_with_build_id(store, file->build_id, file->build_id_len); e;
	     e = next_with_build_id(e))
		alike += e->installed == installed;
	return alike >= MODULES_ALIKE_MAX;
}

static struct module_entry *find_standing(
    const struct modules *store, const struct module_file *file, bool installed)
{
	struct module_entry *e = NULL;

	if (file->build_id_len)
		e = first_with_build_id(store, file->build_id, file->build_id_len);
	while (e && !stands_for(e, file, installed))
		e = next_with_build_id(e);
	return e;
}

static struct module_entry *find_unreadable(
    struct modules *store, const struct module_request *request, const char *path)
{
	struct module_entry *e =
	    modules_unreadable(store, request->build_id, request->build_id_len, request->ino, path);

	for (; e; e = e->next_in_bucket) {
		store->counters.looked_at++;
		if (!e->module.readable &&
		    same_build_id(&e->module, request->build_id, request->build_id_len) &&
		    e->module.file.ino == request->ino && strcmp(e->module.path, path) == 0)
			return e;
	}
	return NULL;
}

/* One reference for the caller. */
static struct module *share(struct module_entry *entry)
{
	module_ref(&entry->module);
	modules_touch(entry);
	return &entry->module;
}

/* An entry without a file, with one reference for the caller. Takes `path`, also on error. NULL if out of
 * memory. */
static struct module *get_unreadable(
    struct modules *store, const struct module_request *request, char *path, int err)
{
	struct module_entry *entry = path ? find_unreadable(store, request, path) : NULL;

	if (entry) {
		free(path);
		return share(entry);
	}
	entry = modules_add(store, path);
	if (!entry)
		return NULL;
	entry->module.error = err;
	entry->module.file.dev = request->dev;
	entry->module.file.ino = request->ino;
	entry->module.file.build_id_len = request->build_id_len;
	if (request->build_id_len)
		memcpy(entry->module.file.build_id, request->build_id, request->build_id_len);
	modules_link(entry);
	return &entry->module;
}

/* A module of `file`. Takes `file`, or closes it if there is no memory. */
static struct module *get_readable(
    struct modules *store, struct module_file *file, char *path, bool installed)
{
	struct module_entry *entry = modules_add(store, path);

	if (!entry) {
		module_file_close(file);
		return NULL;
	}
	entry->module.readable = true;
	entry->module.vdso = file->memory;
	entry->module.file = *file;
	entry->by_file = file->copied.pid || has_many_alike(store, file, installed);
	entry->installed = installed;
	store->fds += file->fd >= 0;
	modules_link(entry);
	modules_touch(entry);
	return &entry->module;
}

/*
 * The file's name. The kernel names the file itself, a program's own list names the link by which the loader
 * found it: the file would have two names. From malloc(); NULL if out of memory.
 */
static char *name_of(const struct module_request *request, const struct module_file *file)
{
	char link[PROC_PATH_BYTES], target[PATH_MAX] = "";
	ssize_t length = -1;

	if (request->listed && file->fd >= 0 &&
	    (strcmp(file->open_path, request->path) == 0 || proc_shares_paths(request->pid)))
		length = readlink(proc_fd_path(link, file->fd), target, sizeof(target) - 1);
	if (length <= 0 || target[0] != '/')
		return module_file_path(request->path);
	target[length] = '\0';
	return module_file_path(target);
}

/* The module of an opened file. Takes the file or closes it. */
static struct module *get_file(
    struct modules *store, const struct module_request *request, struct module_file *file)
{
	char *path = name_of(request, file);
	struct module_entry *same = find_same(store, file), *entry = same;
	bool installed = false;

	if (!path) {
		module_file_close(file);
		return NULL;
	}
	/* The first process that mapped the file may have been in a container, or may have ended too
	 * early. */
	if (!same || (!same->installed && strcmp(same->module.path, path) == 0))
		installed = is_installed(request, file, path);
	if (same)
		same->installed = same->installed || installed;
	else
		entry = find_standing(store, file, installed);
	if (!entry) {
		struct module *module = get_readable(store, file, path, installed);

		store->counters.opened += module != NULL;
		return module;
	}
	free(path);
	if (entry->module.file.fd < 0 && module_file_is(&entry->module.file, file, false)) {
		entry->module.file.fd = file->fd;
		file->fd = -1;
		store->fds++;
	}
	module_file_close(file);
	store->counters.shared++;
	return share(entry);
}

/*
 * The module of a mapped file that has no name any more: opened while the file had a name, or copied from
 * this process' memory. As long as the file is open, no other file gets its inode number. (If the kernel
 * gives another device than stat() does, as with overlayfs, the module is not found.)
 */
static struct module_entry *find_deleted(const struct modules *store, const struct module_request *request)
{
	struct module_entry *e = modules_of_inode(store, request->dev, request->ino, 0);
	unsigned looked_at = 0;

	for (; e && looked_at++ < MODULES_ALIKE_MAX; e = e->next_of_inode)
		if (e->module.file.dev == request->dev && e->module.file.ino == request->ino &&
		    e->module.file.fd >= 0 && !e->module.file.copied.pid)
			return e;
	e = modules_of_inode(store, request->dev, request->ino, request->pid);
	const uint64_t birth = e ? thread_facts_birth(request->pid).ticks : 0;
	for (; e && looked_at++ < 2 * MODULES_ALIKE_MAX; e = e->next_of_inode) {
		const struct module_copied *copied = &e->module.file.copied;

		if (e->module.file.dev == request->dev && e->module.file.ino == request->ino &&
		    copied->pid == request->pid && copied->start == request->start && copied->birth == birth)
			return e;
	}
	return NULL;
}

struct module *module_get(struct modules *store, const struct module_request *given)
{
	struct module_request request = *given;
	struct module_file file;
	struct module_entry *installed = NULL;
	int err;

	if (!request.build_id || request.build_id_len > MODULE_BUILD_ID_BYTES)
		request.build_id_len = 0;
	if (request.build_id_len)
		installed = find_installed(store, request.build_id, request.build_id_len, request.path);
	struct module_entry *deleted = is_of_deleted(&request) ? find_deleted(store, &request) : NULL;
	if (deleted) {
		store->counters.shared++;
		return share(deleted);
	}
	/* It is not opened again under its own name, because processes come and go. */
	if (installed && strcmp(installed->module.path, request.path) == 0) {
		store->counters.shared++;
		return share(installed);
	}
	if (installed)
		module_ref(&installed->module); /* opening may release the module */
	err = open_file(store, &request, &file);
	if (installed && err && err != -ESTALE) {
		store->counters.shared++;
		modules_touch(installed);
		return &installed->module;
	}
	if (installed)
		module_unref(&installed->module);
	if (err)
		return get_unreadable(store, &request, module_file_path(request.path), err);
	return get_file(store, &request, &file);
}

struct module *module_get_library(struct modules *store, const char *path)
{
	static const char memory[] = "memfd:";
	const struct module_library *library = modules_library(store);
	const struct module_request request = {.path = library->path};
	const char *name = strrchr(path, '/');

	if (!library->name || !name)
		return NULL;
	name += strncmp(name + 1, memory, strlen(memory)) == 0 ? 1 + strlen(memory) : 1;
	return strncmp(name, library->name, strlen(library->name)) == 0 ? module_get(store, &request) : NULL;
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
	module = get_readable(store, &file, strdup("[vdso]"), false);
	store->vdso = module ? modules_entry(module) : NULL;
	return module;
}

int module_fd(struct module *module)
{
	struct modules *store = modules_entry(module)->store;
	int fd;

	modules_touch(modules_entry(module));
	if (module->file.fd >= 0)
		return module->file.fd;
	if (!module->readable)
		return module->error;
	if (module->vdso)
		return -ENOENT;
	modules_make_room(store);
	do
		fd = module_file_reopen(&module->file, module->path);
	while ((fd == -EMFILE || fd == -ENFILE) && modules_drop_descriptor(store));
	if (fd == -EMFILE || fd == -ENFILE)
		store->counters.descriptors_short++;
	if (fd >= 0) {
		module->file.fd = fd;
		store->fds++;
		modules_touch(modules_entry(module));
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

const struct cfi_rule *module_rule_within(struct module *module, uint64_t vaddr, struct throttle *budget)
{
	struct module_entry *entry = modules_entry(module);
	const struct cfi_rule *known;

	if (!entry->cfi && module->readable)
		entry->cfi = cfi_new(module->file.e_machine, &entry->store->rows);
	if (!entry->cfi)
		return &cfi_no_rule;
	known = cfi_known(entry->cfi, vaddr);
	if (known)
		return known;
	/* The descriptor may have been closed to make room. If the file cannot be opened now, a later call
	 * may succeed. */
	if (budget && !cfi_work_allows(budget))
		return &cfi_unread_rule;
	if (!module->vdso && module_fd(module) < 0) {
		if (budget)
			throttle_spend(budget, REOPEN_WORK);
		return &cfi_unread_rule;
	}
	return cfi_find(entry->cfi, &module->file, vaddr, budget);
}

const struct cfi_rule *module_rule(struct module *module, uint64_t vaddr)
{
	return module_rule_within(module, vaddr, NULL);
}

void module_measure_cfi(const struct module *module, struct cfi_usage *usage)
{
	cfi_measure(((const struct module_entry *)module)->cfi, usage);
}
