/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals, the one hard thing about standing in for another process:
 *
 *   - Until COMMAND exists the front behaves as any program: Ctrl-C ends it, and the sampler sees its end of
 *     file.
 *   - From then on every signal is blocked here and read from a signalfd. No handler is ever installed, so
 *     COMMAND inherits exactly the dispositions that we got, and the mask is put back in the child before its
 *     exec.
 *   - What the terminal sends goes to the whole process group: COMMAND has had it, we must not pass it on.
 *     Such a signal has si_code SI_KERNEL; one that somebody sent to us has SI_USER, SI_QUEUE or SI_TKILL. A
 *     signal that was sent to the whole group by kill(2) looks like the latter and so reaches COMMAND twice;
 *     there is no telling.
 *   - When the terminal stops COMMAND, the shell waits for us to stop too; so we do, by the same signal.
 *     SIGSTOP is not mirrored: it is what tools send to one pid, and they would not know to continue us.
 */
#include "sampler/launch.h"

#include "sampler/event_list.h"
#include "sampler/library.h"
#include "sampler/message.h"
#include "sampler/notice.h"
#include "sampler/observe.h"
#include "sampler/options.h"
#include "sampler/program.h"
#include "sampler/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS    10000 /* a sampler that is not ready by then is given up, COMMAND is not */
#define CONTINUE_MS 20    /* a SIGCONT to the group reaches us and COMMAND this close together */

struct launch {
	const struct options *options;
	pid_t sampler, command;
	int front_fd; /* to the sampler; -1 when it is gone */
	int signal_fd;
	sigset_t mask;                 /* as we got it, for COMMAND */
	struct sigaction child_action; /* likewise: an ignored SIGCHLD would keep us from waiting */
	bool stopped, ended, done;
	int status;                     /* COMMAND's, once it has ended */
	char value[MESSAGE_TEXT_BYTES]; /* HEAPTAP for COMMAND; empty: runs without us */
};

/*
 * Descriptors 0 to 2 may come closed. What we open must not land there, where COMMAND would find it; so the
 * gaps are filled with /dev/null until the exec closes them again.
 */
static void gaps_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Lets go of everything the user gave us but stderr: a reader of COMMAND's pipes waits for COMMAND alone. */
static void descriptors_drop(int keep, int also)
{
	int first = keep < also ? keep : also, last = keep < also ? also : keep;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (first > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned int)first - 1, 0);
	if (last > first + 1 && last > STDERR_FILENO + 1)
		close_range((unsigned int)(first > STDERR_FILENO ? first : STDERR_FILENO) + 1,
		    (unsigned int)last - 1, 0);
	close_range((unsigned int)(last > STDERR_FILENO ? last : STDERR_FILENO) + 1, ~0u, 0);
}

/* In the child that becomes the sampler. */
static void sampler_settle(int front_fd)
{
	static const int ignored[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP, SIGPIPE};
	sigset_t none;

	setsid();
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "heaptap-sampler");
	descriptors_drop(front_fd, front_fd);
}

/* Forks the sampler. Returns true in the sampler itself, where front_fd is its end of the socket. */
static bool sampler_fork(struct launch *launch)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		notice_print("no socket for the sampler: %s", strerror(errno));
		return false;
	}
	launch->sampler = fork();
	if (launch->sampler == 0) {
		launch->front_fd = pair[1];
		sampler_settle(pair[1]);
		return true;
	}
	close(pair[1]);
	if (launch->sampler > 0) {
		launch->front_fd = pair[0];
	} else {
		notice_print("cannot fork the sampler: %s", strerror(errno));
		close(pair[0]);
	}
	return false;
}

static void sampler_forget(struct launch *launch)
{
	close(launch->front_fd);
	launch->front_fd = -1;
}

/* Waits until the sampler is ready; if it is not, says why, and leaves front_fd at -1 and the value empty. */
static void sampler_await_ready(struct launch *launch)
{
	struct pollfd poll_fd = {.fd = launch->front_fd, .events = POLLIN};
	struct front_message message;
	int ret;

	if (launch->front_fd < 0)
		return;
	do
		ret = poll(&poll_fd, 1, READY_MS);
	while (ret < 0 && errno == EINTR);
	if (ret == 0)
		notice_print("the sampler was not ready after %d s", READY_MS / 1000);
	else if (ret < 0 || message_read(launch->front_fd, &message))
		notice_print("the sampler died at its start");
	else if (message.kind == MESSAGE_FAILED)
		notice_print("%s", message.text);
	else if (message.kind == MESSAGE_READY)
		memcpy(launch->value, message.text, sizeof(launch->value));
	else
		notice_print("the sampler did not understand us");
	if (!launch->value[0])
		sampler_forget(launch);
}

