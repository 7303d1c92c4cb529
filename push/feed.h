/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles come from: folders that are watched, or paths that `heaptap record` writes into a pipe. */
#ifndef PUSH_FEED_H
#define PUSH_FEED_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lane;

enum { FEED_FDS_MAX = 2 };

struct feed;

/* folders end with NULL; paths_fd is COMMAND_LINE_NO_FD or a pipe, which is closed with the feed. NULL:
 * out of memory. */
struct feed *feed_new(char *const *folders, int paths_fd);
void feed_free(struct feed *feed);

/* Fills in what to wait for; how many there are. */
size_t feed_fds(const struct feed *feed, struct pollfd fds[FEED_FDS_MAX]);

/* Nanoseconds until the folders are to be looked through, or files that were found there. */
uint64_t feed_due_ns(const struct feed *feed);

/* Offers what has appeared to all lanes, for a tenth of a second or one file: requests under way must not
 * come to their time limit meanwhile. fds: as filled in by feed_fds(), after waiting. */
void feed_read(struct feed *feed, const struct pollfd *fds, struct lane *lanes, size_t lane_count);

/* No path will come any more. */
bool feed_has_ended(const struct feed *feed);

#endif
