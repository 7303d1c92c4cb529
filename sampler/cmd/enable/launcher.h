/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that start a service's server with an environment of their own, such as pg_ctlcluster. What the
 * unit sets does not get there: the library must be named in a file that the launcher reads.
 */
#ifndef SAMPLER_CMD_ENABLE_LAUNCHER_H
#define SAMPLER_CMD_ENABLE_LAUNCHER_H

#include "sampler/cmd/enable/root_folder.h"

#include <limits.h>
#include <stdbool.h>

enum { LAUNCHER_FILE_BYTES = 512, LAUNCHER_LINE_BYTES = PATH_MAX + 32 };

struct launcher {
	const char *program; /* without its folder */
	const char *server;  /* the program that it starts, as the kernel calls it */
	/* FOLDER/VERSION/CLUSTER/FILE names the library; `unknown` stands for VERSION/CLUSTER */
	const char *folder, *file, *unknown;
};

/* By the path in ExecStart=. NULL if it is not a launcher: the program gets what the unit sets. */
const struct launcher *launcher_of_program(const char *path);

/* By the name of a process that a launcher may have started. NULL if none starts it. */
const struct launcher *launcher_of_server(const char *comm);

/* Is it a program that does nothing? A unit with such a program is there for others to belong to. */
bool launcher_is_idle(const char *path);

/* "/etc/postgresql/15/main/environment" of postgresql@15-main.service. False: the unit's name does not say
 * which, and `file` has words in their place. */
bool launcher_file(const struct launcher *launcher, const char *unit, char file[LAUNCHER_FILE_BYTES]);

/* The line that the file has to have. */
void launcher_line(const char *library, char line[LAUNCHER_LINE_BYTES]);

/* Does the text of the file name the library? */
bool launcher_text_has(const char *text, const char *library);

/* What the unit's ExecStart= is. NULL if it is not a launcher, or the unit cannot be read. */
const struct launcher *launcher_of_unit(
    const struct root_folder *root, const char *unit, const char *library);

/* Does the file of this unit name the library? */
bool launcher_is_told(
    const struct root_folder *root, const struct launcher *launcher, const char *unit, const char *library);

/* Prints what is to be done besides the drop-in: where the unit's program is a launcher whose file does not
 * name the library. Of a program that does nothing it names the units that are started, and says the same of
 * each. */
void launcher_say(const struct root_folder *root, const char *unit, const char *program, const char *library);

#endif
