/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap completion bash|zsh|man: what `make install` makes from the tables of commands and options, so that
 * nothing drifts from what the parser knows: completions for two shells, and the manual page, whose prose
 * comes on standard input with lines `@OPTIONS command` and `@COMMANDS` where the tables go.
 */
#ifndef SAMPLER_CLI_COMPLETION_H
#define SAMPLER_CLI_COMPLETION_H

struct options;

/* The command. Returns the exit status. */
int completion_run(struct options *options);

#endif
