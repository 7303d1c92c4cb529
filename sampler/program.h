/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at COMMAND's file before it starts: will the loader take our library into it? What we find is a
 * forecast for the user, never a reason not to run COMMAND.
 */
#ifndef SAMPLER_PROGRAM_H
#define SAMPLER_PROGRAM_H

#include <stddef.h>

enum program_kind {
	PROGRAM_DYNAMIC, /* a loader will read LD_PRELOAD, as far as can be told */
	PROGRAM_UNKNOWN, /* not found, unreadable, no ELF file: the exec will tell */
	PROGRAM_STATIC,  /* no loader: nothing can be preloaded */
	/* setuid, setgid or file capabilities that take effect: the loader ignores LD_PRELOAD */
	PROGRAM_PRIVILEGED,
	PROGRAM_FOREIGN, /* another architecture or word size: the loader cannot load our library */
};

/* `command` is looked up in PATH as execvp does; a script's interpreter is followed. */
enum program_kind program_inspect(const char *command);

/* A clause for the user, such as "is statically linked", or NULL for DYNAMIC and UNKNOWN. */
const char *program_obstacle(enum program_kind kind);

#endif
