/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of our own processes beside COMMAND: none has the numbers 0 to 2, none of COMMAND's stays
 * open. */
#ifndef SAMPLER_CORE_DESCRIPTORS_H
#define SAMPLER_CORE_DESCRIPTORS_H

#include <stddef.h>

/*
 * Descriptors 0 to 2 may be closed when we start. A file that we open must not get one of these numbers:
 * COMMAND and we would take it for stdin, stdout or stderr, and a line of the log would go into the shared
 * memory of a target. So this opens something on each free number, until an exec closes it again. It can
 * neither be read nor written: a write to a closed standard output stays an error.
 */
void descriptors_fill_gaps(void);

/* Closes every inherited descriptor except stderr and `kept` (negative numbers are passed over). stdin and
 * stdout become /dev/null. Otherwise the reader of a pipe from COMMAND would wait for the end of our
 * process too. */
void descriptors_drop(const int *kept, size_t count);

#endif
