/* SPDX-License-Identifier: Apache-2.0 */
/* The build id of the library that a process has mapped. */
#ifndef SAMPLER_DAEMON_LIBRARY_ID_H
#define SAMPLER_DAEMON_LIBRARY_ID_H

#include <sys/types.h>

enum { LIBRARY_ID_BYTES = 41 };

/* In hexadecimal digits; "": it has none that we may read. What was found last is remembered, by file. */
void library_id_read(pid_t pid, char id[LIBRARY_ID_BYTES]);

#endif
