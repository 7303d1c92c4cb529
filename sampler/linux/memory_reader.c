/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/memory_reader.h"

#include "pprof/text/clock.h"
#include "sampler/linux/confinement.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that waits for memory sleeps. A child that waits for a processor is ready to run, and gets more
 * time: the machine may be busy. Each page is one sleep, and four looks take far longer than a page from a
 * disk. The sum of all sleeps is bounded, too, because a process may make each sleep as long as it is
 * allowed. So is the child's CPU time, because the process chooses the length of its tables. Those of node,
 * which has the most symbols of all programs that we know, take 24 ms. */
enum { LOOK_MS = 50, ASLEEP_LOOKS_MAX = 4, ASLEEP_LOOKS_SUM_MAX = 12, LOOKS_MAX = 200 };
enum { CPU_MS_MAX = 500 };
enum { LEFT_MAX = 16, PUNISHED_SECONDS = 10 };

/* Children that hung. The table belongs to this process, as children do, and not to a session. */
static struct left {
	pid_t pid; /* 0: it has ended */
	uid_t uid; /* user of the process that it reads */
	uint64_t until_ns;
} left[LEFT_MAX];

static int read_uid(pid_t pid, uid_t *uid)
{
	char status[4096];
	ssize_t length = proc_read(pid, "status", status, sizeof(status));

	if (length < 0)
		return (int)length;
	*uid = (uid_t)proc_status_number(status, "\nUid:", 10, 0);
	return 0;
}

static bool is_over(struct left *entry, uint64_t now_ns)
{
	if (entry->pid && waitpid(entry->pid, NULL, WNOHANG) != 0) /* it has ended, or was reaped elsewhere */
		entry->pid = 0;
	return !entry->pid && now_ns >= entry->until_ns;
}

/* A place for the child, should it hang. NULL if this user's memory must not be read now, or if all places
 * are taken. */
static struct left *find_room(uid_t uid)
{
	const uint64_t now_ns = clock_now_ns();
	struct left *room = NULL;

	for (struct left *entry = left; entry < left + LEFT_MAX; entry++)
		if (is_over(entry, now_ns))
			room = entry;
		else if (entry->uid == uid)
			return NULL;
	return room;
}

/* How often the child has gone to sleep so far, if it sleeps now. -1 if it is ready to run, or if that is
 * unknown. */
static int64_t asleep(pid_t child)
{
	char status[PROC_STATUS_BYTES];
	const char state = proc_state(child);

	if (state == 'R' || state == '?' || proc_read(child, "status", status, sizeof(status)) <= 0)
		return -1;
	return (int64_t)proc_status_number(status, "\nvoluntary_ctxt_switches:", 10, 0);
}

/* The child's end of the pipe is closed when the child ends, in whatever way. */
static bool wait_for(pid_t child, int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	int64_t before = -1;

	for (int looks = 0, same = 0, sum = 0;
	     looks < LOOKS_MAX && same < ASLEEP_LOOKS_MAX && sum < ASLEEP_LOOKS_SUM_MAX &&
	     clock_process_cpu_ns(child) < CPU_MS_MAX * (uint64_t)CLOCK_NS_PER_MS;
	     looks++) {
		if (poll(&end, 1, LOOK_MS) > 0)
			return true;
		const int64_t now = asleep(child);
		same = now < 0 ? 0 : now == before ? same + 1 : 1;
		sum += now >= 0;
		before = now;
	}
	return false;
}

_Noreturn static void run_child(memory_reader_fn *gather, pid_t pid, void *shared, int end)
{
	struct sigaction by_default = {.sa_handler = SIG_DFL};
	sigset_t none;

	/* The parent's handlers must not delay a signal that ends the parent's process group. */
	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &by_default, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* A child that hangs must not keep our locks and sockets. */
	if (dup2(end, STDIN_FILENO) != STDIN_FILENO)
		_exit(1);
	confinement_close_range(STDIN_FILENO + 1, ~0u);
	gather(pid, shared);
	_exit(write(STDIN_FILENO, "", 1) == 1 ? 0 : 1);
}

static int run(memory_reader_fn *gather, pid_t pid, void *shared, struct left *room)
{
	char done;
	int ends[2], error = -ETIMEDOUT;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	const pid_t child = fork();
	if (child == 0)
		run_child(gather, pid, shared, ends[1]);
	if (child < 0)
		error = -errno;
	(void)close(ends[1]);
	if (child > 0 && wait_for(child, ends[0])) {
		error = read(ends[0], &done, 1) == 1 ? 0 : -EIO;
		(void)waitpid(child, NULL, 0);
	} else if (child > 0) {
		(void)kill(child, SIGKILL);
		room->pid = child;
		room->until_ns = clock_now_ns() + PUNISHED_SECONDS * (uint64_t)CLOCK_NS_PER_S;
	}
	(void)close(ends[0]);
	return error;
}

int memory_reader_run(memory_reader_fn *gather, pid_t pid, void *result, size_t result_bytes)
{
	uid_t uid;
	int error = read_uid(pid, &uid);

	if (error)
		return error;
	struct left *room = find_room(uid);
	if (!room)
		return -EBUSY;
	void *shared = mmap(NULL, result_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	memcpy(shared, result, result_bytes);
	room->uid = uid;
	error = run(gather, pid, shared, room);
	if (!error)
		memcpy(result, shared, result_bytes);
	(void)munmap(shared, result_bytes);
	return error;
}
