/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/jit_files.h"

#include "pprof/text/clock.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"
#include "sampler/linux/thread_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

/* ---- perf-PID.map */

/* The kernel's ticks and the times of files are both up to 10 ms behind the clock, and fractions of seconds
 * are dropped. */
enum { CLOCKS_APART_S = 2 };

/* Identifies a folder by its mount and inode. Mounts of different namespaces have different ids, and an id is
 * not reused as long as a descriptor holds the mount. */
struct place {
	bool known;
	uint64_t mount_id, ino;
	uint32_t major, minor;
};

struct perf_map_folder {
	struct perf_map_folder *next;
	unsigned references;
	int fd; /* O_PATH */
	struct place place;
};

static struct perf_map_folder *folders;
static unsigned folder_count, file_count;

static struct place place_of(int fd)
{
	struct statx status;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &status) != 0 ||
	    !(status.stx_mask & STATX_MNT_ID))
		return (struct place){0};
	return (struct place){
	    true, status.stx_mnt_id, status.stx_ino, status.stx_dev_major, status.stx_dev_minor};
}

static bool same_place(const struct place *a, const struct place *b)
{
	return a->known && b->known && a->mount_id == b->mount_id && a->ino == b->ino &&
	    a->major == b->major && a->minor == b->minor;
}

/* The folder of a descriptor, which is taken. NULL if there are too many, or out of memory. */
static struct perf_map_folder *share_folder(int fd)
{
	struct place place = place_of(fd);
	struct perf_map_folder *folder = folders;

	while (folder && !same_place(&folder->place, &place))
		folder = folder->next;
	if (folder) {
		folder->references++;
		close(fd);
		return folder;
	}
	if (folder_count < PERF_MAP_FOLDERS_MAX)
		folder = malloc(sizeof(*folder));
	if (!folder) {
		close(fd);
		return NULL;
	}
	*folder = (struct perf_map_folder){.next = folders, .references = 1, .fd = fd, .place = place};
	folders = folder;
	folder_count++;
	return folder;
}

static void drop_folder(struct perf_map_folder *folder)
{
	struct perf_map_folder **link = &folders;

	if (!folder || --folder->references)
		return;
	while (*link != folder)
		link = &(*link)->next;
	*link = folder->next;
	close(folder->fd);
	free(folder);
	folder_count--;
}

/* Finds the process' pid in its own pid namespace (the last number of NSpid, or pid itself if that cannot be
 * read), and the user that owns the files which it makes. The owner of its folder in /proc does not tell the
 * user: any process can make root the owner. */
