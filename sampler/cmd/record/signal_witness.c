/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/signal_witness.h"

#include "pprof/text/clock.h"
#include "sampler/core/descriptors.h"
#include "sampler/linux/pidfd.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	LIST_MS = 50, /* a sender needs so long to signal all processes of a unit */
	LOOK_MS = 2,
};

static uint64_t bit(int number)
{
	return number > 0 && number <= 64 ? UINT64_C(1) << (number - 1) : 0;
}

/* Signals stay pending until the front asks, so it does not matter when the witness gets a CPU. */
static _Noreturn void testify(int channel, pid_t command, int command_fd)
{
	const struct timespec now = {0};
	sigset_t all;
	char question;

	prctl(PR_SET_NAME, "heaptap-witness");
	descriptors_drop((const int[]){channel, command_fd}, 2);
	close(STDERR_FILENO);
	sigfillset(&all);
	while (read(channel, &question, 1) == 1) {
		uint64_t seen = 0;
		siginfo_t info;
		int number;

		while ((number = sigtimedwait(&all, &info, &now)) > 0)
			seen |= info.si_code == SI_USER ? bit(number) : 0;
		if (send(channel, &seen, sizeof(seen), MSG_NOSIGNAL) != sizeof(seen))
			break;
	}
	if (pidfd_holds_pid(command_fd))
		kill(command, SIGKILL);
	_exit(0);
}

void signal_witness_start(struct signal_witness *witness, pid_t command, int command_fd)
{
	int pair[2];
	pid_t pid;

	*witness = (struct signal_witness){.pid = -1, .fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return;
	pid = fork();
	if (pid == 0)
		testify(pair[1], command, command_fd);
	close(pair[1]);
	if (pid > 0)
		*witness = (struct signal_witness){.pid = pid, .fd = pair[0]};
	else
		close(pair[0]);
}

static void ask(struct signal_witness *witness)
{
	uint64_t seen;

	if (send(witness->fd, "?", 1, MSG_NOSIGNAL) == 1 &&
	    recv(witness->fd, &seen, sizeof(seen), MSG_WAITALL) == sizeof(seen)) {
		witness->seen |= seen;
		return;
	}
	witness->pid = -1; /* it was killed */
}

bool signal_witness_saw(struct signal_witness *witness, int number)
{
	const uint64_t end_ns = clock_now_ns() + LIST_MS * UINT64_C(1000000);

	for (;;) {
		bool last = clock_now_ns() >= end_ns;

		if (witness->pid > 0)
			ask(witness);
		if (witness->seen & bit(number)) {
			witness->seen &= ~bit(number);
			return true;
		}
		if (last || witness->pid < 0)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
	}
}
