/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front process of `heaptap record`: the process that the user's shell has started.
 *
 * The front forks the sampler into a session of its own, and starts COMMAND with the library preloaded. Then
 * it only stands in for COMMAND: it has the same process group and terminal, passes signals on, stops when
 * COMMAND stops, and returns COMMAND's exit status. It does no profiling. SIGKILL to the front ends COMMAND
 * too (signal_witness.h), while the sampler goes on until the profiles are written. But the front is not
 * COMMAND's parent: see command_parent.h.
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
#include "sampler/cmd/record/command_parent.h"
#include "sampler/cmd/record/front_message.h"
#include "sampler/cmd/record/inheritance.h"
#include "sampler/cmd/record/installed_program.h"
#include "sampler/cmd/record/notify_relay.h"
#include "sampler/cmd/record/sampler_timeout.h"
#include "sampler/cmd/record/signal_witness.h"
#include "sampler/inject/preload_check.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

struct front {
	const struct options *options;
	pid_t sampler, command;
	int socket_error; /* why the sampler has no control socket, as -errno; 0: it has one */
	pid_t supervisor; /* our parent */
	int front_fd;     /* to the sampler; -1: the sampler is gone */
	int signal_fd;
	struct signal_witness witness;
	struct command_parent parent;
	int command_fd; /* COMMAND's pidfd, or -errno */
	bool estranged; /* the parent was killed: COMMAND's end is found by looks, its status stays unknown */
	struct notify_relay notify;       /* for COMMAND's messages to the service manager */
	struct pusher pusher;             /* with --push */
	struct web_server web;            /* with --listen */
	bool told_to_end;                 /* a SIGTERM has come */
	enum preload_check_kind forecast; /* whether our library can be preloaded into COMMAND */
	struct inheritance inheritance;   /* for COMMAND */
	bool ended, done;
	bool asked;                     /* COMMAND's parent has not answered yet */
	bool stopped;                   /* COMMAND, as last noted */
	bool continuing;                /* a SIGCONT to the front is being handled */
	bool continued;                 /* COMMAND got that SIGCONT too */
	struct sampler_timeout timeout; /* after COMMAND's end */
	int status; /* COMMAND's wait status, once it has ended, or FRONT_STATUS_UNKNOWN */
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

#endif
