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

/* Nanoseconds until source_read() has something to do without a descriptor being ready. */
uint64_t source_due_ns(const struct source *source);

/* Offers new files to all queues. Returns after a tenth of a second, or after one file if that takes longer,
 * so that requests under way do not reach their time limit. fds: of source_fds(), after the wait. */
void source_read(
    struct source *source, const struct pollfd *fds, struct target_queue *queues, size_t queue_count);

/* Was the last path read? */
bool source_has_ended(const struct source *source);

#endif
