/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/executed.h"

#include "pprof/text/clock.h"
#include "pprof/text/utf8.h"
#include "sampler/books/process_identity.h"
#include "sampler/inject/preload_check.h"
#include "sampler/inject/preload_library.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include <linux/openat2.h>

enum {
	TICK_NS = 10 * 1000000, /* the coarse clock's, at most */
	ENVIRONMENT_BYTES = 256 << 10,
	COMM_BYTES = 32, /* 15, and more for a thread of the kernel */
};

#define SECOND_NS UINT64_C(1000000000)

struct file_id {
	dev_t dev;
	ino_t ino;
};

/* Asks only the kernel's memory (AT_STATX_DONT_SYNC): the target chose the file, and the file's server may
 * answer late or never. */
static bool stat_file(const char *path, struct file_id *id)
{
	struct statx status;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &status) != 0)
		return false;
	*id = (struct file_id){makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
	return true;
}

static bool read_file_id(const struct process *process, struct file_id *id)
{
	char path[PROC_PATH_BYTES];

	/* COMMAND's pid comes from the front, and the kernel does not reuse it before the front has said
	 * that COMMAND ended. */
	return (process->target.pidfd >= 0 || (process->target.command && !process->unsure)) &&
	    stat_file(proc_path(path, process->target.pid, "exe"), id) &&
	    !target_has_ended(&process->target); /* the pid was not another process' */
}

/* The header does not say which processes of the program run have limited themselves. */
bool executed_is_limited(const struct process *process)
{
	const struct target *target = &process->target;

	if (!region_not_afforded(process->run->region) || !target->code_address || !target->maps)
		return false;
	struct maps *maps = maps_new(maps_store(target->maps), target->pid, true);
	const bool there = maps && maps_read_proc(maps) == 0 && maps_find(maps, target->code_address) != NULL;
	maps_free(maps);
	return there;
}

/* Whether the process has executed the same program once more. An attached process does not tell us; any
 * other would. */
static bool is_executed_again(const struct process *process)
{
	uint64_t now = process->executed.stack ? thread_facts_birth(process->target.pid).stack_start : 0;

	return now && now != process->executed.stack;
}

/* NULL if it cannot be read, or is larger than we read. For free(). */
static char *read_environment(pid_t pid, ssize_t *length)
{
	char *text = malloc(ENVIRONMENT_BYTES);

	*length = text ? proc_read(pid, "environ", text, ENVIRONMENT_BYTES) : -1;
	if (*length >= 0 && *length < ENVIRONMENT_BYTES - 1)
		return text;
	free(text);
	return NULL;
}

/* Whether the process is in the middle of an exec: its environment may be read, and is not there yet, not
 * even an empty one. */
static bool is_executing(pid_t pid)
{
	char any[2];

	return proc_read(pid, "environ", any, sizeof(any)) == 0 &&
	    thread_facts_birth(pid).environment_end == 0;
}

/* The last value of a variable, as the loader takes it; NULL if it is not set. `name` ends with "=". */
static const char *variable(const char *environment, ssize_t length, const char *name)
{
	const char *value = NULL;

	for (const char *at = environment; at < environment + length; at += strlen(at) + 1)
		if (strncmp(at, name, strlen(name)) == 0)
			value = at + strlen(name);
	return value;
}

