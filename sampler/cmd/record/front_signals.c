/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the front does with signals, the difficult part of standing in for another process:
 *
 *   - Until COMMAND exists, the front behaves as any program: Ctrl-C ends it, and the sampler reads its end
 *     of file.
 *   - From then on every signal is blocked here, and read from a signalfd. The front never installs a
 *     handler. So COMMAND inherits the dispositions that the front got; the child restores the mask before
 *     the exec.
 *   - A signal of the terminal goes to the whole process group: COMMAND has it already. Its si_code is
 *     SI_KERNEL. A signal that kill(2) has sent to the front has SI_USER, SI_QUEUE or SI_TKILL. So has one
 *     that kill(2) has sent to the whole group, or a service manager to the whole unit: the witness
 *     tells the two cases apart.
 *   - The snapshot signal is for heaptap: it goes to the sampler and never to COMMAND, and it ends no
 *     process, not even before COMMAND exists.
 *   - SIGCHLD tells that our own parent has ended (front.c asks for that). Then COMMAND gets another parent,
 *     as it would without us, and the front goes on to stand for it.
 *   - When the terminal stops COMMAND, the shell waits until the front stops too. So it does, by the same
 *     signal. SIGSTOP is not mirrored: tools send it to one pid, and would not continue the front later.
 */
#include "sampler/cmd/record/front.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/core/own_resources.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the witness */

/*
 * The witness tells whether a signal was sent to the front alone or to the whole group or unit.
 *
 * The front passes its signals on to COMMAND. But COMMAND has already received a signal that kill(2) has sent
 * to the process group, or a service manager to each process of the unit; and a second SIGINT makes a server
 * exit without saving. The front cannot tell the two cases apart. So there is a witness: a process of ours in
 * the same group and unit that no user has a reason to signal. If the witness received the signal too, it was
 * sent to the group or unit.
 *
 * The same holds for SIGKILL. The front stands for COMMAND: so when the front ends before COMMAND, the
 * witness kills COMMAND. If the witness was killed as well, the signal was sent to the group or unit, and has
 * reached COMMAND. The witness has COMMAND's pidfd, so that it kills no other process.
 *
 * PR_SET_PDEATHSIG in COMMAND would be simpler. But COMMAND can see it and set its own, loses it when it
 * gains privileges, and would be killed when its parent ends on purpose (heaptap-parent). The sampler could
 * kill COMMAND, but it may be stopped or busy for a second, and cannot tell whom the signal was sent to.
 */

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

