/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap push --follow`, the service, and `heaptap record --push`. One thread waits for new files and for
 * answers of servers. The sampler, which writes the files, never waits for this thread.
 */
#ifndef PUSH_FOLLOW_H
#define PUSH_FOLLOW_H

struct command_line;

enum { FOLLOW_AGAIN = -1 };

/* Runs until a signal comes. With paths from a descriptor it runs until the last path, and then sends what is
 * left, for ten seconds at most. Returns the exit status, or FOLLOW_AGAIN after SIGHUP: the caller starts the
 * program again with the same words, so that the configuration is read again. */
int follow_run(struct command_line *line);

#endif
