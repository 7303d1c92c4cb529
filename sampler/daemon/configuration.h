/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration in force, the store that it names, and reading it again while the daemon runs. */
#ifndef SAMPLER_DAEMON_CONFIGURATION_H
#define SAMPLER_DAEMON_CONFIGURATION_H

struct daemon;

/* Reads the configuration for the first time. store: --store; NULL: as configured. 0, or -errno with a line
 * on stderr. */
int configuration_open(struct daemon *daemon, const char *store);
void configuration_close(struct daemon *daemon);

/* Opens the store, and reads the files beside the profiles: the session's identity, the executables that
 * are denied. A store that cannot be written is no error: the next snapshot tries again. 0 or -ENOMEM. */
int configuration_open_store(struct daemon *daemon);

/* Reads the configuration again, and asks the new rules about every process. After an error, which is
 * logged, the old configuration stays in force. */
void configuration_reload(struct daemon *daemon);

#endif
