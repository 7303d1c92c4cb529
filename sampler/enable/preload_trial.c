/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/preload_trial.h"

#include "sampler/enable/preload_file.h"
#include "sampler/linux/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	OUTPUT_BYTES = 4096, /* of a program, that are compared */
	PATIENCE_MS = 20000, /* for each run */
	NOBODY_UID = 65534,
};

struct program {
	const char *name;         /* for messages */
	const char *arguments[5]; /* an absolute path first */
	bool other_user;          /* started by nobody: so that set-user-id takes effect */
	const char *variable;     /* set to 1; NULL: none */
};

static const struct program programs[] = {
    {.name = "true", .arguments = {"/bin/true"}},
    {.name = "sh", .arguments = {"/bin/sh", "-c", "echo one | { read word; echo $word two; }; exit 7"}},
    {.name = "python3",
        .arguments = {"/usr/bin/python3", "-c",
            "import json, threading\n"
            "t = [threading.Thread(target=lambda: json.dumps(list(range(50000)))) for _ in range(4)]\n"
            "[x.start() for x in t]; [x.join() for x in t]; print('done')"}},
    {.name = "su", .arguments = {"/bin/su", "--help"}, .other_user = true},
    {.name = "mount", .arguments = {"/bin/mount", "--version"}, .other_user = true},
    {.name = "passwd", .arguments = {"/usr/bin/passwd", "--help"}, .other_user = true},
    {.name = "threads", .arguments = {"/proc/self/exe", "enable"}, .variable = PRELOAD_TRIAL_VARIABLE},
};

/* How a program ended and what it printed, both outputs together. */
struct outcome {
	int status; /* as wait(2) gives it */
	bool hangs;
	char output[OUTPUT_BYTES];
	size_t length;
};

/* ---- running a program */

static void execute(const struct program *program, int output_fd)
{
	int null_fd = open("/dev/null", O_RDONLY);

	if (null_fd < 0 || dup2(null_fd, 0) != 0 || dup2(output_fd, 1) != 1 || dup2(output_fd, 2) != 2)
		_exit(126);
	if (program->other_user &&
	    (setresgid(NOBODY_UID, NOBODY_UID, NOBODY_UID) != 0 ||
	        setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID) != 0))
		_exit(126);
	/* Nothing of ours, and nothing that changes messages. */
	clearenv();
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("LC_ALL", "C", 1);
	if (program->variable)
		setenv(program->variable, "1", 1);
	if (chdir("/") == 0)
		execv(program->arguments[0], (char *const *)(uintptr_t)program->arguments);
	_exit(127);
}

/* Reads until the end of file or the deadline. */
static void collect(int fd, struct outcome *outcome)
{
	uint64_t end_ns = clock_now_ns() + (uint64_t)PATIENCE_MS * CLOCK_NS_PER_MS;

	for (;;) {
		char more[512];
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
		uint64_t now_ns = clock_now_ns();
		int left_ms = now_ns < end_ns ? (int)((end_ns - now_ns) / CLOCK_NS_PER_MS) : 0;
		int ready = poll(&poll_fd, 1, left_ms);

		if (ready < 0 && errno == EINTR)
			continue;
		outcome->hangs = ready == 0;
		ssize_t got = ready > 0 ? read(fd, more, sizeof(more)) : 0;
		if (got <= 0)
			return;
		size_t room = OUTPUT_BYTES - 1 - outcome->length;
		size_t kept = (size_t)got < room ? (size_t)got : room;
		memcpy(outcome->output + outcome->length, more, kept);
		outcome->length += kept;
	}
}

static int run(const struct program *program, struct outcome *outcome)
{
	int fds[2];

	memset(outcome, 0, sizeof(*outcome));
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		execute(program, fds[1]);
	}
	int error = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (!error) {
		collect(fds[0], outcome);
		if (outcome->hangs) {
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
		}
		while (waitpid(pid, &outcome->status, 0) < 0 && errno == EINTR)
			;
	}
	close(fds[0]);
	return error;
}

/* ---- the namespace */

/* The folder that will hold what is written over /etc: made before, and removed after, outside of the
 * namespace. */
