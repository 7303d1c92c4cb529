/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of a session, which arrive at a descriptor:
 *
 *   SIGCHLD                    a writer has ended
 *   the user's (SIGUSR1)       request for a snapshot of every process
 *   SIGTERM                    with a front: the unit is stopped (a service manager sends it to each process)
 *   SIGINT, SIGTERM, SIGHUP    in the foreground: stop; one that we were started to ignore stays ignored
 *   SIGHUP                     to a daemon: read the configuration again
 *
 * SIGUSR1 and SIGUSR2 never end a session, also if they are not the snapshot signal.
 */
#ifndef SAMPLER_CORE_SIGNALS_H
#define SAMPLER_CORE_SIGNALS_H

enum signals_role {
	SIGNALS_FRONT,      /* COMMAND has a front, which handles the terminal's signals */
	SIGNALS_FOREGROUND, /* the user started this process */
	SIGNALS_DAEMON,     /* SIGHUP reads the configuration again; nothing is ignored */
	SIGNALS_STOPS,      /* likewise; those that stop alone: ptrace(2) makes a SIGCHLD of every stop */
	SIGNALS_ADOPTED,    /* ends by SIGTERM as any program does: its target can be adopted again */
};

/* Blocks the signals and opens a non-blocking descriptor for them. snapshot: the signal that requests one, 0
 * for none. Returns the descriptor, or -1 with errno. */
int signals_open(enum signals_role role, int snapshot);

/* The next that has arrived; 0: there is none. */
int signals_read(int fd);

#endif
