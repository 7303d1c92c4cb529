/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/holder.h"

#include "pprof/text/clock.h"
#include "proto/attach_request.h"
#include "sampler/inject/reap.h"
#include "sampler/inject/target_context.h"
#include "sampler/intake/region.h"
#include "sampler/linux/confinement.h"
#include "sampler/linux/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	SOCKET_FD = 3,
	PROGRAM_FD = ATTACH_BUFFERS_FD + 1, /* closed by the exec */
	ANSWER_MS = 10000,
};

/* How long the child may take to see that its socket is closed, and to clean up. */
static const uint64_t end_ns = UINT64_C(5) * CLOCK_NS_PER_S;

/* ---- the holder. Its answers: 0, or the pid of the child that goes on in its place; then its pid in the
 * target's /proc. */

static bool say(int answer)
{
	return write(SOCKET_FD, &answer, sizeof(answer)) == (ssize_t)sizeof(answer);
}

/*
 * The holder itself stays outside the target's pid namespace; only its children are inside. The target sees
 * such a child from its birth, so the child is born with nothing that the target may not have. The child is
 * the sampler's, too, which can end it.
 */
static int go_on_in_child(void)
{
	int gate[2];
	char byte = 0;

	if (pipe2(gate, O_CLOEXEC) != 0)
		return -errno;
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	if (child > 0)
		_exit(say(child) && write(gate[1], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
	if (child < 0)
		return -errno;
	close(gate[1]);
	if (read(gate[0], &byte, 1) != 1) /* the sampler does not know of us, and could not end us */
		_exit(EXIT_FAILURE);
	close(gate[0]);
	return 0;
}

/* Our pid in the target's /proc, whatever pid namespace this /proc shows. */
static int find_number(void)
{
	char text[16] = "";
	ssize_t length = readlink("/proc/self", text, sizeof(text) - 1);
	int number = length > 0 ? atoi(text) : 0;

	return number > 0 ? number : -ENOENT;
}

/* From now on the target may look into us, and even make us act for it (PTRACE_ATTACH). So nearly all system
 * calls are refused to us: we are no way out of the target's own filter of calls or cgroup. */
static int show(void)
{
	return prctl(PR_SET_DUMPABLE, 1) == 0 ? confinement_filter_calls() : -errno;
}

static int become_one_of(pid_t target)
{
	struct target_context context;
	int error = target_context_open(&context, target);

	if (!error)
		error = target_context_enter(&context);
	if (!error)
		error = target_context_become(&context);
	if (!error && !context.own_pids) {
		error = go_on_in_child();
		if (!error)
			return 0;
	}
	return say(error) ? error : -EPIPE;
}

int holder_main(int count, char *words[])
{
	char byte;

	/* main() has opened a file of the sampler's on these numbers (own_resources.h). Root of a container
	 * could use it to change the mode of the machine's own file. */
	confinement_close_range(0, SOCKET_FD - 1);
	if (count != 1)
		return EXIT_FAILURE;
	prctl(PR_SET_NAME, "heaptap-holder");
	if (become_one_of((pid_t)atoi(words[0])) != 0)
		return EXIT_FAILURE;
	int number = find_number(), error = number > 0 ? show() : number;
	if (!say(error ? error : number))
		return EXIT_FAILURE;
	for (ssize_t got = 1; !error && (got > 0 || (got < 0 && errno == EINTR));)
		got = read(SOCKET_FD, &byte, 1);
	return EXIT_SUCCESS;
}

/* ---- in the sampler */

static void place_descriptors(int socket_fd, int library_fd, const struct region *region, int program_fd)
{
	enum { PLACES = 5 };
	const int fds[PLACES] = {socket_fd, library_fd, region->fd, region->buffers_fd, program_fd};
	const int to[PLACES] = {
	    SOCKET_FD, ATTACH_LIBRARY_FD, ATTACH_REGION_FD, ATTACH_BUFFERS_FD, PROGRAM_FD};
	int from[PLACES];

	/* first to numbers above all places: one may be in the way of another */
	for (int i = 0; i < PLACES; i++)
		from[i] = fcntl(fds[i], F_DUPFD, 64);
	for (int i = 0; i < PLACES; i++)
		dup2(from[i], to[i]);
	(void)fcntl(PROGRAM_FD, F_SETFD, FD_CLOEXEC);
	confinement_close_range(PROGRAM_FD + 1, INT_MAX);
	confinement_close_range(0, SOCKET_FD - 1);
}

/* A sealed copy of our program in memory. A process that may look into the holder may open its program
 * (/proc/PID/exe), and root of a container may write to files of root. Nobody can write to this copy. */
static int copy_program(void)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = from < 0 ? -errno : memory_file_create_executable("heaptap-holder");
	ssize_t sent = 1;

	while (to >= 0 && sent > 0)
		sent = sendfile(to, from, NULL, 1 << 20);
	if (to >= 0 && (sent < 0 || fcntl(to, F_ADD_SEALS, seals) != 0)) {
		int error = -errno;

		close(to);
		to = error;
	}
	if (from >= 0)
		close(from);
	return to;
}

/* Executes our program before anything of the target is entered: so the loader and the libraries are ours. */
static void run_child(pid_t target, int socket_fd, int library_fd, const struct region *region)
{
	char number[16];
	char *words[] = {"heaptap", HOLDER_COMMAND, number, NULL}, *environment[] = {NULL};
	int program_fd = copy_program();

	snprintf(number, sizeof(number), "%d", target);
	if (program_fd >= 0) {
		place_descriptors(socket_fd, library_fd, region, program_fd);
		fexecve(PROGRAM_FD, words, environment);
		program_fd = -errno;
		socket_fd = SOCKET_FD;
	}
	(void)!write(socket_fd, &program_fd, sizeof(program_fd));
	_exit(EXIT_FAILURE);
}

int handed_await(const struct handed *handed, void *answer, size_t bytes, int cancel_fd)
{
	struct pollfd fds[] = {{.fd = handed->fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
	int ready;

	do
		ready = poll(fds, 2, ANSWER_MS);
	while (ready < 0 && errno == EINTR);
	if (fds[0].revents)
		return recv(handed->fd, answer, bytes, MSG_DONTWAIT) == (ssize_t)bytes ? 0 : -EIO;
	return ready > 0 ? -ECANCELED : -ETIMEDOUT;
}

static int await_answers(struct handed *handed, int *answer, int cancel_fd)
{
	int error = handed_await(handed, answer, sizeof(*answer), cancel_fd);

	if (error || *answer < 0)
		return error;
	if (*answer > 0) {
		reap_within(handed->child, end_ns);
		handed->child = *answer;
	}
	return handed_await(handed, answer, sizeof(*answer), cancel_fd);
}

int holder_start(
    struct handed *handed, pid_t target, int library_fd, const struct region *region, int cancel_fd)
{
	int pair[2], answer = -EIO;

	*handed = (struct handed){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	handed->child = fork();
	if (handed->child == 0) {
		close(pair[0]);
		run_child(target, pair[1], library_fd, region);
	}
	close(pair[1]);
	handed->fd = pair[0];
	int error = handed->child < 0 ? -EIO : await_answers(handed, &answer, cancel_fd);
	if (error || answer <= 0) {
		if (handed->child > 0)
			kill(handed->child, SIGKILL); /* it has nothing to clean up */
		handed_end(handed);
		return error ? error : answer < 0 ? answer : -EIO;
	}
	snprintf(handed->library_path, sizeof(handed->library_path), "/proc/%d/fd/" ATTACH_LIBRARY_FD_NAME,
	    answer);
	snprintf(
	    handed->region_path, sizeof(handed->region_path), "/proc/%d/fd/" ATTACH_REGION_FD_NAME, answer);
	return 0;
}

void handed_end(struct handed *handed)
{
	if (handed->fd >= 0)
		close(handed->fd);
	if (handed->child > 0)
		reap_within(handed->child, end_ns);
	*handed = (struct handed){.fd = -1};
}
