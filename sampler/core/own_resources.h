/* SPDX-License-Identifier: Apache-2.0 */
/* What this process itself uses, what the kernel allows it, and which descriptors it has. */
#ifndef SAMPLER_CORE_OWN_RESOURCES_H
#define SAMPLER_CORE_OWN_RESOURCES_H

#include <stddef.h>
#include <stdint.h>

/* Removes the limits of file sizes, memory and stack if we may; if not, raises the soft limits to the hard
 * limits. (A region is a file of up to 330 MB, most of it holes.) Raises the soft limit of descriptors to the
 * hard limit. As root it also asks the kernel's OOM killer to prefer other processes. */
void own_resources_raise_limits(void);

/* The CPU time of this process. The children that write profiles take theirs whatever the sampling period is,
 * and the kernel reports all of it at the moment when a child is waited for. */
uint64_t own_resources_cpu_ns(void);

/* The same with the children that were waited for. */
uint64_t own_resources_cpu_with_children_ns(void);

uint64_t own_resources_rss_bytes(void);

/* Without shared memory, which the regions are. */
uint64_t own_resources_private_bytes(void);

/*
 * ---- descriptors beside COMMAND: none has the numbers 0 to 2, none of COMMAND's stays open
 *
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
