/* SPDX-License-Identifier: Apache-2.0 */
/* The program's arguments and environment, as the kernel laid them out: the libc may not have looked yet. */
#ifndef PRELOAD_ARGUMENTS_H
#define PRELOAD_ARGUMENTS_H

/* argv; NULL: it is not known. */
char **arguments_find(void);

/* The environment; NULL: it is not known. */
char **arguments_environment(void);

/* Writes argv, separated by blanks, into REGION_COMMAND_LINE_BYTES that are zero; the rest is cut. */
void arguments_write(char *area);

#endif