static int overlay_etc(const char *folder)
{
	char upper[PATH_MAX + 8], work[PATH_MAX + 8], options[PATH_MAX * 3 + 64];

	snprintf(upper, sizeof(upper), "%s/upper", folder);
	snprintf(work, sizeof(work), "%s/work", folder);
	snprintf(options, sizeof(options), "lowerdir=/etc,upperdir=%s,workdir=%s", upper, work);
	if (mount("heaptap", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m") != 0 ||
	    mkdir(upper, 0755) != 0 || mkdir(work, 0755) != 0 ||
	    mount("heaptap", "/etc", "overlay", 0, options) != 0)
		return -errno;
	return 0;
}

static int write_file(const char *text)
{
	int fd = open(PRELOAD_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	ssize_t wrote = write(fd, text, strlen(text));
	int error = wrote == (ssize_t)strlen(text) ? 0 : -EIO;
	close(fd);
	return error;
}

/* ---- judging */

static void describe(const struct outcome *outcome, char *text, size_t text_bytes)
{
	int end = (int)strcspn(outcome->output, "\n");

	if (outcome->hangs)
		snprintf(text, text_bytes, "hangs");
	else if (WIFSIGNALED(outcome->status))
		snprintf(text, text_bytes, "dies of %s", strsignal(WTERMSIG(outcome->status)));
	else
		snprintf(text, text_bytes, "ends with status %d and says '%.*s'",
		    WEXITSTATUS(outcome->status), end < 200 ? end : 200, outcome->output);
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
	return a->status == b->status && a->hangs == b->hangs && a->length == b->length &&
	    memcmp(a->output, b->output, a->length) == 0;
}

/* Can it be tried at all? A set-user-id program must be one. */
static bool is_there(const struct program *program)
{
	struct stat status;

	return stat(program->arguments[0], &status) == 0 &&
	    (!program->other_user || ((status.st_mode & S_ISUID) && status.st_uid == 0));
}

/* In the namespace: 0, or -EPERM with `reason`. */
static int try_programs(const char *text, char *reason, size_t reason_bytes)
{
	struct outcome before[ARRAY_COUNT(programs)], after;
	char with[320], without[320];
	bool privileged = false;
	int error = 0;

	for (size_t i = 0; i < ARRAY_COUNT(programs) && !error; i++)
		error = is_there(&programs[i]) ? run(&programs[i], &before[i]) : 0;
	if (!error)
		error = write_file(text);
	for (size_t i = 0; i < ARRAY_COUNT(programs) && !error; i++) {
		if (!is_there(&programs[i]))
			continue;
		privileged = privileged || programs[i].other_user;
		error = run(&programs[i], &after);
		if (error || is_same(&before[i], &after))
			continue;
		describe(&before[i], without, sizeof(without));
		describe(&after, with, sizeof(with));
		snprintf(
		    reason, reason_bytes, "%s %s under it (without: %s)", programs[i].name, with, without);
		return -EPERM;
	}
	if (!error && !privileged) {
		snprintf(reason, reason_bytes, "there is no set-user-id program to try it with");
		return -EPERM;
	}
	if (error)
		snprintf(reason, reason_bytes, "it cannot be tried: %s", strerror(-error));
	return error ? -EPERM : 0;
}

/* The child's whole life. What it has to say goes through the pipe. */
static void child(const char *folder, const char *text, int answer_fd)
{
	char reason[1024] = "";
	int error = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
	    ? overlay_etc(folder)
	    : -errno;

	if (error)
		snprintf(
		    reason, sizeof(reason), "it cannot be tried in a mount namespace: %s", strerror(-error));
	else
		error = try_programs(text, reason, sizeof(reason));
	if (write(answer_fd, reason, strlen(reason)) < 0)
		_exit(2);
	_exit(error ? 1 : 0);
}

int preload_trial_run(const char *text, char *reason, size_t reason_bytes)
{
	/* Not in $TMPDIR, which may be another user's: what programs of root find in /etc lies below it. */
	char folder[] = "/run/heaptap-trial.XXXXXX";
	int fds[2], status = 0;

	if (!mkdtemp(folder) || pipe2(fds, O_CLOEXEC) != 0) {
		snprintf(reason, reason_bytes, "it cannot be tried: %s", strerror(errno));
		return -EPERM;
	}
	pid_t pid = fork();
	if (pid == 0)
		child(folder, text, fds[1]);
	close(fds[1]);
	size_t length = 0;
	ssize_t got;
	while (
	    length < reason_bytes - 1 && (got = read(fds[0], reason + length, reason_bytes - 1 - length)) > 0)
		length += (size_t)got;
	reason[length] = '\0';
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	rmdir(folder);
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (!length)
		snprintf(reason, reason_bytes, "the trial itself died");
	return -EPERM;
}