static void sampler_tell(struct launch *launch, enum front_message_kind kind)
{
	if (launch->front_fd >= 0)
		message_write(launch->front_fd, kind, launch->command, launch->status, NULL);
}

/* The counters must be on COMMAND before it is told to go. */
static void events_await(struct launch *launch)
{
	struct pollfd poll_fd = {.fd = launch->front_fd, .events = POLLIN};
	struct front_message message;
	int ret;

	if (launch->front_fd < 0 || !launch->options->event_count)
		return;
	do
		ret = poll(&poll_fd, 1, READY_MS);
	while (ret < 0 && errno == EINTR);
	if (ret <= 0 || message_read(launch->front_fd, &message))
		notice_print("the sampler does not answer: no events are sampled");
	else if (message.kind == MESSAGE_FAILED)
		notice_print("%s", message.text);
}

/* In the child that becomes COMMAND. `channel` says when to go, and takes errno if exec fails. */
static void command_exec(const struct launch *launch, char **environment, int channel)
{
	char *const *argv = launch->options->operands;
	char go;
	int error;

	/* End of file instead of a word to go: the front was killed; COMMAND starts all the same. */
	if (read(channel, &go, 1) < 0)
		_exit(STATUS_CANNOT_EXEC);
	sigaction(SIGCHLD, &launch->child_action, NULL);
	sigprocmask(SIG_SETMASK, &launch->mask, NULL);
	execvpe(argv[0], argv, environment);
	error = errno;
	if (send(channel, &error, sizeof(error), MSG_NOSIGNAL) < 0)
		_exit(STATUS_CANNOT_EXEC);
	_exit(STATUS_NOT_FOUND);
}

/* Says why COMMAND cannot run; returns the exit status for it, as shells have it. */
static int command_refused(struct launch *launch, int error)
{
	const char *name = launch->options->operands[0];

	waitpid(launch->command, NULL, 0);
	sampler_tell(launch, MESSAGE_CANCELLED);
	if (error == ENOENT && !strchr(name, '/'))
		notice_print("%s: command not found", name);
	else
		notice_print("cannot run %s: %s", name, strerror(error));
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXEC;
}

/* Starts COMMAND. Returns 0 once its exec has succeeded, else the exit status to end with. */
static int command_start(struct launch *launch)
{
	char **made = launch->value[0] && !launch->options->no_heap
	    ? library_environment(environ, launch->options->library, launch->value)
	    : NULL;
	char **environment = made ? made : environ;
	int pair[2], error = 0;
	sigset_t all;
	ssize_t got;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &launch->mask);
	launch->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (launch->signal_fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0)
		launch->command = fork();
	if (launch->command < 0) {
		notice_print("cannot start %s: %s", launch->options->operands[0], strerror(errno));
		return STATUS_CANNOT_EXEC;
	}
	if (launch->command == 0) {
		close(pair[0]);
		command_exec(launch, environment, pair[1]);
	}
	close(pair[1]);
	sampler_tell(launch, MESSAGE_STARTED);
	events_await(launch);
	if (send(pair[0], "", 1, MSG_NOSIGNAL) < 0)
		error = 0; /* the child is dead already: waiting for it will tell */
	got = recv(pair[0], &error, sizeof(error), MSG_WAITALL);
	close(pair[0]);
	library_environment_free(made);
	return got == sizeof(error) ? command_refused(launch, error) : 0;
}

