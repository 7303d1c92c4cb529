/* SPDX-License-Identifier: Apache-2.0 */
/* How the front starts COMMAND: as a child of heaptap-parent, or in place of itself. */
#include "sampler/cmd/record/front.h"

#include "pprof/store/exit_code.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/books/unseen.h"
#include "sampler/cmd/record/inheritance.h"
#include "sampler/cmd/record/notify_relay.h"
#include "sampler/cmd/record/start_lines.h"
#include "sampler/core/own_resources.h"
#include "sampler/inject/preload_library.h"
#include "sampler/inject/program_symbols.h"
#include "sampler/inject/reap.h"
#include "sampler/inject/script_line.h"
#include "sampler/linux/installed_file.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- heaptap-parent */

/*
 * COMMAND's parent: a process of ours between the front and COMMAND, which ends when the front's own parent
 * ends.
 *
 * A script that starts `heaptap record ./server & echo $! >pid` and ends has written down the front's pid. So
 * the front must live as long as COMMAND. But COMMAND may want to know when the script ends, by a signal
 * (PR_SET_PDEATHSIG) or by getppid(): the kernel answers that for COMMAND's parent. So the parent has to end
 * at a time when the front must not, and the two are different processes. The parent also tells the front
 * what state COMMAND is in, and passes on the snapshot signal, which COMMAND may send to its parent.
 *
 * While the parent ends, the front is a subreaper (prctl(2)). So COMMAND becomes a child of the front, and
 * its exit status is not lost. A process that COMMAND orphans in that moment becomes a child of the front
 * too, which reaps it.
 */

enum { STATUS_CONTINUED = 0xffff }; /* as WIFCONTINUED() knows it */

static bool tell(int channel, int value)
{
	return send(channel, &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value);
}

/* Tells the front of changes of COMMAND's state. True if COMMAND has ended and the front was told. COMMAND
 * is not reaped yet, since the front may still use its pid. */
