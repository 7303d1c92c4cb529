/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front process of `heaptap record`: the process that the user's shell has started.
 *
 * The front forks the sampler into a session of its own, and starts COMMAND with the library preloaded. Then
 * it only stands in for COMMAND: it has the same process group and terminal, passes signals on, stops when
 * COMMAND stops, and returns COMMAND's exit status. It does no profiling. SIGKILL to the front ends COMMAND
 * too (front_signals.c), while the sampler goes on until the profiles are written. But the front is not
 * COMMAND's parent: see front_command.c.
 *
 * The sampler is entered as session_run(options, front_fd) (sampler/cmd/record/session.h) in a process with
 *   - its own session, stdin and stdout on /dev/null, stderr as inherited, and no other descriptor than
 *     front_fd;
 *   - SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP and SIGPIPE ignored, SIGCHLD at its default, an
 *     empty mask;
 *   - options->library set.
 * Its return value becomes the sampler's exit status, which is not used.
 */
#ifndef SAMPLER_CMD_RECORD_FRONT_H
#define SAMPLER_CMD_RECORD_FRONT_H

#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/front_message.h"
#include "sampler/cmd/record/inheritance.h"
#include "sampler/cmd/record/installed_program.h"
#include "sampler/cmd/record/notify_relay.h"
#include "sampler/inject/preload_check.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

/* A process of ours that tells whether a signal was sent to the front alone (front_signals.c). */
struct front_witness {
	pid_t pid;     /* -1: there is none, or it does not answer */
	int fd;        /* to the witness; never closed, since its end of file means the front's end */
	uint64_t seen; /* bit n - 1: the witness received signal n, and the front did not ask for n yet */
};

/* heaptap-parent, the process between the front and COMMAND (front_command.c). */
struct front_parent {
	pid_t pid; /* -1: it has been reaped, or never existed */
	int fd;    /* to read its messages from; -1: all were read */
};

/*
 * How long the front waits, after COMMAND's end, for a sampler that says nothing. A sampler that works sends
 * FRONT_MESSAGE_ALIVE once a second. A sampler that was stopped, or hangs in a file system, sends nothing.
 * Then the user is told so, more and more rarely, and after a minute the front does not wait any longer.
 * Pure.
 *
 * Only the time counts in which the front itself could run: while a whole container is frozen, the sampler
 * cannot speak either. So the silence is the sum of the times between looks, and no such time counts for more
 * than it takes on a busy machine.
 */
struct front_timeout {
	uint64_t looked_ns; /* the last look or restart */
	uint64_t silent_ns; /* for how long the sampler had been silent by then */
	uint64_t told_ns;   /* the same when the user was told last; 0: not told */
};

enum front_timeout_state {
	FRONT_TIMEOUT_NOT_YET,
	FRONT_TIMEOUT_TELL, /* tell the user, and not again until the silence is twice as long */
	FRONT_TIMEOUT_OVER,
};

struct front {
	const struct options *options;
	pid_t sampler, command;
	int socket_error; /* why the sampler has no control socket, as -errno; 0: it has one */
	pid_t supervisor; /* our parent */
	int front_fd;     /* to the sampler; -1: the sampler is gone */
	int signal_fd;
	struct front_witness witness;
	struct front_parent parent;
	int command_fd; /* COMMAND's pidfd, or -errno */
	bool estranged; /* the parent was killed: COMMAND's end is found by looks, its status stays unknown */
	struct notify_relay notify;       /* for COMMAND's messages to the service manager */
	struct pusher pusher;             /* with --push */
	struct web_server web;            /* with --listen */
	bool told_to_end;                 /* a SIGTERM has come */
	enum preload_check_kind forecast; /* whether our library can be preloaded into COMMAND */
	struct inheritance inheritance;   /* for COMMAND */
	bool ended, done;
	bool asked;                   /* COMMAND's parent has not answered yet */
	bool stopped;                 /* COMMAND, as last noted */
	bool continuing;              /* a SIGCONT to the front is being handled */
	bool continued;               /* COMMAND got that SIGCONT too */
	struct front_timeout timeout; /* after COMMAND's end */
	int status;                   /* COMMAND's wait status, once it has ended, or FRONT_STATUS_UNKNOWN */
	char value[FRONT_MESSAGE_TEXT_BYTES]; /* of COMMAND's variable HEAPTAP; "": COMMAND is not profiled */
};

enum { FRONT_STATUS_UNKNOWN = -1 };

void front_tell_sampler(struct front *front, enum front_message_kind kind);

/* The sampler is gone, or is not to be heard any more. */
void front_forget_sampler(struct front *front);

/* Starts COMMAND. Returns 0 once its exec has succeeded, else the exit status to end with. */
int front_command_start(struct front *front);

/* Executes COMMAND in place of this process, without profiling it. No other process is needed then, so
 * COMMAND starts even if the kernel refuses to fork. The front's own processes end first, so they take
 * nothing from COMMAND. Logs `why`, if it is not NULL. If the exec fails, returns the exit status to end
 * with. */
int front_command_become(struct front *front, const char *why);

/* Notes what has changed in the states of our children and of COMMAND. */
void front_reap(struct front *front);

/* Notes that COMMAND has ended. It is sent no more signals. */
void front_note_end(struct front *front, int status);

/* Handles a signal to the front: see front_signals.c. */
void front_on_signal(struct front *front, const struct signalfd_siginfo *info);

/* ---- front_signals.c: the witness */

/* Forks the witness, which ends with the front: then it kills COMMAND, unless command_fd (COMMAND's pidfd)
 * says that COMMAND has ended. Call it with all signals blocked. If the fork fails, each signal counts as
 * sent to the front alone, and COMMAND is not killed. */
void front_witness_start(struct front_witness *witness, pid_t command, int command_fd);

/* ---- front_command.c: COMMAND's parent */

enum { FRONT_PARENT_ANSWER = -1 }; /* no status that wait(2) gives */

/* Reads the next change of COMMAND's state, as wait(2) gives it, or FRONT_PARENT_ANSWER. False if there is
 * none now. The kernel gives COMMAND's pid to no other process before front_parent_end(). */
bool front_parent_read(struct front_parent *parent, int *status);

/* Asks the parent to look at COMMAND. The parent answers with FRONT_PARENT_ANSWER behind all changes that
 * it has seen. False if there will be no answer. */
bool front_parent_ask(const struct front_parent *parent);

/* Tells the parent to end. Its messages can still be read. SIGCHLD comes when it has ended. */
void front_parent_end(const struct front_parent *parent);

/* ---- front.c: the wait for the sampler */

/* The sampler has said something, or the wait for it begins. now_ns, here and below: monotonic. */
void front_timeout_restart(struct front_timeout *timeout, uint64_t now_ns);

/* The sampler has said nothing: what is to be done? Call it about once a second, or more often. */
enum front_timeout_state front_timeout_look(struct front_timeout *timeout, uint64_t now_ns);

#endif
