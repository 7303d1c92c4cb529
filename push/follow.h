/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap push --follow`: the service, and `heaptap record --push`. One thread waits for files that appear
 * and for servers that answer; what the profiles are written by never waits for it.
 */
#ifndef PUSH_FOLLOW_H
#define PUSH_FOLLOW_H

struct command_line;

enum { FOLLOW_AGAIN = -1 };

/* Until a signal (FOLLOW_AGAIN after SIGHUP: begin again with the same words, to read the
 * configuration), or, with paths from a descriptor, its end and what was to be sent, ten seconds at
 * most. Returns the exit status. */
int follow_run(struct command_line *line);

#endif
