/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's configuration file: `[daemon]`, `[service]`, `[service NAME]`, `[deny]`. `[push NAME]` is for
 * heaptap-push. Apart from opening the file the parser is pure. Rules do not change once they are read: on
 * SIGHUP the daemon reads new ones, and frees the old ones when no policy refers to them any more.
 */
#ifndef SAMPLER_CMD_DAEMON_RULES_H
#define SAMPLER_CMD_DAEMON_RULES_H

#include "pprof/store/daemon_section.h"
#include "sampler/cmd/daemon/rules_service.h"

#include <stddef.h>

enum { RULES_SERVICES_MOST = 1000 };

struct rules {
	struct daemon_section daemon;
	struct rules_service defaults;
	struct rules_service *services; /* in the order of the file */
	size_t service_count, service_room;
	struct rules_globs deny[RULES_FACTS];
	/* Gets each fault while the file is read. NULL: the first fault ends the reading. */
	void (*fault)(const char *text);
	size_t fault_count;
};

/* Reads the file. path NULL: the user's own file (daemon_section_file()), which may be missing. 0, or
 * -errno with one line in error: "FILE:LINE: what is wrong and what is allowed". Call rules_fini() in both
 * cases. */
int rules_read(struct rules *rules, const char *path, char *error, size_t error_bytes);

/* The same for a text. name: of the file, for error lines. */
int rules_parse(struct rules *rules, const char *text, const char *name, char *error, size_t error_bytes);
void rules_fini(struct rules *rules);

/* `heaptap daemon --check`: prints "ok", or a line for each fault, to standard output. 0, or -errno if
 * there is a fault. */
int rules_check(const char *path);

#endif
