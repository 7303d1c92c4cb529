/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COMMAND's messages to the service manager (sd_notify(3)), passed on as ours.
 *
 * A manager believes the main process of a unit (NotifyAccess=main), and that is the front: READY=1 of
 * COMMAND would be refused, and the unit's start would time out. So COMMAND gets a socket of the front's as
 * NOTIFY_SOCKET. Its name is abstract: COMMAND reaches it in a chroot and as another user. Descriptors come
 * along, for the manager's store and for its barriers. MAINPID= does not: the unit lasts as long as we do.
 */
#ifndef SAMPLER_SESSION_NOTIFY_RELAY_H
#define SAMPLER_SESSION_NOTIFY_RELAY_H

#include <sys/types.h>
#include <sys/un.h>

struct notify_relay {
	int fd;         /* from COMMAND; -1: there is no manager */
	int manager_fd; /* connected */
	char name[sizeof("@ffffffffff")];
};

/* Without NOTIFY_SOCKET, or if no socket can be had, fd is -1, and COMMAND's environment stays as it is. */
void notify_relay_open(struct notify_relay *relay);

/* In the child that becomes COMMAND: changes NOTIFY_SOCKET, and WATCHDOG_PID if it was `front`. */
void notify_relay_environment(const struct notify_relay *relay, pid_t front);

enum { NOTIFY_RELAY_AT_ONCE = 64 /* messages */ };

/* Passes on what has come from COMMAND, and from others of our user and root: so much of it that the caller
 * comes to its other work. What is left keeps fd readable. */
void notify_relay_pass(const struct notify_relay *relay, pid_t command);

#endif
