/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the front's files share: nobody else looks inside.
 */
#ifndef SAMPLER_SESSION_FRONT_STATE_H
#define SAMPLER_SESSION_FRONT_STATE_H

#include "sampler/cli/options.h"
#include "sampler/loader/preload_check.h"
#include "sampler/session/command_parent.h"
#include "sampler/session/front_message.h"
#include "sampler/session/notify_relay.h"
#include "sampler/session/pusher.h"
#include "sampler/session/sampler_timeout.h"
#include "sampler/session/signal_witness.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

struct front {
	const struct options *options;
	pid_t self, sampler, command;
	pid_t supervisor; /* our parent */
	int front_fd;     /* to the sampler; -1 when it is gone */
	int signal_fd;
	struct signal_witness witness;
	struct command_parent parent;
	int command_fd; /* as pidfd_open_process() gives it; -errno */
	bool estranged; /* the parent was killed: COMMAND's end is looked for, its status unknown */
	struct notify_relay notify;       /* of COMMAND's messages to the service manager */
	struct pusher pusher;             /* with --push */
	int web_fd;                       /* with --listen: to heaptap-serve, which ends with it; -1 */
	bool told_to_end;                 /* a SIGTERM has come */
	enum preload_check_kind forecast; /* whether our library can be preloaded into COMMAND */
	int end_signal;                   /* PR_SET_PDEATHSIG, as we got it, for COMMAND; likewise: */
	int subreaper;                    /* PR_SET_CHILD_SUBREAPER */
	sigset_t mask;                    /* as we got it, for COMMAND */
	struct sigaction child_action;    /* likewise: an ignored SIGCHLD would keep us from waiting */
	bool ended, done;
	struct sampler_timeout timeout; /* of the sampler, after COMMAND's end */
	int status; /* wait status of COMMAND, once it has ended, or FRONT_STATUS_UNKNOWN */
	char value[FRONT_MESSAGE_TEXT_BYTES]; /* of HEAPTAP for COMMAND; empty: not profiled */
};

enum { FRONT_STATUS_UNKNOWN = -1 };

/* Learns of changes in the states of our children, and of COMMAND. */
void front_reap(struct front *front);

/* COMMAND has ended: no signal goes there any more. */
void front_note_end(struct front *front, int status);

/* Does with a signal that we got what it is for: see front_signals.c. */
void front_on_signal(struct front *front, const struct signalfd_siginfo *info);

#endif
