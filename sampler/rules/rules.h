/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's configuration file: `[daemon]`, `[service]`, `[service NAME]`, `[deny]`. `[push NAME]` is
 * heaptap-push's. Reading is pure but for the file itself; rules do not change once they are read: on
 * SIGHUP read new ones, and free the old ones when no decision refers to them any more.
 */
#ifndef SAMPLER_RULES_RULES_H
#define SAMPLER_RULES_RULES_H

#include "pprof/profile/labels.h"
#include "pprof/service/daemon_section.h"
#include "pprof/service/service_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rules_fact { /* what a glob is compared with */
	RULES_EXE,
	RULES_COMM,
	RULES_UNIT,
	RULES_CGROUP,
	RULES_CONTAINER,
	RULES_USER,
	RULES_FACTS,
};

enum { RULES_EVENTS_MOST = 16, RULES_SERVICES_MOST = 1000, RULES_FILE_BYTES_MAX = 1 << 20 };

#define RULES_PERIOD_BYTES_DEFAULT (UINT64_C(512) << 10)
#define RULES_INTERVAL_NS_DEFAULT  (UINT64_C(60) * 1000000000)

struct rules_globs {
	char **globs;
	size_t count, room;
};

/* `[service]` or `[service NAME]`, with what it does not say taken from `[service]`. */
struct rules_service {
	char name[SERVICE_NAME_BYTES]; /* cleaned; "" of [service] */
	int line;
	struct rules_globs match[RULES_FACTS]; /* any of the globs of each fact that has some */
	/* One of the two is 0: mean bytes between samples, or the period that gives so many samples an
	 * hour. */
	uint64_t period_bytes, samples_per_hour;
	uint64_t interval_ns; /* between snapshots, 0: none */
	uint64_t keep;        /* numbered snapshots of a process, 0: all that the store keeps */
	char *events[RULES_EVENTS_MOST];
	size_t event_count;
	bool attach, profile;
	struct labels labels;
	unsigned int given; /* which keys it has itself; enum of rules.c */
};

struct rules {
	struct daemon_section daemon;
	struct rules_service defaults;
	struct rules_service *services; /* in the order of the file */
	size_t service_count, service_room;
	struct rules_globs deny[RULES_FACTS];
};

/* path NULL: the user's own file (daemon_section_file()), and it is no error if there is none. Returns 0,
 * or -errno with one line in error, "FILE:LINE: what is wrong and what is allowed". rules_fini() is due in
 * any case. */
int rules_read(struct rules *rules, const char *path, char *error, size_t error_bytes);

/* The same of text; name is for error lines. */
int rules_parse(struct rules *rules, const char *text, const char *name, char *error, size_t error_bytes);
void rules_fini(struct rules *rules);

/* heaptap daemon --check: prints "ok" or the error line to standard output. 0, or -errno: STATUS_USAGE. */
int rules_check(const char *path);

#endif
