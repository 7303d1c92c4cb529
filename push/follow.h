/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap push --follow`: the service, and `heaptap record --push`. One thread waits for files that appear
 * and for servers that answer; what the profiles are written by never waits for it.
 */
#ifndef PUSH_FOLLOW_H
#define PUSH_FOLLOW_H

struct command_line;

enum { FOLLOW_AGAIN = -1 };

/* Runs until a signal, or, with paths from a descriptor, until their end; then it sends what is left for ten
 * seconds at most. Returns the exit status; or FOLLOW_AGAIN after SIGHUP: to be called again with the same
 * words, so that the configuration is read again. */
int follow_run(struct command_line *line);

#endif
