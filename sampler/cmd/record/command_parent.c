/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/command_parent.h"

#include "sampler/core/descriptors.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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
			tell(channel, COMMAND_PARENT_ANSWER);
		poll(polls, 2, -1);
		asked = polls[0].revents && recv(channel, &question, 1, MSG_DONTWAIT) == 1;
	} while (asked || !polls[0].revents);
	if (told) /* else COMMAND's next parent hears of its end */
		waitpid(command, NULL, WNOHANG);
	_exit(0);
}

pid_t command_parent_fork(struct command_parent *parent, int signal_fd, int snapshot_signal)
{
	const pid_t front = getpid();
	int pair[2], command;

	*parent = (struct command_parent){-1, -1};
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

bool command_parent_read(struct command_parent *parent, int *status)
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

bool command_parent_ask(const struct command_parent *parent)
{
	return parent->fd >= 0 && send(parent->fd, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

void command_parent_end(const struct command_parent *parent)
{
	if (parent->fd >= 0)
		shutdown(parent->fd, SHUT_WR);
}
