/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/module_file.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

int module_file_read(const struct module_file *file, void *to, size_t bytes, uint64_t offset)
{
	if (offset > INT64_MAX || (file->memory && (offset > file->bytes || bytes > file->bytes - offset)))
		return -EIO;
	if (file->memory) {
		memcpy(to, (const char *)file->memory + offset, bytes);
		return 0;
	}
	return regular_file_read(file->fd, to, bytes, offset);
}

static uint64_t align_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

void module_file_close(struct module_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->segments);
	free(file->open_path);
	memset(file, 0, sizeof(*file));
	file->fd = -1;
}

static int64_t time_ns(const struct timespec *time)
{
	return (int64_t)((uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec);
}

static int64_t mtime_ns(const struct stat *status)
{
	return time_ns(&status->st_mtim);
}

bool module_file_same(const struct module_file *file, const struct stat *status)
{
	return S_ISREG(status->st_mode) && file->dev == status->st_dev && file->ino == status->st_ino &&
	    file->bytes == (uint64_t)status->st_size && file->mtime_ns == mtime_ns(status);
}

bool module_file_is(const struct module_file *file, const struct module_file *other, bool any_device)
{
	return (any_device || file->dev == other->dev) && file->ino == other->ino &&
	    file->bytes == other->bytes && file->mtime_ns == other->mtime_ns &&
	    file->ctime_ns == other->ctime_ns;
}

bool module_file_resembles(const struct module_file *file, const struct module_file *other)
{
	if (file->bytes != other->bytes || file->e_machine != other->e_machine ||
	    file->e_type != other->e_type || file->entry != other->entry ||
	    file->segment_count != other->segment_count)
		return false;
	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct module_segment *a = &file->segments[i], *b = &other->segments[i];

		if (a->vaddr != b->vaddr || a->offset != b->offset || a->file_bytes != b->file_bytes ||
		    a->memory_bytes != b->memory_bytes || a->executable != b->executable)
			return false;
	}
	return true;
}

/* A readable descriptor for the location LOCATION (O_PATH, closed here), if that is a regular file. */
static int open_location(int location, struct stat *st)
{
	int fd = location < 0 ? -errno : regular_file_reopen(location, st);

	return fd == -EINVAL ? -ENOEXEC : fd;
}

static int open_regular(const char *path, struct stat *st)
{
	return open_location(open(path, O_PATH | O_CLOEXEC), st);
}

/* A path by the target's word must not lead to us: the target's /proc/self/exe was its own file. */
static int open_path(const struct module_request *request, const char *path, struct stat *st)
{
	struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC, .resolve = request->listed ? RESOLVE_NO_MAGICLINKS : 0};
	int location = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (location < 0 && (errno == ENOSYS || errno == EPERM))
		return open_regular(path, st);
	return open_location(location, st);
}

/* PATH as process PID sees it, symbolic links included. */
static int open_in_root(pid_t pid, const char *path, struct stat *st)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char root_path[PROC_PATH_BYTES];
	int root, location;

	root = open(proc_path(root_path, pid, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	location = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	/* Before Linux 5.6, or forbidden by a container's seccomp filter: absolute links then lead to wrong
	 * files. */
	if (location < 0 && (errno == ENOSYS || errno == EPERM))
		location = openat(root, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
	int saved = errno;
	close(root);
	errno = saved;
	return open_location(location, st);
}

/*
 * Is the opened file the requested one? Compares the build id if one is expected, else the inode. The device
 * of /proc/PID/maps is not compared: with overlayfs and btrfs it differs from stat()'s. CERTAIN: the mapping
 * itself was opened, and the inode has been compared as far as it can be (is_announced).
 */
static int verify(const struct module_request *request, const struct module_file *file, bool certain)
{
	if (request->build_id_len) {
		if (file->build_id_len != request->build_id_len ||
		    memcmp(file->build_id, request->build_id, request->build_id_len) != 0)
			return -ESTALE;
	} else if (!certain && request->ino && request->ino != file->ino) {
		return -ESTALE;
	} else if (request->listed && request->dev != file->dev) {
		return -ESTALE;
	}
	return 0;
}

int module_file_take(const struct module_request *request, int fd, const char *open_path, bool certain,
    const struct stat *st, struct module_file *file)
{
	int err;

	if (fd < 0)
		return fd;
	memset(file, 0, sizeof(*file));
	file->fd = fd;
	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->bytes = (uint64_t)st->st_size;
	file->mtime_ns = mtime_ns(st);
	file->ctime_ns = time_ns(&st->st_ctim);
	file->uid = st->st_uid;
	err = module_file_read_headers(file);
	if (!err)
		err = verify(request, file, certain);
	if (!err) {
		file->open_path = strdup(open_path);
		if (!file->open_path)
			err = -ENOMEM;
	}
	if (err)
		module_file_close(file);
	return err;
}

/* The more informative of two errors. */
static int worse(int err, int next)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || next == 0)
		return err;
	if (next == -EMFILE || next == -ENFILE || next == -ENOMEM || next == -ESTALE)
		return next;
	return err == -ESTALE || err == -ENOEXEC ? err : next;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return end_length <= length && strcmp(text + length - end_length, end) == 0;
}

