/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/proc.h"

#include "pprof/text/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *proc_path(char path[PROC_PATH_BYTES], pid_t pid, const char *name)
{
	snprintf(path, PROC_PATH_BYTES, "/proc/%d/%s", (int)pid, name);
	return path;
}

const char *proc_fd_path(char path[PROC_PATH_BYTES], int fd)
{
	snprintf(path, PROC_PATH_BYTES, "/proc/self/fd/%d", fd);
	return path;
}

bool proc_root_path(char *path, size_t path_bytes, pid_t pid, const char *file)
{
	char root[PROC_PATH_BYTES];

	return snprintf(path, path_bytes, "%s%s", proc_path(root, pid, "root"), file) < (int)path_bytes;
}

/* Asks no file system: it may be the process' own, and never answer. */
static bool is_same_file(const char *path, const char *other)
{
	struct statx one, two;

	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &one) == 0 &&
	    statx(AT_FDCWD, other, AT_STATX_DONT_SYNC, STATX_INO, &two) == 0 && one.stx_ino == two.stx_ino &&
	    one.stx_dev_major == two.stx_dev_major && one.stx_dev_minor == two.stx_dev_minor;
}

bool proc_shares_paths(pid_t pid)
{
	char mounts[PROC_PATH_BYTES], root[PROC_PATH_BYTES];

	proc_path(mounts, pid, "ns/mnt");
	return (is_same_file(mounts, "/proc/self/ns/mnt") || is_same_file(mounts, "/proc/1/ns/mnt")) &&
	    is_same_file(proc_path(root, pid, "root"), "/");
}

FILE *proc_open_text(pid_t pid, const char *name)
{
	char path[PROC_PATH_BYTES];

	return fopen(proc_path(path, pid, name), "re");
}

bool proc_is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

ssize_t proc_read(pid_t pid, const char *name, char *text, size_t text_bytes)
{
	char path[PROC_PATH_BYTES];
	int fd = open(proc_path(path, pid, name), O_RDONLY | O_CLOEXEC);

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	size_t length = 0;
	ssize_t got = 0;
	while (length < text_bytes - 1 && (got = read(fd, text + length, text_bytes - 1 - length)) > 0)
		length += (size_t)got;
	int error = got < 0 ? -errno : 0;
	close(fd);
	text[error ? 0 : length] = '\0';
	return error ? error : (ssize_t)length;
}

char proc_state(pid_t pid)
{
	char text[512];
	const char *name_end = proc_read(pid, "stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;

	return name_end && name_end[1] == ' ' && name_end[2] ? name_end[2] : '?';
}

unsigned long long proc_status_number(
    const char *status, const char *label, int base, unsigned long long missing)
{
	const char *line = strstr(status, label);

	return line ? strtoull(line + strlen(label), NULL, base) : missing;
}

ssize_t proc_read_exe(pid_t pid, char *path, size_t path_bytes)
{
	char link[PROC_PATH_BYTES];
	ssize_t length = readlink(proc_path(link, pid, "exe"), path, path_bytes - 1);

	path[length > 0 ? length : 0] = '\0';
	return length < 0 ? -errno : length;
}

void proc_read_comm(pid_t pid, char name[PROC_COMM_BYTES])
{
	if (proc_read(pid, "comm", name, PROC_COMM_BYTES) <= 0)
		strcpy(name, "?");
	name[strcspn(name, "\n")] = '\0';
	utf8_disarm(name, strlen(name));
}

int proc_each_thread(pid_t pid, int (*visit)(void *context, pid_t tid), void *context)
{
	char path[PROC_PATH_BYTES];
	DIR *threads = opendir(proc_path(path, pid, "task"));

	if (!threads)
		return -errno;
	const struct dirent *entry;
	int result = 0;
	while (!result && (entry = readdir(threads))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			result = visit(context, tid);
	}
	closedir(threads);
	return result;
}

size_t proc_undeleted_length(const char *path)
{
	static const char suffix[] = " (deleted)";
	size_t length = strlen(path), suffix_length = sizeof(suffix) - 1;

	if (length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0)
		length -= suffix_length;
	return length;
}

bool proc_strip_deleted(char *path)
{
	size_t length = proc_undeleted_length(path);
	bool stripped = path[length] != '\0';

	path[length] = '\0';
	return stripped;
}

/* ---- the lines of /proc/PID/cgroup */

/* The part up to the separator or the line's end; *at moves behind it. */
static size_t part(const char **at, char separator)
{
	size_t length = 0;

	while ((*at)[length] && (*at)[length] != '\n' && (*at)[length] != separator)
		length++;
	*at += length + ((*at)[length] == separator);
	return length;
}

bool proc_cgroup_next(const char **text, struct proc_cgroup *line)
{
	while (**text) {
		part(text, ':');
		line->controllers = *text;
		line->controllers_bytes = part(text, ':');
		line->path = *text;
		line->path_bytes = part(text, '\n');
		if (line->path_bytes && *line->path == '/')
			return true;
		*text += **text == '\n'; /* the line had no colons */
	}
	return false;
}

bool proc_cgroup_has(const struct proc_cgroup *line, const char *controller)
{
	const char *at = line->controllers, *end = at + line->controllers_bytes;
	size_t length = strlen(controller);

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t bytes = (size_t)((comma ? comma : end) - at);

		if (bytes == length && memcmp(at, controller, length) == 0)
			return true;
		at += bytes + 1;
	}
	return false;
}