static bool report(int channel, pid_t command)
{
	siginfo_t info = {0};

	while (waitid(P_PID, (id_t)command, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid) {
		tell(channel, info.si_code == CLD_CONTINUED ? STATUS_CONTINUED : W_STOPCODE(info.si_status));
		info.si_pid = 0;
	}
	if (waitid(P_PID, (id_t)command, &info, WEXITED | WNOWAIT | WNOHANG) != 0 || !info.si_pid)
		return false;
	return tell(channel,
	    info.si_code == CLD_EXITED       ? W_EXITCODE(info.si_status, 0)
	        : info.si_code == CLD_DUMPED ? info.si_status | WCOREFLAG
	                                     : info.si_status);
}

static _Noreturn void tend(int channel, int signal_fd, int snapshot_signal, pid_t front, pid_t command)
{
	struct pollfd polls[] = {{.fd = channel, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	bool told = false, asked = false;
	char question;

	prctl(PR_SET_NAME, "heaptap-parent");
	descriptors_drop((const int[]){channel, signal_fd}, 2);
	close(STDERR_FILENO);
	tell(channel, command);
	do {
		while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
			if ((int)info.ssi_signo == snapshot_signal && getppid() == front)
				kill(front, snapshot_signal);
		if (!told && report(channel, command))
			told = true;
		if (asked)
			tell(channel, FRONT_PARENT_ANSWER);
		poll(polls, 2, -1);
		asked = polls[0].revents && recv(channel, &question, 1, MSG_DONTWAIT) == 1;
	} while (asked || !polls[0].revents);
	if (told) /* else COMMAND's next parent hears of its end */
		waitpid(command, NULL, WNOHANG);
	_exit(0);
}

/*
 * Forks the parent, which forks COMMAND. Returns COMMAND's pid or -errno, and 0 in COMMAND, as fork(2) does.
 * Call it with all signals blocked. signal_fd: a non-blocking signalfd of all signals. snapshot_signal: 0 for
 * none. When the front ends in any way, the parent ends too.
 */
static pid_t parent_fork(struct front_parent *parent, int signal_fd, int snapshot_signal)
{
	const pid_t front = getpid();
	int pair[2], command;

	*parent = (struct front_parent){-1, -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	parent->pid = fork();
	if (parent->pid == 0) {
		close(pair[0]);
		command = fork();
		if (command)
			tend(pair[1], signal_fd, snapshot_signal, front, command < 0 ? -errno : command);
		close(pair[1]);
		return 0;
	}
	command = parent->pid < 0 ? -errno : -ECHILD;
	close(pair[1]);
	parent->fd = pair[0];
	if (parent->pid > 0)
		recv(parent->fd, &command, sizeof(command), 0);
	return command;
}

bool front_parent_read(struct front_parent *parent, int *status)
{
	ssize_t got;

	if (parent->fd < 0)
		return false;
	got = recv(parent->fd, status, sizeof(*status), MSG_DONTWAIT);
	if (got == sizeof(*status))
		return true;
	if (got == 0 || errno != EAGAIN) {
		close(parent->fd);
		parent->fd = -1;
	}
	return false;
}

bool front_parent_ask(const struct front_parent *parent)
{
	return parent->fd >= 0 && send(parent->fd, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

void front_parent_end(const struct front_parent *parent)
{
	if (parent->fd >= 0)
		shutdown(parent->fd, SHUT_WR);
}

/* ---- what the user is told */

enum { SCRIPT_DEPTH = 4 }; /* an interpreter may be a script itself: the kernel allows so many */

/* Replaces the path of a script by that of its interpreter, or of the program that env starts. False if
 * the file is no script. */
static bool follow_script(int fd, char *path, size_t path_bytes)
{
	char head[SCRIPT_LINE_BYTES + 1] = "", program[SCRIPT_LINE_BYTES];
	struct script_line line;
	const ssize_t got = pread(fd, head, SCRIPT_LINE_BYTES, 0);

	if (got < 2 || !script_line_parse(head, (size_t)got, &line))
		return false;
	if (script_line_env(&line, program))
		return installed_file_in_path(program, path, path_bytes);
	snprintf(path, path_bytes, "%s", line.interpreter);
	return true;
}

/* Logs what will not be seen of COMMAND's memory. How much that will be is not known yet. */
static void say_unseen(const struct options *options, char path[PATH_MAX])
{
	struct program_symbols symbols = {.whole = false};
	struct unseen_facts facts = {.with_mmap = options->record.heap.record_mmap};
	char line[UNSEEN_LINE_BYTES];
	struct unseen unseen;
	struct stat status;
	bool script = true;

	for (int depth = 0; script && depth <= SCRIPT_DEPTH; depth++) {
		int fd = regular_file_open(AT_FDCWD, path, 0, &status);

		if (fd < 0)
			return;
		script = follow_script(fd, path, PATH_MAX);
		if (!script && program_symbols_read_file(&symbols, fd) != 0)
			symbols = (struct program_symbols){.whole = false};
		close(fd);
	}
	facts.own_malloc = symbols.own_malloc;
	facts.runtime = symbols.runtime;
	facts.runtime_by_malloc = unseen_facts_runtime_by_malloc(getpid(), symbols.runtime.kind);
	memcpy(facts.allocator, symbols.allocator, sizeof(facts.allocator));
	snprintf(facts.allocator_file, sizeof(facts.allocator_file), "%s", strrchr(path, '/') + 1);
	unseen_describe(&unseen, &facts);
	if (unseen.count)
		log_line("%s", unseen_line(&unseen.texts[0], line));
}

/* Logs what is recorded, and what will not be seen of COMMAND. Logs nothing with -q, if nothing can be
 * sampled, or if COMMAND cannot be executed, which other lines say. start->heap: COMMAND will load our
 * library if that is preloaded. */
static void say_start(const struct options *options, const struct start *start)
{
	const bool heap = start->heap && !options->record.no_heap;
	char path[PATH_MAX];

	if (options->verbosity < 0 || (!heap && !options->record.event_count) ||
	    !installed_file_in_path(options->operands[0], path, sizeof(path)) || access(path, X_OK) != 0)
		return;
	start_lines_say(options, &(struct start){start->command, heap, start->socket_error});
	if (heap && strchr(path, '/'))
		say_unseen(options, path);
}

/* ---- what COMMAND is started with */

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
	front_parent_end(&front->parent);
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
		    parent_fork(&front->parent, front->signal_fd, front->options->record.heap.signal);
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
	front_witness_start(&front->witness, front->command, front->command_fd);
	front_tell_sampler(front, FRONT_MESSAGE_STARTED);
	events_await(front);
	if (front->value[0]) /* before the exec, so that the line is not in the middle of COMMAND's output */
		say_start(front->options,
		    &(struct start){
		        front->command, !preload_check_obstacle(front->forecast), front->socket_error});
	if (recv(pair[0], &error, sizeof(error), MSG_WAITALL) == sizeof(error))
		inheritance_release(&front->inheritance);
	if (send(pair[0], "", 1, MSG_NOSIGNAL) < 0)
		error = 0; /* the child is dead already: waitpid will tell how it ended */
	got = recv(pair[0], &error, sizeof(error), MSG_WAITALL);
	close(pair[0]);
	return got == sizeof(error) ? command_refused(front, error) : 0;
}
