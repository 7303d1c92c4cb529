/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of the processes beside COMMAND: ours do not get its numbers, its own do not stay open here. */
#ifndef SAMPLER_CORE_DESCRIPTORS_H
#define SAMPLER_CORE_DESCRIPTORS_H

#include <stddef.h>

/*
 * Descriptors 0 to 2 may be closed when we start. What we open must not get these numbers: COMMAND would take
 * it for its stdin, stdout or stderr, and so would we; a line of the log must not be written into a target's
 * shared memory. So the gaps are filled until an exec closes them again, with what can neither be read nor
 * written: standard output that is closed stays an error.
 */
void descriptors_fill_gaps(void);

/* Closes every inherited descriptor except stderr and `kept` (negative ones are passed over); stdin and
 * stdout become /dev/null. The reader of a pipe from COMMAND must not have to wait for us too. */
void descriptors_drop(const int *kept, size_t count);

#endif
