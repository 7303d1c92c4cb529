/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading another process's memory. A page of it may be a FUSE server's to deliver, or a userfaultfd's:
 * somebody else answers, perhaps never, and process_vm_readv(2) waits as long. So a forked child reads, and
 * we wait for the child for a while, asleep or computing. (/proc/PID/environ and cmdline need none: since
 * Linux 4.17 the kernel reads anonymous memory alone for them, and does not wait for a userfaultfd.)
 *
 * A child that hangs is killed and left behind; until it has ended, and for some seconds, the memory of its
 * process's user is not read again, so that nobody can make us wait all the time or fork without end. For
 * one thread. Calls of waitpid() elsewhere may meet such a child.
 */
#ifndef SAMPLER_LINUX_MEMORY_READER_H
#define SAMPLER_LINUX_MEMORY_READER_H

#include <stddef.h>
#include <sys/types.h>

typedef void memory_reader_fn(pid_t pid, void *result);

/* Calls `gather` in a child, with a copy of the result_bytes bytes of `result`, and takes over what it has
 * made of them. 0, or -errno with the result unchanged: -ETIMEDOUT: the memory did not come in time, or there
 * was too much to compute; -EBUSY: so it was a moment ago for this user, or for too many users; those of a
 * fork, or of a process that does not exist. */
int memory_reader_run(memory_reader_fn *gather, pid_t pid, void *result, size_t result_bytes);

#endif
