/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/inheritance.h"

#include "pprof/text/log_line.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	FLAG_RESET_ON_FORK = 1, /* SCHED_FLAG_RESET_ON_FORK, which glibc names since 2.41 */
	LINE_BYTES = 256,
};

static const int timer_kinds[INHERITANCE_TIMERS] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

const char *inheritance_obstacle(void)
{
	static const char link[] = "/proc/self/ns/pid_for_children";
	char own[64] = "", children[64] = "";
	struct stat status;

	if (access("/proc/self", F_OK) != 0)
		return "there is no /proc here";
	/* Nowhere: the namespace has no process 1 yet. COMMAND's first child is to be that. */
	if (lstat(link, &status) == 0 && readlink("/proc/self/ns/pid", own, sizeof(own) - 1) > 0 &&
	    (readlink(link, children, sizeof(children) - 1) < 0 || strcmp(own, children) != 0))
		return "children of this process are in another namespace of pids (unshare -p without -f)";
	return NULL;
}

bool inheritance_has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* ---- record locks */

/* From a line of /proc/PID/fdinfo/N, which lists the process' own locks on the open file: proc(5). */
static bool parse_lock(const char *line, struct flock *range)
{
	char kind[8], end[24];
	long long start;

	if (sscanf(line, "lock: %*d: POSIX %*s %7s %*d %*s %lld %23s", kind, &start, end) != 3)
		return false;
	*range = (struct flock){.l_type = strcmp(kind, "WRITE") == 0 ? F_WRLCK : F_RDLCK,
	    .l_whence = SEEK_SET,
	    .l_start = start,
	    .l_len = strcmp(end, "EOF") == 0 ? 0 : strtoll(end, NULL, 10) - start + 1};
	return true;
}

static void take_locks_of(struct inheritance *inheritance, int fd)
{
	char name[32], line[LINE_BYTES];
	struct flock range;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	FILE *file = proc_open_text(getpid(), name);
	while (file && inheritance->lock_count < INHERITANCE_LOCKS_MAX && fgets(line, sizeof(line), file))
		if (parse_lock(line, &range))
			inheritance->locks[inheritance->lock_count++] =
			    (struct inheritance_lock){.fd = fd, .range = range};
	if (file)
		fclose(file);
}

static void take_locks(struct inheritance *inheritance)
{
	DIR *folder = opendir("/proc/self/fdinfo");

	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		const int fd = (int)strtol(entry->d_name, NULL, 10);
		/* An exec closes the other descriptors, and so it unlocks their files. */
		const int flags = entry->d_name[0] == '.' ? -1 : fcntl(fd, F_GETFD);

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			take_locks_of(inheritance, fd);
	}
	if (folder)
		closedir(folder);
}

static bool set_lock(const struct inheritance_lock *lock, short type)
{
	struct flock range = lock->range;

	range.l_type = type;
	return fcntl(lock->fd, F_SETLK, &range) == 0;
}

/* As set_lock(), of all locks. A descriptor for writing alone cannot have a lock for reading. */
static void set_locks(const struct inheritance *inheritance, short type)
{
	for (size_t i = 0; i < inheritance->lock_count; i++)
		(void)set_lock(&inheritance->locks[i], type);
}

/* ---- all of it */

/* A fork also resets the nice value of a real-time process. sched_getattr(2) does not tell that value, and
 * sched_setattr(2) does not set it. */
static void take_scheduling(struct inheritance_scheduling *scheduling)
{
	if (syscall(SYS_sched_getattr, 0, scheduling, sizeof(*scheduling), 0) != 0 ||
	    !(scheduling->flags & FLAG_RESET_ON_FORK))
		scheduling->bytes = 0;
	scheduling->nice = getpriority(PRIO_PROCESS, 0);
}

static int receive_scheduling(const struct inheritance_scheduling *scheduling)
{
	const int niced = setpriority(PRIO_PROCESS, 0, scheduling->nice);

	return syscall(SYS_sched_setattr, 0, scheduling, 0) != 0 ? -1 : niced;
}

void inheritance_take(struct inheritance *inheritance)
{
	inheritance->front = getpid();
	prctl(PR_GET_CHILD_SUBREAPER, &inheritance->subreaper);
	prctl(PR_GET_PDEATHSIG, &inheritance->end_signal);
	for (size_t i = 0; i < INHERITANCE_TIMERS; i++)
		getitimer(timer_kinds[i], &inheritance->timers[i]);
	take_scheduling(&inheritance->scheduling);
	take_locks(inheritance);
	set_locks(inheritance, F_RDLCK);
}

void inheritance_receive(const struct inheritance *inheritance, const char *command)
{
	for (size_t i = 0; i < INHERITANCE_TIMERS; i++)
		setitimer(timer_kinds[i], &inheritance->timers[i], NULL);
	if (inheritance->scheduling.bytes && receive_scheduling(&inheritance->scheduling) != 0)
		log_line("%s does not get its scheduling (SCHED_RESET_ON_FORK): %m", command);
	set_locks(inheritance, F_RDLCK);
}

void inheritance_release(const struct inheritance *inheritance)
{
	static const struct itimerval none;

	for (size_t i = 0; i < INHERITANCE_TIMERS; i++)
		setitimer(timer_kinds[i], &none, NULL);
	set_locks(inheritance, F_UNLCK);
}

void inheritance_complete(const struct inheritance *inheritance, const char *command)
{
	for (size_t i = 0; i < inheritance->lock_count; i++)
		if (!set_lock(&inheritance->locks[i], inheritance->locks[i].range.l_type))
			log_line("%s does not get the record lock (fcntl) of descriptor %d: it has no "
			         "more than %s, for another process has a lock on the same file",
			    command, inheritance->locks[i].fd,
			    set_lock(&inheritance->locks[i], F_RDLCK) ? "a lock for reading" : "none");
	if (inheritance->front) {
		prctl(PR_SET_PDEATHSIG, inheritance->end_signal);
		prctl(PR_SET_CHILD_SUBREAPER, inheritance->subreaper);
	}
	sigaction(SIGCHLD, &inheritance->child_action, NULL);
	sigprocmask(SIG_SETMASK, &inheritance->mask, NULL);
}

/* ---- variables */

static uint64_t pidfd_inode(pid_t pid)
{
	const int fd = pidfd_open_process(pid);
	struct stat status;
	const uint64_t inode = fd >= 0 && fstat(fd, &status) == 0 ? status.st_ino : 0;

	if (fd >= 0)
		close(fd);
	return inode;
}

/* Replaces the entry if its name ends with `ending` and its value is `from`. */
static void replace(char **entry, const char *ending, uint64_t from, uint64_t to)
{
	const char *equals = strchr(*entry, '=');
	const size_t length = strlen(ending);
	char value[24], *made;

	snprintf(value, sizeof(value), "%" PRIu64, from);
	if (!equals || (size_t)(equals - *entry) < length || strcmp(equals + 1, value) != 0 ||
	    memcmp(equals - length, ending, length) != 0)
		return;
	if (asprintf(&made, "%.*s=%" PRIu64, (int)(equals - *entry), *entry, to) >= 0)
		*entry = made;
}

void inheritance_environment(const struct inheritance *inheritance)
{
	const pid_t self = getpid();

	for (char **entry = environ; *entry; entry++) {
		replace(entry, "PID", (uint64_t)inheritance->front, (uint64_t)self);
		/* LISTEN_PIDFDID and its kind: the inode of a pidfd, which no later process has. */
		if (strstr(*entry, "PIDFDID="))
			replace(entry, "PIDFDID", pidfd_inode(inheritance->front), pidfd_inode(self));
	}
}
