/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says of the daemon, and of what makes programs load its library. */
#ifndef SAMPLER_DOCTOR_DOCTOR_DAEMON_H
#define SAMPLER_DOCTOR_DOCTOR_DAEMON_H

struct findings;

/* Does one run, and what does it refuse to profile? target: a process to be looked for among the daemon's,
 * by its pid; NULL: none. socket as for control_client_connect. */
void doctor_daemon_examine(struct findings *findings, const char *socket, const char *target);

/* /etc/ld.so.preload, and the units with our drop-in. Says nothing if nothing is enabled. */
void doctor_daemon_examine_enabled(struct findings *findings);

#endif
