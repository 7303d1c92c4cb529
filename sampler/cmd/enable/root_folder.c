/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/enable/root_folder.h"

#include "sampler/linux/regular_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

/* Returns a descriptor or -errno. */
static int open_below(const struct root_folder *root, const char *path, int flags)
{
	const struct open_how how = {
	    .flags = (uint64_t)(unsigned int)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT};
	int fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));

	/* Before Linux 5.6, or refused by a container's filter: nothing leads out of the machine's own
	 * root. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM) && !root->path[0])
		fd = openat(root->fd, path, (int)how.flags);
	return fd < 0 ? -errno : fd;
}

int root_folder_open(struct root_folder *root, const char *path)
{
	bool machine = !path || strcmp(path, "/") == 0;

	root->path = machine ? "" : path;
	root->fd = open(machine ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root->fd < 0 ? -errno : 0;
}

void root_folder_close(struct root_folder *root)
{
	if (root->fd >= 0)
		close(root->fd);
	root->fd = -1;
}

int root_folder_file(const struct root_folder *root, const char *path)
{
	struct stat status;
	int location = open_below(root, path, O_PATH);

	return location < 0 ? location : regular_file_reopen(location, &status);
}

int root_folder_read(const struct root_folder *root, const char *path, char **text, size_t *length)
{
	struct stat status;
	int location = open_below(root, path, O_PATH);
	int fd = location < 0 ? location : regular_file_reopen(location, &status);

	if (fd < 0)
		return fd;
	int error = status.st_size > ROOT_FOLDER_FILE_BYTES_MAX ? -EFBIG : 0;
	*length = error ? 0 : (size_t)status.st_size;
	*text = error ? NULL : malloc(*length + 1);
	if (!error)
		error = *text ? regular_file_read(fd, *text, *length, 0) : -ENOMEM;
	close(fd);
	if (error)
		free(*text);
	else
		(*text)[*length] = '\0';
	return error;
}

bool root_folder_has(const struct root_folder *root, const char *path)
{
	struct stat status;
	int fd = open_below(root, path, O_PATH);
	bool has = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);

	if (fd >= 0)
		close(fd);
	return has;
}

/* The folder of a path, and the name in it. */
static int open_parent(const struct root_folder *root, const char *path, const char **name)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || slash - path >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - path), path);
	*name = slash + 1;
	return open_below(root, folder, O_PATH | O_DIRECTORY);
}

ssize_t root_folder_link(const struct root_folder *root, const char *path, char *target, size_t target_bytes)
{
	const char *name;
	int folder_fd = open_parent(root, path, &name);

	if (folder_fd < 0)
		return folder_fd;
	ssize_t length = readlinkat(folder_fd, name, target, target_bytes - 1);
	if (length < 0)
		length = -errno;
	else
		target[length] = '\0';
	close(folder_fd);
	return length;
}

int root_folder_each(const struct root_folder *root, const char *folder,
    int (*visit)(void *context, const char *name), void *context)
{
	const struct dirent *entry;
	int fd = open_below(root, folder, O_RDONLY | O_DIRECTORY), ret = 0;

	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return fd;
	DIR *listing = fdopendir(fd);
	if (!listing) {
		close(fd);
		return -ENOMEM;
	}
	while (!ret && (entry = readdir(listing)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			ret = visit(context, entry->d_name);
	closedir(listing);
	return ret;
}

/* Makes what is missing of the path. Returns a descriptor or -errno. */
static int make_folder(const struct root_folder *root, const char *folder)
{
	char part[PATH_MAX];
	const char *name;

	for (const char *end = folder; *end;) {
		end += 1 + strcspn(end + 1, "/");
		if (snprintf(part, sizeof(part), "%.*s", (int)(end - folder), folder) >= (int)sizeof(part))
			return -ENAMETOOLONG;
		int parent = open_parent(root, part, &name);
		if (parent < 0)
			return parent;
		/* whatever the umask */
		const bool made = mkdirat(parent, name, 0755) == 0;
		const int error = made && fchmodat(parent, name, 0755, 0) != 0 ? -errno : 0;
		close(parent);
		if (error)
			return error;
	}
	return open_below(root, folder, O_RDONLY | O_DIRECTORY);
}

static int write_all(int fd, const char *text)
{
	for (size_t length = strlen(text); length;) {
		const ssize_t wrote = write(fd, text, length);

		if (wrote < 0 && errno != EINTR)
			return -errno;
		text += wrote > 0 ? wrote : 0;
		length -= wrote > 0 ? (size_t)wrote : 0;
	}
	return fchmod(fd, 0644) == 0 && fsync(fd) == 0 ? 0 : -errno;
}

int root_folder_replace(
    const struct root_folder *root, const char *folder, const char *name, const char *text)
{
	char early[NAME_MAX + 1];
	int folder_fd = make_folder(root, folder), error;

	if (folder_fd < 0)
		return folder_fd;
	snprintf(early, sizeof(early), ".%.200s.%d", name, (int)getpid());
	(void)unlinkat(folder_fd, early, 0); /* left by a killed process that had our pid */
	int fd = openat(folder_fd, early, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	error = fd < 0 ? -errno : write_all(fd, text);
	if (!error && renameat(folder_fd, early, folder_fd, name) != 0)
		error = -errno;
	if (error && fd >= 0)
		(void)unlinkat(folder_fd, early, 0);
	if (!error)
		(void)fsync(folder_fd);
	if (fd >= 0)
		close(fd);
	close(folder_fd);
	return error;
}

int root_folder_remove(const struct root_folder *root, const char *folder, const char *name)
{
	const char *last;
	int fd = open_below(root, folder, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	int error = unlinkat(fd, name, 0) == 0 ? 0 : -errno;
	if (!error)
		(void)fsync(fd);
	close(fd);
	int parent = error ? -1 : open_parent(root, folder, &last);
	if (parent < 0)
		return error ? error : parent;
	if (unlinkat(parent, last, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY && errno != EEXIST)
		error = -errno;
	close(parent);
	return error;
}
