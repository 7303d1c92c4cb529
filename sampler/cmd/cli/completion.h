/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap completion bash|zsh|fish|man: generates, for `make install`, completions for shells and the manual
 * page from the tables of commands and options, so that they always match the parser. The manual page's text
 * comes on standard input, with lines `@OPTIONS command` and `@COMMANDS` where the tables go. The
 * completions call `heaptap completion pids` for the processes that are profiled.
 */
#ifndef SAMPLER_CMD_CLI_COMPLETION_H
#define SAMPLER_CMD_CLI_COMPLETION_H

struct options;

/* The command. Returns the exit status. */
int completion_run(struct options *options);

#endif
