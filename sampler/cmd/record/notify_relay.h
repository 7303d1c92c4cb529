/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes COMMAND's messages to the service manager (sd_notify(3)) on as messages of the front.
 *
 * A manager believes only the main process of a unit (NotifyAccess=main), and that is the front. So it would
 * refuse READY=1 from COMMAND, and the unit's start would time out. Therefore COMMAND gets a socket of the
 * front as NOTIFY_SOCKET. The socket's name is abstract, so that COMMAND reaches it in a chroot and as
 * another user. Descriptors are passed on too, for the manager's store and its barriers. MAINPID= and
 * its kind are not: the unit lasts as long as the front.
 */
#ifndef SAMPLER_CMD_RECORD_NOTIFY_RELAY_H
#define SAMPLER_CMD_RECORD_NOTIFY_RELAY_H

#include <sys/types.h>
#include <sys/un.h>

struct notify_relay {
	int fd;         /* from COMMAND; -1: there is no manager */
	int manager_fd; /* connected */
	char name[sizeof("@ffffffffff")];
};

/* Without NOTIFY_SOCKET, or if no socket can be made, fd becomes -1, and COMMAND's environment stays as it
 * is. */
void notify_relay_open(struct notify_relay *relay);

/* In the child that becomes COMMAND: changes NOTIFY_SOCKET. */
void notify_relay_environment(const struct notify_relay *relay);

enum { NOTIFY_RELAY_AT_ONCE = 64 /* messages */ };

/* Passes on messages that have come from COMMAND, or from processes of our user or root. At most
 * NOTIFY_RELAY_AT_ONCE, so that the caller comes to its other work; fd stays readable if there are more. */
void notify_relay_pass(const struct notify_relay *relay, pid_t command);

#endif
