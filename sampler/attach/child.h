/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a child process that a target may hold up: it may stop it, or never answer what it asks of the
 * target's files and memory. Nobody waits for such a child without limit. */
#ifndef SAMPLER_ATTACH_CHILD_H
#define SAMPLER_ATTACH_CHILD_H

#include <stdint.h>
#include <sys/types.h>

/* Waits for so long that it ends by itself, then kills it. Who cannot even be killed, because a file system
 * does not answer, is left to whoever waits for any child, or to init. */
void child_end(pid_t child, uint64_t patience_ns);

#endif