/*
 * FD is the file that is mapped in the range now. Is it the file that was announced there? A library that was
 * unloaded leaves its range to the next library. Where /proc/PID/maps and stat() agree about the device, the
 * inode decides. On overlayfs and btrfs the devices differ, and on overlayfs the inodes too: there the path
 * decides. One of the two paths may be only the end of the other. The process's path is the shorter one if
 * the process has a root folder of its own; ours is if the file is on a mount that has another place here.
 */
static bool is_announced(
    const struct module_request *request, const char *path, int fd, const struct stat *st)
{
	char link[PROC_PATH_BYTES], now[PATH_MAX];
	ssize_t length;

	if (request->build_id_len || (request->ino && st->st_ino == request->ino))
		return true; /* the build id is compared by verify() */
	if (request->ino && st->st_dev == request->dev)
		return false;
	length = readlink(proc_fd_path(link, fd), now, sizeof(now) - 1);
	if (length <= 0)
		return false;
	now[length] = '\0';
	proc_strip_deleted(now);
	return ends_with(now, path) || ends_with(path, now);
}

/* Opens what is mapped in the range, if it still is the file that was announced there. */
static int open_mapped(const struct module_request *request, const char *path, struct module_file *file)
{
	char at[PROC_PATH_BYTES], name[64];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, request->start, request->end);
	fd = open_regular(proc_path(at, request->pid, name), &st);
	if (fd >= 0 && !is_announced(request, path, fd, &st)) {
		close(fd);
		return -ESTALE;
	}
	return module_file_take(request, fd, at, true, &st, file);
}

static int open_through_process(
    const struct module_request *request, const char *path, bool deleted, struct module_file *file)
{
	char at[PROC_PATH_BYTES];
	struct stat st;
	int err, next;
	char *root_path;

	err = open_mapped(request, path, file);
	if (!err)
		return 0;
	if (path[0] == '/' && (!deleted || request->build_id_len)) {
		if (asprintf(&root_path, "/proc/%d/root%s", (int)request->pid, path) < 0)
			return -ENOMEM;
		next = module_file_take(
		    request, open_in_root(request->pid, path, &st), root_path, false, &st, file);
		free(root_path);
		if (!next)
			return 0;
		err = worse(err, next);
	}
	/* Opens the program itself, deleted or not, if it can be verified to be the mapped file. */
	if (request->build_id_len || request->ino) {
		proc_path(at, request->pid, "exe");
		next = module_file_take(request, open_regular(at, &st), at, false, &st, file);
		if (!next)
			return 0;
		err = worse(err, next == -ESTALE ? -ENOENT : next);
	}
	return err;
}

int module_file_open(const struct module_request *request, struct module_file *file)
{
	char *path = module_file_path(request->path);
	bool deleted = path && strlen(path) != strlen(request->path);
	struct stat st;
	int err = -ENOENT, next;

	memset(file, 0, sizeof(*file));
	file->fd = -1;
	if (!path)
		return -ENOMEM;
	if (request->listed && !request->build_id_len && !request->ino) {
		free(path);
		return -ENOENT;
	}
	if (request->pid > 0)
		err = open_through_process(request, path, deleted, file);
	if (err && path[0] == '/' && (!deleted || request->build_id_len)) {
		next = module_file_take(request, open_path(request, path, &st), path, false, &st, file);
		err = next ? worse(err, next) : 0;
	}
	free(path);
	return err;
}

int module_file_reopen(const struct module_file *file, const char *path)
{
	const char *paths[] = {file->open_path, path};
	int err = -ENOENT;

	for (unsigned i = 0; i < 2; i++) {
		struct stat st;
		int fd = open_regular(paths[i], &st);

		if (fd >= 0 && module_file_same(file, &st))
			return fd;
		if (fd >= 0) {
			close(fd);
			fd = -ESTALE;
		}
		err = i == 0 ? fd : worse(err, fd);
	}
	return err;
}

char *module_file_path(const char *path)
{
	return strndup(path, proc_undeleted_length(path));
}

int module_file_open_vdso(struct module_file *file)
{
	const Elf64_Ehdr *ehdr = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	int err;

	memset(file, 0, sizeof(*file));
	file->fd = -1;
	if (!ehdr)
		return -ENOENT;
	file->memory = ehdr;
	/* The linker puts the section headers last; the image is whole pages. */
	file->bytes = align_up(
	    ehdr->e_shoff + (uint64_t)ehdr->e_shnum * ehdr->e_shentsize, (uint64_t)sysconf(_SC_PAGESIZE));
	err = module_file_read_headers(file);
	file->open_path = err ? NULL : strdup("");
	if (!err && !file->open_path)
		err = -ENOMEM;
	if (err)
		module_file_close(file);
	return err;
}

bool module_file_vaddr(const struct module_file *file, uint64_t offset, bool executable, uint64_t *vaddr)
{
	const uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	const struct module_segment *found = NULL;

	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct module_segment *s = &file->segments[i];
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

bool module_file_offset(const struct module_file *file, uint64_t vaddr, uint64_t n, uint64_t *offset)
{
	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct module_segment *s = &file->segments[i];
		uint64_t at = vaddr - s->vaddr;

		if (at < s->file_bytes && n <= s->file_bytes - at) {
			*offset = s->offset + at;
			return true;
		}
	}
	return false;
}
