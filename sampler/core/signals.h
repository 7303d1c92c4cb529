/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of a sampler, read from a descriptor:
 *
 *   SIGCHLD                    a writer has ended
 *   the user's (SIGUSR1)       request for a snapshot of every process
 *   SIGTERM                    with a front: the unit is stopped (a service manager sends it to each process)
 *   SIGINT, SIGTERM, SIGHUP    in the foreground: stop. A signal that we were started to ignore stays ignored
 *   SIGHUP                     to the daemon: read the configuration again
 *
 * SIGUSR1 and SIGUSR2 never end a sampler, even if they are not the snapshot signal.
 */
#ifndef SAMPLER_CORE_SIGNALS_H
#define SAMPLER_CORE_SIGNALS_H

enum signals_role {
	SIGNALS_FRONT,      /* COMMAND has a front, which handles the terminal's signals */
	SIGNALS_FOREGROUND, /* the user started this process */
	SIGNALS_DAEMON,     /* SIGHUP reads the configuration again; nothing is ignored */
	SIGNALS_STOPS,      /* as in the foreground, but no SIGCHLD: ptrace(2) makes one of every stop */
	SIGNALS_ADOPTED,    /* SIGTERM ends it as any program: its target can be adopted again */
};

/* Blocks the signals and opens a non-blocking descriptor for them. snapshot: the signal that requests one, 0
 * for none. Returns the descriptor, or -1 with errno. */
int signals_open(enum signals_role role, int snapshot);

/* The next signal that has arrived. 0 if there is none. */
int signals_read(int fd);

#endif