/* The library finds its session by /proc, so it needs one. */
static bool is_without_proc(pid_t pid)
{
	char root[PATH_MAX], proc[PATH_MAX];

	return proc_root_path(root, sizeof(root), pid, "/") &&
	    proc_root_path(proc, sizeof(proc), pid, "/proc/self") && access(root, F_OK) == 0 &&
	    faccessat(AT_FDCWD, proc, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

/* Whether the file that LD_PRELOAD names is missing below the process' own root. (The loader has said so
 * there.) */
static bool is_without_library(pid_t pid, const char *preload)
{
	static const char separators[] = " :"; /* ld.so(8) */
	char root[PROC_PATH_BYTES], library[PATH_MAX];
	const char *name = strstr(preload, PRELOAD_LIBRARY_NAME);

	if (!name)
		return false;
	while (name > preload && !strchr(separators, name[-1]))
		name--;
	const size_t length = strcspn(name, separators);
	if (name[0] != '/' || length >= sizeof(library))
		return false;
	memcpy(library, name, length);
	library[length] = '\0';
	/* Looks it up as the loader does there: a link leads to a file below that root. */
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	const int root_fd = open(proc_path(root, pid, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int fd = root_fd < 0 ? -1 : (int)syscall(SYS_openat2, root_fd, library, &how, sizeof(how));
	const bool missing = root_fd >= 0 && fd < 0 && errno == ENOENT;
	if (fd >= 0)
		close(fd);
	if (root_fd >= 0)
		close(root_fd);
	return missing;
}

/* The obstacle for a process below another root than ours; NULL if there is none. `preload`: the value of
 * LD_PRELOAD there, or NULL. */
static const char *root_obstacle(pid_t pid, const char *preload)
{
	if (is_without_proc(pid))
		return "there is no /proc where it runs";
	if (preload && is_without_library(pid, preload))
		return PRELOAD_LIBRARY_NAME " is not at its path in the root where it runs";
	return NULL;
}

static bool has_library(pid_t pid)
{
	char line[4352];
	bool found = false;
	FILE *maps = proc_open_text(pid, "maps");

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "/" PRELOAD_LIBRARY_NAME) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

/* name: "net", "user" */
static bool shares_namespace(pid_t pid, const char *name)
{
	char path[PROC_PATH_BYTES], ours[64], theirs[64], file[16];

	snprintf(file, sizeof(file), "ns/%s", name);
	const ssize_t length = readlink(proc_path(path, getpid(), file), ours, sizeof(ours));
	return length > 0 && readlink(proc_path(path, pid, file), theirs, sizeof(theirs)) == length &&
	    memcmp(ours, theirs, (size_t)length) == 0;
}

/* Why a process that has the library does not use a region of ours; NULL: it has no library. */
static const char *unreached(pid_t pid)
{
	if (!has_library(pid))
		return NULL;
	if (!shares_namespace(pid, "net"))
		return "it runs in a network namespace of its own, without heaptap's socket in "
		       "/tmp: " PRELOAD_LIBRARY_NAME " has no way to heaptap";
	if (!shares_namespace(pid, "user"))
		return "it runs in a user namespace where heaptap's user has no number: " PRELOAD_LIBRARY_NAME
		       " cannot know heaptap";
	return PRELOAD_LIBRARY_NAME " has found no way to heaptap";
}

const char *executed_obstacle(pid_t pid)
{
	char path[PROC_PATH_BYTES], status[PROC_STATUS_BYTES];
	ssize_t length;
	char *environment = read_environment(pid, &length);
	const char *preload = environment ? variable(environment, length, "LD_PRELOAD=") : NULL;

	(void)proc_read(pid, "status", status, sizeof(status));
	const struct preload_check_who who = {
	    .uid = (uid_t)proc_status_number(status, "\nUid:", 10, getuid()),
	    .gid = (gid_t)proc_status_number(status, "\nGid:", 10, getgid()),
	    .no_new_privs = proc_status_number(status, "\nNoNewPrivs:", 10, 0) == 1,
	    .preload = preload,
	};
	const char *text = preload_check_reason(preload_check_inspect_by(proc_path(path, pid, "exe"), &who));
	if (!text)
		text = root_obstacle(pid, preload);
	if (!text && environment && (!preload || !strstr(preload, PRELOAD_LIBRARY_NAME)))
		text = "its environment has no LD_PRELOAD of heaptap";
	if (!text && environment && !variable(environment, length, "HEAPTAP="))
		text = "its environment has no HEAPTAP";
	free(environment);
	return text ? text : unreached(pid);
}

static void note(struct process *process, const char *program, const char *why, uint64_t time_ns)
{
	struct target *target = &process->target;

	snprintf(target->unprofiled, sizeof(target->unprofiled), "executed %s" EXECUTED_UNSEEN "%s", program,
	    why ? why : "it has not loaded " PRELOAD_LIBRARY_NAME);
	utf8_disarm(target->unprofiled, strlen(target->unprofiled)); /* the name is hostile */
	process->executed.noted_ns = time_ns;
}

void executed_look(struct process *process, uint64_t now_ns)
{
	struct target *target = &process->target;
	char path[TARGET_NAME_BYTES];
	struct file_id id;

	if (!process->executed.known || target->closed || !read_file_id(process, &id) ||
	    (id.dev == process->executed.dev && id.ino == process->executed.ino &&
	        !is_executed_again(process)) ||
	    proc_read_exe(target->pid, path, sizeof(path)) <= 0)
		return;
	/* The file may differ without an exec: by PR_SET_MM_EXE_FILE, or because we could not look. */
	enum region_mapped presence = process_presence(process);
	if (presence == REGION_MAPPED) {
		process->executed.stack = 0;
		process->executed.dev = id.dev;
		process->executed.ino = id.ino;
	}
	if (presence == REGION_MAPPED || presence == REGION_MAPPED_UNREAD || is_executing(target->pid))
		return;
	process->executed.known = false; /* once */
	proc_strip_deleted(path);
	note(process, path,
	    process->run->origin.attached_pid ? EXECUTED_UNFOLLOWED : executed_obstacle(target->pid), now_ns);
}

/* Only the cheap checks, for a record comes for every exec. */
static const char *noted_obstacle(pid_t pid)
{
	ssize_t length;

	if (proc_shares_paths(pid))
		return NULL;
	char *environment = read_environment(pid, &length);
	const char *why =
	    root_obstacle(pid, environment ? variable(environment, length, "LD_PRELOAD=") : NULL);
	free(environment);
	return why;
}

/* The latest time at which the process took its place. */
static uint64_t place_taken_ns(const struct process *process)
{
	const struct region *region = process->run->region;
	const uint64_t start_ns = region_place(region, process->place)->start_ns;

	/* The place of the program run's own process is late, too. */
	return region_header(region)->clock_id != CLOCK_MONOTONIC ? start_ns + TICK_NS : start_ns;
}

void executed_note(struct process *process, const char *name, uint64_t time_ns)
{
	if (process->target.closed || time_ns <= place_taken_ns(process))
		return;
	process->executed.recorded = true;
	if (process->target.unprofiled[0])
		return;
	const char *why =
	    process->run->origin.attached_pid ? EXECUTED_UNFOLLOWED : noted_obstacle(process->target.pid);
	note(process, name, why, time_ns);
}

/* Whether the pid that the process says is good here: it is if the program run's own process has told the
 * truth about its pid, and both have the same user. */
static bool is_relative(const struct process *process, pid_t pid)
{
	const struct process *first = process->run->places.at[0];

	return first && first != process && first->target.pidfd >= 0 && !target_has_ended(&first->target) &&
	    first->target.pid == process_identity_told_pid(first) &&
	    thread_facts_read(first->target.pid).user == thread_facts_read(pid).user;
}

/* No process was found that has the region mapped. But if a process with that pid was born before the
 * place was taken, and lives, it executes another program now. (After a suspend the kernel's time since
 * the start is ahead of the clock, and nothing is noted.) */
static void note_found_late(struct process *process)
{
	const pid_t pid = process->target.pid;
	const struct thread_birth birth = thread_facts_birth(pid);
	const uint64_t born_ns = birth.ticks * SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
	char name[COMM_BYTES];

	/* A process that is about to end has no memory any more, and was not found for that reason. */
	if (!birth.stack_start || !born_ns || born_ns > place_taken_ns(process) ||
	    thread_facts_read(pid).pid != pid || !is_relative(process, pid) ||
	    proc_read(pid, "comm", name, sizeof(name)) <= 0)
		return;
	name[strcspn(name, "\n")] = '\0';
	executed_note(process, name, clock_now_ns());
}

void executed_begin(struct process *process)
{
	struct file_id id;

	if (process->target.pidfd < 0 && !process->unsure && process->target.pid)
		note_found_late(process);
	if (!read_file_id(process, &id))
		return;
	bool there = process_is_there(process) || executed_is_limited(process);
	process->executed.known = true;
	process->executed.dev = there ? id.dev : 0;
	process->executed.ino = there ? id.ino : 0;
	if (process->run->origin.attached_pid)
		process->executed.stack = thread_facts_birth(process->target.pid).stack_start;
}

void executed_note_declined(struct process *process, const char *why)
{
	process->executed.declined = why;
}