static bool read_ids(struct perf_map_file *file, int process_fd, pid_t pid)
{
	char text[8192], *field, *end;
	int fd = openat(process_fd, "status", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	field = strstr(text, "\nUid:");
	if (!field || sscanf(field, " Uid: %*u %*u %*u %u", &file->uid) != 1)
		return false;
	file->pid = pid;
	field = strstr(text, "\nNSpid:");
	if (!field)
		return true;
	for (field += strlen("\nNSpid:"); *field == '\t' || *field == ' '; field = end) {
		pid_t inner = (pid_t)strtol(field, &end, 10);

		if (end == field)
			break;
		file->pid = inner;
	}
	return true;
}

/* The time of the fork in seconds since 1970, or a little earlier. */
static int64_t started_unix_s(pid_t pid)
{
	const uint64_t began = thread_facts_birth(pid).ticks, now = thread_facts_now();
	const long hertz = sysconf(_SC_CLK_TCK);

	if (!began)
		return INT64_MIN;
	return clock_unix_ns() / CLOCK_NS_PER_S - (now > began ? (int64_t)(now - began) / hertz : 0) -
	    CLOCKS_APART_S;
}

static int open_by_name(const struct perf_map_file *file)
{
	char name[32];
	struct stat status;

	snprintf(name, sizeof(name), "perf-%d.map", (int)file->pid);
	int fd = regular_file_open(file->folder->fd, name, 1, &status);
	if (fd < 0)
		return fd;
	/* Root's file, from the time before the process gave up root; but no secret of root's. */
	const bool foreign =
	    status.st_uid != file->uid && (status.st_uid != 0 || !(status.st_mode & S_IROTH));
	if (!foreign && status.st_mtime >= file->since_unix_s)
		return fd;
	close(fd);
	return foreign ? -EPERM : -ESTALE;
}

/* Opens the process' /tmp. Returns a descriptor or -errno. glibc has no wrapper for openat2, the only call
 * that resolves symlinks inside another root. */
static int open_folder(int process_fd)
{
	struct open_how how = {
	    .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int root_fd = openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root_fd < 0)
		return -errno;
	int fd = (int)syscall(SYS_openat2, root_fd, "/tmp", &how, sizeof(how));
	/* openat2 is missing (before Linux 5.6) or refused by a container's filter: if /tmp is no link, it is
	 * inside the root. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(root_fd, "tmp", (int)how.flags | O_NOFOLLOW);
	if (fd < 0)
		fd = -errno;
	close(root_fd);
	return fd;
}

int perf_map_file_note(struct perf_map_file *file, pid_t pid)
{
	char path[PROC_PATH_BYTES];
	int process_fd = open(proc_path(path, pid, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*file = PERF_MAP_FILE_UNKNOWN;
	if (process_fd < 0)
		return -errno;
	int folder_fd = read_ids(file, process_fd, pid) ? open_folder(process_fd) : -ESRCH;
	int error = folder_fd < 0 ? folder_fd : 0;
	if (!error) {
		file->since_unix_s = started_unix_s(pid);
		file->folder = share_folder(folder_fd);
		error = file->folder ? 0 : -ENFILE;
	}
	close(process_fd);
	if (!error && file_count < PERF_MAP_FILES_MAX && (file->fd = open_by_name(file)) >= 0)
		file_count++;
	return error;
}

void perf_map_file_forget(struct perf_map_file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
		file_count--;
	}
	drop_folder(file->folder);
	*file = PERF_MAP_FILE_UNKNOWN;
}

int perf_map_file_open(const struct perf_map_file *file)
{
	int fd = file->folder ? open_by_name(file) : -ENOENT;

	if (fd == -ENOENT && file->fd >= 0) {
		fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			fd = -errno;
	}
	return fd;
}

/* ---- jit-PID.dump */

static unsigned file_count;

bool jitdump_file_is_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t digits;

	if (!slash || strncmp(slash, "/jit-", 5) != 0)
		return false;
	digits = strspn(slash + 5, "0123456789");
	return digits > 0 && strcmp(slash + 5 + digits, ".dump") == 0;
}

/* The user that owns the files which the process makes. */
static int read_user(pid_t pid, uid_t *user)
{
	char status[PROC_STATUS_BYTES], *field;
	const ssize_t length = proc_read(pid, "status", status, sizeof(status));

	if (length <= 0)
		return length < 0 ? (int)length : -ESRCH;
	field = strstr(status, "\nUid:");
	return field && sscanf(field, " Uid: %*u %*u %*u %u", user) == 1 ? 0 : -ESRCH;
}

/* Without openat2 (before Linux 5.6, or refused by a container's filter) links could lead out of the process'
 * root. So the file is not opened. */
static int open_in_root(pid_t pid, const char *path, struct stat *status)
{
	struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char root_path[PROC_PATH_BYTES];
	const int root = open(proc_path(root_path, pid, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return -errno;
	int location = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (location < 0)
		location = -errno;
	close(root);
	return location < 0 ? location : regular_file_reopen(location, status);
}

int jitdump_file_note(struct jitdump_file *file, pid_t pid, const char *path, uint64_t ino)
{
	struct stat status;
	uid_t user;
	int error = read_user(pid, &user);

	if (error)
		return error;
	if (file->fd < 0 && file_count >= JITDUMP_FILES_MAX)
		return -ENFILE;
	const int fd = open_in_root(pid, path, &status);
	if (fd < 0)
		return fd;
	if (status.st_ino != ino)
		error = -ESTALE;
	else if (status.st_uid != user && (status.st_uid != 0 || !(status.st_mode & S_IROTH)))
		error = -EPERM;
	if (error) {
		close(fd);
		return error;
	}
	jitdump_file_forget(file);
	*file = (struct jitdump_file){.fd = fd, .ino = ino};
	file_count++;
	return 0;
}

void jitdump_file_forget(struct jitdump_file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
		file_count--;
	}
	*file = JITDUMP_FILE_NONE;
}