static bool is_job_stop(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* Stops this process by `number`, and returns when it is continued. */
static void stop_self(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	kill(getpid(), number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void reap(struct launch *launch)
{
	int status, stop = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (pid != launch->command)
			continue;
		launch->stopped = WIFSTOPPED(status);
		stop = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
		launch->ended = WIFEXITED(status) || WIFSIGNALED(status);
		if (launch->ended)
			launch->status = status;
	}
	if (is_job_stop(stop))
		stop_self(stop);
}

/* We were continued. If that was the shell's doing, COMMAND was too; if somebody meant our pid, it must be
 * told. */
static void pass_continue(struct launch *launch)
{
	struct pollfd poll_fd = {.fd = launch->signal_fd, .events = POLLIN};

	reap(launch);
	if (!launch->stopped)
		return;
	poll(&poll_fd, 1, CONTINUE_MS);
	reap(launch);
	if (launch->stopped && !launch->ended)
		kill(launch->command, SIGCONT);
}

static void pass_signal(struct launch *launch, const struct signalfd_siginfo *info)
{
	static const int from_terminal[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP, SIGWINCH};
	int number = (int)info->ssi_signo;

	for (size_t i = 0; i < sizeof(from_terminal) / sizeof(from_terminal[0]); i++) {
		if (number == from_terminal[i] && info->ssi_code == SI_KERNEL)
			return;
	}
	if (info->ssi_code == SI_QUEUE)
		sigqueue(
		    launch->command, number, (union sigval){.sival_ptr = (void *)(uintptr_t)info->ssi_ptr});
	else
		kill(launch->command, number);
}

/* Is this a signal by which a user who no longer wants to wait for the profile would end us? */
static bool is_impatience(int number)
{
	struct sigaction action;

	if (number != SIGINT && number != SIGQUIT && number != SIGTERM && number != SIGHUP)
		return false;
	return sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN;
}

static void on_signal(struct launch *launch, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	if (number == SIGCHLD)
		reap(launch);
	else if (!launch->ended && number == SIGCONT)
		pass_continue(launch);
	else if (!launch->ended)
		pass_signal(launch, info);
	else if (is_job_stop(number))
		stop_self(number);
	else if (is_impatience(number))
		launch->done = true;
}

static void on_sampler(struct launch *launch)
{
	struct front_message message;
	int ret = message_read(launch->front_fd, &message);

	if (!ret && message.kind == MESSAGE_DONE) {
		launch->done = true;
	} else if (ret) {
		if (launch->ended)
			notice_print("the sampler died: its last profiles are missing");
		else
			notice_print("the sampler died; %s goes on without it", launch->options->operands[0]);
		sampler_forget(launch);
	}
}

/* One round of waiting; returns when something has been dealt with. */
static void supervise(struct launch *launch)
{
	struct pollfd polls[] = {
	    {.fd = launch->signal_fd, .events = POLLIN},
	    {.fd = launch->front_fd, .events = POLLIN},
	};
	struct signalfd_siginfo info;

	if (poll(polls, 2, -1) < 0)
		return;
	/* Signals first: the kernel hands out SIGINT before SIGCHLD, so that the Ctrl-C that ended COMMAND is
	 * not taken for impatience. */
	while (read(launch->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		bool had_ended = launch->ended;

		on_signal(launch, &info);
		if (launch->ended && !had_ended)
			sampler_tell(launch, MESSAGE_ENDED);
	}
	if (launch->front_fd >= 0 && polls[1].revents)
		on_sampler(launch);
}

static int library_prepare(struct options *options, char *path, size_t path_bytes)
{
	if (library_find(path, path_bytes)) {
		notice_print("%s is neither beside heaptap nor in %s", LIBRARY_NAME, HEAPTAP_LIBDIR);
		return -ENOENT;
	}
	if (!library_is_preloadable(path)) {
		notice_print(
		    "LD_PRELOAD cannot hold a path with a space, ':' or '$': install %s elsewhere", path);
		return -EINVAL;
	}
	options->library = path;
	return 0;
}

static void forecast(const struct options *options)
{
	const char *obstacle = program_obstacle(program_inspect(options->operands[0]));

	if (obstacle && options->verbosity >= 0)
		notice_print("%s %s; it runs, but its heap will not be seen", options->operands[0], obstacle);
}

static int front_run(struct launch *launch)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	int ret;

	sigaction(SIGCHLD, &action, &launch->child_action);
	sampler_await_ready(launch);
	if (!launch->value[0])
		notice_print("%s runs without being profiled", launch->options->operands[0]);
	ret = command_start(launch);
	if (ret)
		return ret;
	descriptors_drop(launch->signal_fd, launch->front_fd);
	while (!launch->ended || (launch->front_fd >= 0 && !launch->done))
		supervise(launch);
	return WIFSIGNALED(launch->status) ? STATUS_SIGNAL + WTERMSIG(launch->status)
	                                   : WEXITSTATUS(launch->status);
}

int launch_run(struct options *options)
{
	struct launch launch = {.options = options, .sampler = -1, .command = -1, .front_fd = -1};
	char library[PATH_MAX];

	gaps_fill();
	if (options->event_count && event_list_prepare(options))
		return STATUS_USAGE;
	if (options->pid)
		return observe_pid(options);
	if (!options->no_heap) {
		if (library_prepare(options, library, sizeof(library)))
			return STATUS_USAGE;
		forecast(options);
	}
	/* The sampler returns through main as the front does: the process ends in one place. */
	if (sampler_fork(&launch))
		return options->no_heap ? observe_run(options, launch.front_fd)
		                        : session_run(options, launch.front_fd);
	return front_run(&launch);
}