void front_witness_start(struct front_witness *witness, pid_t command, int command_fd)
{
	int pair[2];
	pid_t pid;

	*witness = (struct front_witness){.pid = -1, .fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return;
	pid = fork();
	if (pid == 0)
		testify(pair[1], command, command_fd);
	close(pair[1]);
	if (pid > 0)
		*witness = (struct front_witness){.pid = pid, .fd = pair[0]};
	else
		close(pair[0]);
}

static void ask_witness(struct front_witness *witness)
{
	uint64_t seen;

	if (send(witness->fd, "?", 1, MSG_NOSIGNAL) == 1 &&
	    recv(witness->fd, &seen, sizeof(seen), MSG_WAITALL) == sizeof(seen)) {
		witness->seen |= seen;
		return;
	}
	witness->pid = -1; /* it was killed */
}

/* Has the witness received this signal too since the last call? Waits a moment, for a sender that signals a
 * list of processes one after the other. */
static bool witness_saw(struct front_witness *witness, int number)
{
	const uint64_t end_ns = clock_now_ns() + LIST_MS * UINT64_C(1000000);

	for (;;) {
		bool last = clock_now_ns() >= end_ns;

		if (witness->pid > 0)
			ask_witness(witness);
		if (witness->seen & bit(number)) {
			witness->seen &= ~bit(number);
			return true;
		}
		if (last || witness->pid < 0)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
	}
}

/* ---- stops and ends */

#define ANSWER_MS 1000 /* heaptap-parent answers at once, unless it is stopped */

static bool is_job_stop(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/*
 * Stops this process by `number`, and returns when it is continued.
 *
 * The signal is not blocked from the moment when the process is continued until it runs. Another such signal
 * stops it at once then, before COMMAND; and if kill(2) has sent it to this process only, it is not passed
 * on. This gap cannot be closed: a process that a signal can stop has that signal unblocked, and has no
 * handler that could run. SIGSTOP could be used, with all other signals blocked. But shells show which signal
 * stopped a process, and "Stopped (signal)" is not what they would show for COMMAND.
 */
static void stop_self(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	kill(getpid(), number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void front_note_end(struct front *front, int status)
{
	front->ended = true;
	front->status = status;
	front_parent_end(&front->parent);
}

static bool is_continue_pending(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

/* Notes a change of COMMAND's state. Returns the signal that has stopped COMMAND, or 0. */
static int note_status(struct front *front, int status)
{
	const bool stopped = WIFSTOPPED(status);

	if (front->ended)
		return 0;
	if (WIFEXITED(status) || WIFSIGNALED(status))
		front_note_end(front, status);
	/* A process that stops twice was continued in between: the kernel tells of the last change only. */
	if ((WIFCONTINUED(status) || (stopped && front->stopped)) &&
	    (front->continuing || is_continue_pending()))
		front->continued = true;
	front->stopped = stopped;
	return stopped ? WSTOPSIG(status) : 0;
}

static int read_parent(struct front *front)
{
	int status, stop = 0;

	while (front_parent_read(&front->parent, &status)) {
		if (status == FRONT_PARENT_ANSWER)
			front->asked = false;
		else
			stop = note_status(front, status);
	}
	return stop;
}

/* The parent has ended: we have told it to, or it was killed. If it was killed, COMMAND may not be our
 * child. */
static void on_parent_ended(struct front *front)
{
	siginfo_t info;

	front->parent.pid = -1;
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	if (front->ended || waitid(P_PID, (id_t)front->command, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		return;
	front->estranged = true;
	log_line("heaptap-parent was killed: the exit status of %s will not be known",
	    front->options->operands[0]);
}

void front_reap(struct front *front)
{
	int status, stop = read_parent(front);
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		bool over = WIFEXITED(status) || WIFSIGNALED(status);

		if (pid == front->sampler && over) /* it may also have been stopped, or continued */
			front->sampler = -1;
		if (pid == front->witness.pid && over)
			front->witness.pid = -1;
		if (pid == front->parent.pid && over) {
			stop = read_parent(front);
			on_parent_ended(front);
		}
		if (pid == front->command)
			stop = note_status(front, status);
	}
	if (is_job_stop(stop)) {
		stop_self(stop);
		/* The stop has discarded each SIGCONT before it. What was noted of it counts no more. */
		if (is_continue_pending())
			front->continuing = false;
		front->continued = front->continued && front->continuing;
	}
}

/* ---- signals to the front */

/* If our own parent has ended, COMMAND's parent must end too. */
static void look_at_supervisor(struct front *front)
{
	if (getppid() == front->supervisor)
		return;
	front->supervisor = getppid();
	if (front->ended || front->parent.pid < 0)
		return;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	front_parent_end(&front->parent);
}

static void send_signal(const struct front *front, int number)
{
	if (!front->estranged || pidfd_holds_pid(front->command_fd))
		kill(front->command, number);
}

/* Notes what state COMMAND is in at this moment. */
static void catch_up(struct front *front)
{
	front->asked = front_parent_ask(&front->parent);
	do {
		struct pollfd poll_fd = {.fd = front->parent.fd, .events = POLLIN};

		if (front->asked && poll(&poll_fd, 1, ANSWER_MS) <= 0)
			break;
		front_reap(front);
	} while (front->asked && front->parent.fd >= 0);
}

/*
 * The front was continued. If the whole group was, as the shell does it, so was COMMAND; if only the front
 * was, the front passes SIGCONT on. That COMMAND is stopped does not tell which: COMMAND may have been
 * continued and stopped again since, by a second Ctrl-Z or by a read of the terminal in the background. So
 * COMMAND's changes of state decide. Our own processes in the group may have been stopped too, and are
 * continued here.
 */
static void pass_continue(struct front *front)
{
	if (front->parent.pid > 0)
		kill(front->parent.pid, SIGCONT);
	if (front->witness.pid > 0)
		kill(front->witness.pid, SIGCONT);
	front->continuing = true;
	catch_up(front);
	if (!front->ended && front->continuing && !front->continued && proc_state(front->command) == 'T') {
		send_signal(front, SIGCONT);
		catch_up(front); /* so that this change is not taken for another one later */
	}
	if (front->continuing) /* else the front has stopped meanwhile, and another SIGCONT waits */
		front->continuing = front->continued = false;
}

static void pass_signal(struct front *front, const struct signalfd_siginfo *info)
{
	static const int from_terminal[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP, SIGWINCH};
	int number = (int)info->ssi_signo;

	for (size_t i = 0; i < sizeof(from_terminal) / sizeof(from_terminal[0]); i++) {
		if (number == from_terminal[i] && info->ssi_code == SI_KERNEL)
			return;
	}
	if (info->ssi_code == SI_USER && witness_saw(&front->witness, number))
		return;
	if (info->ssi_code == SI_QUEUE && !front->estranged)
		sigqueue(
		    front->command, number, (union sigval){.sival_ptr = (void *)(uintptr_t)info->ssi_ptr});
	else
		send_signal(front, number);
}

/* Passes a signal on as a signal, not as a message: that never blocks, and many signals become one. */
static void pass_to_sampler(const struct front *front, int number)
{
	if (front->front_fd >= 0 && front->sampler > 0)
		kill(front->sampler, number);
}

/* Does the signal mean that the user does not want to wait for the profile? The first SIGTERM does not: it
 * may have been sent to the whole unit, and have ended COMMAND a moment earlier. */
static bool is_impatience(const struct front *front, int number)
{
	struct sigaction action;

	if (number != SIGINT && number != SIGQUIT && number != SIGTERM && number != SIGHUP)
		return false;
	if (number == SIGTERM && !front->told_to_end)
		return false;
	return sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN;
}

void front_on_signal(struct front *front, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	if (number == SIGCHLD) {
		front_reap(front);
		look_at_supervisor(front);
	} else if (number == front->options->record.heap.signal) {
		pass_to_sampler(front, number);
	} else if (!front->ended && number == SIGCONT) {
		pass_continue(front);
	} else if (!front->ended) {
		pass_signal(front, info);
	} else if (is_job_stop(number)) {
		stop_self(number);
	} else if (is_impatience(front, number)) {
		front->done = true;
	}
	front->told_to_end = front->told_to_end || number == SIGTERM;
}
