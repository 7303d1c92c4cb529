/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchers: programs, such as pg_ctlcluster, that start a service's server with another environment than the
 * unit's. What the unit sets does not reach the server. So the library must be named in a file that the
 * launcher reads.
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

/* The launcher with this path in ExecStart=. NULL if the program is no launcher: it gets what the unit
 * sets. */
const struct launcher *launcher_of_program(const char *path);

/* The launcher that starts processes of this name. NULL if there is none. */
const struct launcher *launcher_of_server(const char *comm);

/* Does the program do nothing, as true(1)? The unit of such a program only groups other units. */
bool launcher_is_idle(const char *path);

/* Writes the path of the file that the launcher reads: "/etc/postgresql/15/main/environment" for
 * postgresql@15-main.service. False if the unit's name does not tell VERSION and CLUSTER: then the path has
 * launcher->unknown in their place. */
bool launcher_file(const struct launcher *launcher, const char *unit, char file[LAUNCHER_FILE_BYTES]);

/* Writes the line that names the library in that file. */
void launcher_line(const char *library, char line[LAUNCHER_LINE_BYTES]);

/* Does the text of the file name the library? */
bool launcher_text_has(const char *text, const char *library);

/* The launcher in the unit's ExecStart=. NULL if there is none, or if the unit cannot be read. */
const struct launcher *launcher_of_unit(
    const struct root_folder *root, const char *unit, const char *library);

/* Does the file of this unit name the library? */
bool launcher_is_told(
    const struct root_folder *root, const struct launcher *launcher, const char *unit, const char *library);

/* Prints what the user has to do besides the drop-in, if the unit's program is a launcher and its file does
 * not name the library. If the program does nothing, prints the names of the units that this unit starts, and
 * the same for each of them. */
void launcher_say(const struct root_folder *root, const char *unit, const char *program, const char *library);

#endif
