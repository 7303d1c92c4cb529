/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of descriptors that the sampler waits for.
 *
 * The kernel drops a descriptor from the set only when its last copy is closed, and a forked child has
 * copies. So a descriptor must be removed before it is closed: else the set reports its hang-up until the
 * last child ends.
 */
#ifndef SAMPLER_LINUX_EPOLL_SET_H
#define SAMPLER_LINUX_EPOLL_SET_H

/* Adds fd: the set waits for its input from now on. Returns 0 or -errno. */
int epoll_set_add(int epoll_fd, int fd);

/* Removes fd, which need not be in the set. */
void epoll_set_remove(int epoll_fd, int fd);

/* Removes fd and closes it. */
void epoll_set_close(int epoll_fd, int fd);

#endif
