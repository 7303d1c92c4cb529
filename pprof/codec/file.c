/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/codec/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pprof/codec/folder.h"
#include "pprof/table/array.h"

/*
 * All calls are relative to the opened folder, so that it may be renamed meanwhile. The temporary name is
 * short whatever the final one is (which may be NAME_MAX long), and `*.pb.gz` does not match it.
 */
enum { TEMP_NAME_BYTES = sizeof(".heaptap-0123456789abcdef.tmp"), TEMP_ATTEMPTS = 16 };

/* The descriptor of ours that a path stands for, or -1. It is used as it is: open(2) of the path fails if the
 * descriptor is a socket, or if another user has opened the file. */
static int descriptor_of(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t length = strlen(folders[i]), digits;

		if (strncmp(path, folders[i], length) != 0)
			continue;
		digits = strspn(path + length, "0123456789");
		if (digits && digits < sizeof("99999999") && !path[length + digits])
			return atoi(path + length);
	}
	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
		if (strcmp(path, names[i]) == 0)
			return i;
	return -1;
}

static int write_all(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* close() is where NFS and quotas report what write() could not. EINTR still closes on Linux. */
static int close_checked(int fd)
{
	return close(fd) && errno != EINTR ? -errno : 0;
}

/* Splits path. The caller frees *folder; *name points into path. */
static int split(const char *path, char **folder, const char **name)
{
	const char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	if (!*path)
		return -ENOENT;
	if (!**name || !strcmp(*name, ".") || !strcmp(*name, ".."))
		return -EISDIR;
	if (!slash)
		*folder = strdup(".");
	else
		*folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	return *folder ? 0 : -ENOMEM;
}

int file_open_folder(
    const char *path, const struct folder *from, unsigned int flags, struct folder *folder, const char **name)
{
	char *around = NULL;
	int err = split(path, &around, name);

	if (!err)
		err = folder_open(folder, from, around, flags & FILE_MKDIR ? FOLDER_MAKE : 0, 0777);
	free(around);
	return err;
}

static int open_temp(int folder_fd, char *name, mode_t mode)
{
	int attempt, fd = -1;

	for (attempt = 0; attempt < TEMP_ATTEMPTS; attempt++) {
		uint64_t random;

		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
			random = ((uint64_t)getpid() << 32) + (uint64_t)attempt;
		snprintf(name, TEMP_NAME_BYTES, ".heaptap-%016llx.tmp", (unsigned long long)random);
		fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

/* linkat() fails on a taken name on every file system; RENAME_NOREPLACE is refused by some (EINVAL). */
static int rename_checked(int folder_fd, const char *temp, const char *name, unsigned int flags)
{
	if (!(flags & FILE_NO_REPLACE))
		return renameat(folder_fd, temp, folder_fd, name) ? -errno : 0;
	if (!renameat2(folder_fd, temp, folder_fd, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(folder_fd, temp, folder_fd, name, 0))
		return -errno;
	unlinkat(folder_fd, temp, 0);
	return 0;
}

/* The rename is on the disk once the folder is. A folder that cannot be read cannot be synced either. */
static int sync_folder(int folder_fd)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return errno == EACCES ? 0 : -errno;
	if (fsync(fd) && errno != EINVAL)
		err = -errno;
	close(fd);
	return err;
}

/* exact: whatever the umask and the group of a new file are. */
static int publish_in(int folder_fd, const char *name, const uint8_t *data, size_t len, mode_t mode,
    const gid_t *exact, unsigned int flags)
{
	char temp[TEMP_NAME_BYTES];
	struct rlimit limit;
	int fd, err = 0, close_err;

	/* The kernel would end us by SIGXFSZ, with the temporary file left behind. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && len > limit.rlim_cur)
		return -EFBIG;
	fd = open_temp(folder_fd, temp, exact ? 0600 : mode);
	if (fd < 0)
		return fd;
	if (exact && ((*exact != (gid_t)-1 && fchown(fd, (uid_t)-1, *exact)) || fchmod(fd, mode)))
		err = -errno;
	if (!err)
		err = write_all(fd, data, len);
	if (!err && flags & FILE_FSYNC && fsync(fd))
		err = -errno;
	close_err = close_checked(fd);
	if (!err)
		err = close_err;
	if (!err)
		err = rename_checked(folder_fd, temp, name, flags);
	if (err) {
		unlinkat(folder_fd, temp, 0);
		return err;
	}
	return flags & FILE_FSYNC ? sync_folder(folder_fd) : 0;
}

static int write_device(int handle, const uint8_t *data, size_t len)
{
	char self[32];
	int fd, err, close_err;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	fd = open(self, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_all(fd, data, len);
	close_err = close_checked(fd);
	return err ? err : close_err;
}

/* /dev/stdout is a link to /proc/self/fd/1, whatever that is. A file in its place would take the whole
 * machine's standard output away. */
static bool leads_to_proc(int link)
{
	static const char proc[] = "/proc/";
	char text[sizeof(proc)] = "";

	return readlinkat(link, "", text, sizeof(text) - 1) > 0 && strcmp(text, proc) == 0;
}

/*
 * Deals with what already has the name. A device: writes the data to it, returns 0. A regular file, or
 * nothing: -ENOENT, it may be replaced. Anything else: the error that says why not. It is examined and opened
 * through one descriptor, because the folder's owner may replace it at any time.
 */
static int publish_over(
    const struct folder *folder, const char *name, const uint8_t *data, size_t len, unsigned int flags)
{
	int handle = openat(folder->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	bool is_link = false, follow = false, is_kept = false;
	struct stat st;
	int err;

	if (handle >= 0 && fstat(handle, &st) == 0 && S_ISLNK(st.st_mode)) {
		is_link = true;
		is_kept = leads_to_proc(handle);
		follow = flags & FILE_FOLLOW && folder_may_follow(folder, &st);
		close(handle);
		handle = openat(folder->fd, name, O_PATH | O_CLOEXEC);
	}
	if (handle < 0)
		return -ENOENT;
	if (fstat(handle, &st))
		err = -errno;
	else if (S_ISREG(st.st_mode))
		err = is_kept ? -EINVAL : -ENOENT;
	else if (!S_ISCHR(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	else if (is_link && !follow)
		err = -EINVAL;
	else
		err = write_device(handle, data, len);
	close(handle);
	return err;
}

int file_publish_in(const struct folder *folder, const char *name, const void *data, size_t len, mode_t mode,
    unsigned int flags)
{
	int err = publish_over(folder, name, data, len, flags);

	return err == -ENOENT ? publish_in(folder->fd, name, data, len, mode, NULL, flags) : err;
}

int file_publish(const char *path, const void *data, size_t len, mode_t mode, unsigned int flags)
{
	const int given = flags & FILE_FOLLOW ? descriptor_of(path) : -1;
	struct folder folder;
	const char *name;
	int err;

	if (given >= 0)
		return write_all(given, data, len);
	err = file_open_folder(path, NULL, flags & FILE_MKDIR, &folder, &name);
	if (err)
		return err;
	err = file_publish_in(&folder, name, data, len, mode, flags);
	folder_close(&folder);
	return err;
}

int file_publish_at(int folder_fd, const char *name, const void *data, size_t len, mode_t mode, gid_t group,
    unsigned int flags)
{
	struct stat st;

	if (!fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode) &&
	    !S_ISLNK(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	return publish_in(folder_fd, name, data, len, mode, &group, flags);
}

bool file_is_temporary(const char *name)
{
	static const char prefix[] = ".heaptap-", suffix[] = ".tmp";

	return strlen(name) == TEMP_NAME_BYTES - 1 && strncmp(name, prefix, strlen(prefix)) == 0 &&
	    strspn(name + strlen(prefix), "0123456789abcdef") == 16 &&
	    strcmp(name + TEMP_NAME_BYTES - sizeof(suffix), suffix) == 0;
}

int file_check_folder(int folder_fd)
{
	char temp[TEMP_NAME_BYTES];
	int fd = open_temp(folder_fd, temp, 0600);

	if (fd < 0)
		return fd;
	close(fd);
	unlinkat(folder_fd, temp, 0);
	return 0;
}

/* ---- reading */

static int read_all(int fd, size_t max_bytes, uint8_t **data, size_t *len)
{
	enum { STEP_BYTES = 64 * 1024 };
	size_t capacity = 0;

	for (;;) {
		ssize_t n;

		if (array_reserve(data, &capacity, *len + STEP_BYTES, 1))
			return -ENOMEM;
		n = read(fd, *data + *len, capacity - *len);
		if (n < 0 && errno == EAGAIN) /* the caller that gave us the descriptor wants it so */
			poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		*len += (size_t)n;
		if (*len > max_bytes)
			return -EFBIG;
	}
}

/* Opens a file that can be read to its end without waiting for a writer. */
static int open_readable(const char *path)
{
	int given = descriptor_of(path), err = 0;
	int fd = given < 0 ? open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
	                   : fcntl(given, F_DUPFD_CLOEXEC, 0);
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) != 0)
		err = -errno;
	else if (given < 0 && S_ISFIFO(status.st_mode))
		err = -ESPIPE;
	else if (S_ISCHR(status.st_mode) && isatty(fd))
		err = -ENOTTY;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* fd is closed. */
static int read_and_close(int fd, size_t max_bytes, uint8_t **data, size_t *len)
{
	uint8_t *bytes = NULL;
	int err;

	*len = 0;
	err = read_all(fd, max_bytes, &bytes, len);
	close(fd);
	if (err) {
		free(bytes);
		return err;
	}
	*data = bytes;
	return 0;
}

int file_read(const char *path, size_t max_bytes, uint8_t **data, size_t *len)
{
	int fd = open_readable(path);

	return fd < 0 ? fd : read_and_close(fd, max_bytes, data, len);
}

static int read_regular(
    int folder_fd, const char *name, int flags, size_t max_bytes, uint8_t **data, size_t *len)
{
	int fd = openat(folder_fd, name, flags | O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return read_and_close(fd, max_bytes, data, len);
	close(fd);
	return -EINVAL;
}

int file_read_at(int folder_fd, const char *name, size_t max_bytes, uint8_t **data, size_t *len)
{
	return read_regular(folder_fd, name, O_NOFOLLOW, max_bytes, data, len);
}

int file_read_straight(const char *path, size_t max_bytes, uint8_t **data, size_t *len)
{
	struct folder folder;
	struct stat link;
	const char *name;
	int err = file_open_folder(path, NULL, 0, &folder, &name);

	if (err)
		return err;
	bool follow = fstatat(folder.fd, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode) &&
	    folder_may_follow(&folder, &link);
	err = read_regular(folder.fd, name, follow ? 0 : O_NOFOLLOW, max_bytes, data, len);
	folder_close(&folder);
	return err;
}

const char *file_read_error(int err)
{
	switch (err) {
	case -ESPIPE:
		return "it is a FIFO; to read what is written into it: - <FIFO";
	case -ENXIO:
		return "it is a socket";
	case -ENOTTY:
		return "it is a terminal; give a file or a pipe";
	default:
		return strerror(-err);
	}
}
