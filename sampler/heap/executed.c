/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/executed.h"

#include "sampler/linux/proc.h"
#include "sampler/loader/preload_check.h"
#include "sampler/loader/preload_library.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_NS = 10 * 1000000, /* the coarse clock's, at most */
	ENVIRONMENT_BYTES = 256 << 10,
};

static bool read_file_id(const struct process *process, struct stat *status)
{
	char path[PROC_PATH_BYTES];
	/* COMMAND's number is the front's word, and does not go to another before the front has said so. */
	return (process->target.pidfd >= 0 || (process->target.command && !process->unsure)) &&
	    stat(proc_path(path, process->target.pid, "exe"), status) == 0 &&
	    !target_has_ended(&process->target); /* the number was not another's */
}

void executed_begin(struct process *process)
{
	struct stat status;
	if (!read_file_id(process, &status))
		return;
	bool there = process_is_there(process);
	process->executable_known = true;
	process->executable_dev = there ? status.st_dev : 0;
	process->executable_ino = there ? status.st_ino : 0;
}

/* NULL: it is not among what can be known. Of an environment that is larger than we read, nothing. */
static const char *environment_obstacle(pid_t pid)
{
	char *text = malloc(ENVIRONMENT_BYTES);
	ssize_t length = text ? proc_read(pid, "environ", text, ENVIRONMENT_BYTES) : -1;
	bool whole = length >= 0 && length < ENVIRONMENT_BYTES - 1, preloaded = false, session = false;
	for (ssize_t at = 0; whole && at < length; at += (ssize_t)strlen(text + at) + 1) {
		preloaded |=
		    strncmp(text + at, "LD_PRELOAD=", 11) == 0 && strstr(text + at, PRELOAD_LIBRARY_NAME);
		session |= strncmp(text + at, "HEAPTAP=", 8) == 0;
	}
	free(text);
	return whole && !preloaded ? "its environment has no LD_PRELOAD of heaptap"
	    : whole && !session    ? "its environment has no HEAPTAP"
	                           : NULL;
}

/* The library finds its session by /proc. */
static bool is_without_proc(pid_t pid)
{
	char root[PATH_MAX], proc[PATH_MAX];
	return proc_root_path(root, sizeof(root), pid, "/") &&
	    proc_root_path(proc, sizeof(proc), pid, "/proc/self") && access(root, F_OK) == 0 &&
	    faccessat(AT_FDCWD, proc, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static const char *obstacle(pid_t pid)
{
	char path[PROC_PATH_BYTES];
	const char *text = preload_check_obstacle(preload_check_inspect(proc_path(path, pid, "exe")));
	return text                ? text
	    : is_without_proc(pid) ? "there is no /proc where it runs"
	                           : environment_obstacle(pid);
}

static void note(struct process *process, const char *program, const char *why, uint64_t time_ns)
{
	struct target *target = &process->target;
	snprintf(target->unseen, sizeof(target->unseen), "executed %s" EXECUTED_UNSEEN "%s", program,
	    why ? why : "it has not loaded " PRELOAD_LIBRARY_NAME);
	/* The name goes into texts, and is whatever the program's owner likes. */
	for (char *c = target->unseen; *c; c++)
		*c = *c >= ' ' && *c <= '~' ? *c : '?';
	process->executed_ns = time_ns;
}

void executed_look(struct process *process, uint64_t now_ns)
{
	struct target *target = &process->target;
	char path[TARGET_NAME_BYTES];
	struct stat status;
	if (!process->executable_known || target->closed || !read_file_id(process, &status) ||
	    (status.st_dev == process->executable_dev && status.st_ino == process->executable_ino) ||
	    proc_read_exe(target->pid, path, sizeof(path)) <= 0)
		return;
	/* The file may be another without an exec: by PR_SET_MM_EXE_FILE, or because we could not look. */
	enum region_mapped presence = process_presence(process);
	if (presence == REGION_MAPPED) {
		process->executable_dev = status.st_dev;
		process->executable_ino = status.st_ino;
	}
	if (presence == REGION_MAPPED || presence == REGION_MAPPED_UNREAD)
		return;
	process->executable_known = false; /* once */
	proc_strip_deleted(path);
	note(process, path, obstacle(target->pid), now_ns);
}

void executed_note(struct process *process, const char *name, uint64_t time_ns)
{
	const struct region *region = process->image->region;
	uint64_t start_ns = region_place(region, process->place)->start_ns;
	/* That of the image itself comes late, too. */
	if (region_header(region)->clock_id != CLOCK_MONOTONIC)
		start_ns += TICK_NS;
	if (process->target.closed || process->target.unseen[0] || time_ns <= start_ns)
		return;
	note(process, name, is_without_proc(process->target.pid) ? "there is no /proc where it runs" : NULL,
	    time_ns);
}
