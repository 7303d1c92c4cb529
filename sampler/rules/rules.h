/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's configuration file: `[daemon]`, `[service]`, `[service NAME]`, `[deny]`. `[push NAME]` is
 * heaptap-push's. Reading is pure but for the file itself; rules do not change once they are read: on
 * SIGHUP read new ones, and free the old ones when no decision refers to them any more.
 */
#ifndef SAMPLER_RULES_RULES_H
#define SAMPLER_RULES_RULES_H

#include "pprof/service/daemon_section.h"
#include "sampler/rules/rules_service.h"

#include <stddef.h>

enum { RULES_SERVICES_MOST = 1000 };

struct rules {
	struct daemon_section daemon;
	struct rules_service defaults;
	struct rules_service *services; /* in the order of the file */
	size_t service_count, service_room;
	struct rules_globs deny[RULES_FACTS];
	/* While they are read each fault goes there, and the reading goes on. NULL: it ends with one. */
	void (*fault)(const char *text);
	size_t fault_count;
};

/* path NULL: the user's own file (daemon_section_file()), and it is no error if there is none. Returns 0,
 * or -errno with one line in error, "FILE:LINE: what is wrong and what is allowed". rules_fini() is due in
 * any case. */
int rules_read(struct rules *rules, const char *path, char *error, size_t error_bytes);

/* The same of text; name is for error lines. */
int rules_parse(struct rules *rules, const char *text, const char *name, char *error, size_t error_bytes);
void rules_fini(struct rules *rules);

/* heaptap daemon --check: prints "ok", or a line for each fault, to standard output. 0, or -errno:
 * STATUS_USAGE. */
int rules_check(const char *path);

#endif
