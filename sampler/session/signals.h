/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of a session, which arrive at a descriptor:
 *
 *   SIGCHLD                    a writer has ended
 *   the user's (SIGUSR1)       somebody wants a snapshot of every process
 *   SIGTERM                    with a front: the unit ends (a service manager sends it to each process)
 *   SIGINT, SIGTERM, SIGHUP    in the foreground: stop; one that we were started to ignore stays ignored
 *
 * The signals of users that ask for nothing end no session.
 */
#ifndef SAMPLER_SESSION_SIGNALS_H
#define SAMPLER_SESSION_SIGNALS_H

enum signals_role {
	SIGNALS_FRONT,      /* COMMAND has a front, which meets the terminal's */
	SIGNALS_FOREGROUND, /* we are what the user started */
	SIGNALS_ADOPTED,    /* ends by SIGTERM as any program does: its target can be adopted again */
};

/* Blocks the signals and opens the descriptor, which does not block. snapshot: the user's signal, 0 for none.
 * Returns it, or -1 with errno. */
int signals_open(enum signals_role role, int snapshot);

/* The next that has arrived; 0: there is none. */
int signals_read(int fd);

#endif
