/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/jitdump_file.h"

#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

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
