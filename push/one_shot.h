/* SPDX-License-Identifier: Apache-2.0 */
/* `heaptap push --to URL PROFILE...`: sends the named files, says which of them were not taken, and ends. */
#ifndef PUSH_ONE_SHOT_H
#define PUSH_ONE_SHOT_H

struct command_line;

/* Returns the exit status: 1 if a file was not delivered. */
int one_shot_run(struct command_line *line);

#endif
