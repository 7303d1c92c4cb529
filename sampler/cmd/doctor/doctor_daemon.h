/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says of the daemon, and of the units that load its library. */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_DAEMON_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_DAEMON_H

struct findings;

/* Does a daemon run, and what does it refuse to profile? target: the pid of a process to look for in the
 * daemon's list, or NULL. socket: as for control_client_connect. */
void doctor_daemon_examine(struct findings *findings, const char *socket, const char *target);

/* /etc/ld.so.preload, and the units with our drop-in. Says nothing if nothing is enabled. */
void doctor_daemon_examine_enabled(struct findings *findings);

#endif
