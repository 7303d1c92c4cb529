/* SPDX-License-Identifier: Apache-2.0 */
/* How the front starts COMMAND: as a child of heaptap-parent, or in place of itself. */
#include "pprof/store/exit_code.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/record/front.h"
#include "sampler/cmd/record/start_line.h"
#include "sampler/inject/preload_library.h"
#include "sampler/inject/reap.h"
#include "sampler/linux/pidfd.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MS = 10000 }; /* the sampler attaches the counters of events in this time */

static const uint64_t dismiss_ns = CLOCK_NS_PER_S; /* a process that has nothing to do ends in this time */

void front_tell_sampler(struct front *front, enum front_message_kind kind)
{
	if (front->front_fd >= 0)
		front_message_write(front->front_fd, kind, front->command, front->status, NULL);
}

/* Waits until the sampler has attached the counters of events: only then may COMMAND exec. */
static void events_await(struct front *front)
{
	struct pollfd poll_fd = {.fd = front->front_fd, .events = POLLIN};
	struct front_message message;
	int ret;

	if (front->front_fd < 0 || !front->options->record.event_count)
		return;
	do
		ret = poll(&poll_fd, 1, ANSWER_MS);
	while (ret < 0 && errno == EINTR);
	if (ret <= 0 || front_message_read(front->front_fd, &message))
		log_line("the sampler does not answer: no events are sampled");
	else if (message.kind == FRONT_MESSAGE_FAILED)
		log_line("%s", message.text);
}

/* The environment of COMMAND, made in the child that becomes COMMAND: it has the child's pid, by which the
 * library knows COMMAND. */
static char **command_environment(struct front *front)
{
	size_t length = strlen(front->value);
	char **made;

	notify_relay_environment(&front->notify);
	inheritance_environment(&front->inheritance);
	/* The loader of a 32-bit program would say on its standard error that it cannot load the library. */
	if (!length || front->options->record.no_heap || front->forecast == PRELOAD_CHECK_SANITIZER ||
	    front->forecast == PRELOAD_CHECK_FOREIGN)
		return environ;
	snprintf(front->value + length, sizeof(front->value) - length, ",%d", (int)getpid());
	made = preload_library_environment(environ, front->options->record.heap.library, front->value);
	return made ? made : environ;
}

/* In the child that becomes COMMAND. Tells by `channel` that it has what it inherits, and awaits a byte,
 * which permits the exec. If that fails, errno is written to `channel`. */
static void command_exec(struct front *front, int channel)
{
	char **environment = command_environment(front);
	char *const *argv = front->options->operands;
	int error = 0;
	char go;

	inheritance_receive(&front->inheritance, argv[0]);
	/* End of file instead of a byte: the front was killed, and COMMAND with it. */
	if (send(channel, &error, sizeof(error), MSG_NOSIGNAL) < 0 || read(channel, &go, 1) != 1)
		_exit(STATUS_CANNOT_EXEC);
	inheritance_complete(&front->inheritance, argv[0]);
	execvpe(argv[0], argv, environment);
	error = errno;
	if (send(channel, &error, sizeof(error), MSG_NOSIGNAL) < 0)
		_exit(STATUS_CANNOT_EXEC);
	_exit(STATUS_NOT_FOUND);
}

/* Logs why COMMAND cannot run; returns the exit status that a shell would. */
static int command_refused(struct front *front, int error)
{
	const char *name = front->options->operands[0];

	front_tell_sampler(front, FRONT_MESSAGE_CANCELLED);
	if (error == ENOENT && !strchr(name, '/'))
		log_line("%s: command not found", name);
	else
		log_line("cannot run %s: %s", name, strerror(error));
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXEC;
}

/* ---- in place of the front */

/* COMMAND is not the parent of processes that it has not started. */
static void dismiss_processes(struct front *front)
{
	front_tell_sampler(front, FRONT_MESSAGE_CANCELLED);
	if (front->front_fd >= 0)
		front_forget_sampler(front);
	web_server_end(&front->web);
	if (front->pusher.fd >= 0)
		pusher_end(&front->pusher);
	command_parent_end(&front->parent);
	const pid_t started[] = {front->parent.pid, front->sampler, front->web.pid, front->pusher.pid};
	for (size_t i = 0; i < sizeof(started) / sizeof(started[0]); i++)
		if (started[i] > 0)
			reap_within(started[i], dismiss_ns);
}

int front_command_become(struct front *front, const char *why)
{
	char *const *argv = front->options->operands;

	if (why)
		log_line("%s; %s runs without being profiled", why, argv[0]);
	else
		log_line("%s runs without being profiled", argv[0]);
	dismiss_processes(front);
	inheritance_complete(&front->inheritance, argv[0]);
	execvp(argv[0], argv);
	return command_refused(front, errno);
}

/* ---- as a child */

/* Forks COMMAND: sets front->command to its pid, or to -errno. */
static void fork_command(struct front *front, int pair[2])
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* SIGCHLD, since it is the only signal that we never pass on. It also comes when only the thread
	 * that has forked us ends: look_at_supervisor() finds the difference. */
	prctl(PR_SET_PDEATHSIG, SIGCHLD);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	front->supervisor = getppid();
	front->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (front->signal_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		front->command = -errno;
	else
		front->command =
		    command_parent_fork(&front->parent, front->signal_fd, front->options->record.heap.signal);
	if (front->command < 0)
		return;
	if (front->command == 0) {
		close(pair[0]);
		command_exec(front, pair[1]);
	}
	close(pair[1]);
}

int front_command_start(struct front *front)
{
	int pair[2], error = 0;
	ssize_t got;

	notify_relay_open(&front->notify);
	inheritance_take(&front->inheritance);
	fork_command(front, pair);
	if (front->command < 0) {
		char why[128];

		snprintf(why, sizeof(why), "no process can be started: %s", strerror(-front->command));
		front->command = -1;
		return front_command_become(front, why);
	}
	/* Before the exec: from then on COMMAND ends when the front ends. */
	front->command_fd = pidfd_open_process(front->command);
	signal_witness_start(&front->witness, front->command, front->command_fd);
	front_tell_sampler(front, FRONT_MESSAGE_STARTED);
	events_await(front);
	if (front->value[0]) /* before the exec, so that the line is not in the middle of COMMAND's output */
		start_line_say(front->options,
		    &(struct start_line){
		        front->command, !preload_check_obstacle(front->forecast), front->socket_error});
	if (recv(pair[0], &error, sizeof(error), MSG_WAITALL) == sizeof(error))
		inheritance_release(&front->inheritance);
	if (send(pair[0], "", 1, MSG_NOSIGNAL) < 0)
		error = 0; /* the child is dead already: waitpid will tell how it ended */
	got = recv(pair[0], &error, sizeof(error), MSG_WAITALL);
	close(pair[0]);
	return got == sizeof(error) ? command_refused(front, error) : 0;
}
