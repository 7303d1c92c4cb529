/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that start a service's server with an environment of their own: what its unit sets does not get
 * there, and the library must be named in a file that they read. Pure.
 */
#ifndef SAMPLER_ENABLE_LAUNCHER_H
#define SAMPLER_ENABLE_LAUNCHER_H

#include <limits.h>
#include <stdbool.h>

enum { LAUNCHER_FILE_BYTES = 512, LAUNCHER_LINE_BYTES = PATH_MAX + 32 };

struct launcher {
	const char *program;                 /* without its folder */
	const char *server;                  /* what it starts, as the kernel calls it */
	const char *folder, *file, *unknown; /* FOLDER/VERSION/CLUSTER/FILE; what stands for those two */
};

/* By the path in ExecStart=. NULL: none is known, a program gets what the unit sets. */
const struct launcher *launcher_of_program(const char *path);

/* By the name of a process that a launcher may have started. */
const struct launcher *launcher_of_server(const char *comm);

/* "/etc/postgresql/15/main/environment" of postgresql@15-main.service. False: the unit's name does not say
 * which, and `file` has words in place of these two. */
bool launcher_file(const struct launcher *launcher, const char *unit, char file[LAUNCHER_FILE_BYTES]);

/* What that file has to say, as the launcher reads it. */
void launcher_line(const char *library, char line[LAUNCHER_LINE_BYTES]);

/* Does the text of such a file name the library already? */
bool launcher_text_has(const char *text, const char *library);

/* Programs that do nothing, of units that are there for others to belong to. */
bool launcher_is_idle(const char *path);

#endif
