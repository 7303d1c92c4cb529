/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles come from: folders that are watched, or paths that `heaptap record` writes into a pipe. */
#ifndef PUSH_SOURCE_H
#define PUSH_SOURCE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target_queue;

enum { SOURCE_FDS_MAX = 2 };

struct source;

/* folders ends with NULL. paths_fd is COMMAND_LINE_NO_FD, or a pipe that is closed with the source. NULL if
 * there is no memory. */
struct source *source_new(char *const *folders, int paths_fd);
void source_free(struct source *source);

/* Fills in what to wait for. Returns the number of descriptors. */
size_t source_fds(const struct source *source, struct pollfd fds[SOURCE_FDS_MAX]);

/* Nanoseconds until the folders are to be looked through, or files that were found there. */
uint64_t source_due_ns(const struct source *source);

/* Offers what has appeared to all queues, for a tenth of a second or one file: requests under way must not
 * come to their time limit meanwhile. fds: as filled in by source_fds(), after waiting. */
void source_read(
    struct source *source, const struct pollfd *fds, struct target_queue *queues, size_t queue_count);

/* No path will come any more. */
bool source_has_ended(const struct source *source);

#endif
