/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's configuration file: `[daemon]`, `[service]`, `[service NAME]`, `[deny]`. `[push NAME]` is for
 * heaptap-push. Apart from opening the file the parser is pure. Rules do not change once they are read: on
 * SIGHUP the daemon reads new ones, and frees the old ones when no policy refers to them any more.
 */
#ifndef SAMPLER_CMD_DAEMON_RULES_H
#define SAMPLER_CMD_DAEMON_RULES_H

#include "pprof/model/labels.h"
#include "pprof/store/config_file.h"
#include "pprof/store/store_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rules_fact { /* the facts of a process that a glob can be compared with */
	RULES_EXE,
	RULES_COMM,
	RULES_UNIT,
	RULES_CGROUP,
	RULES_CONTAINER,
	RULES_USER,
	RULES_FACTS,
};

/* "exe" */
const char *rules_fact_name(enum rules_fact fact);

enum { RULES_LABELS_MOST = 16, RULES_TITLE_BYTES = 64 };

#define RULES_PERIOD_BYTES_DEFAULT (UINT64_C(512) << 10)
#define RULES_INTERVAL_NS_DEFAULT  UINT64_MAX /* no interval is configured: see write/interval.h */

struct rules_globs {
	char **globs;
	size_t count, room;
};

/* `[service]` or `[service NAME]`: the processes that it matches, and how these are profiled. Keys that a
 * section does not have are taken from [service] once the file is read. */
struct rules_service {
	char title[RULES_TITLE_BYTES]; /* NAME as written; "" for [service] */
	char name[SERVICE_NAME_BYTES]; /* the cleaned NAME, for the store */
	int line;                      /* where the section begins */
	/* For each fact that has globs, one of them must match. Without any globs all processes match. */
	struct rules_globs match[RULES_FACTS];
	/* One of the two is 0. The first is the mean number of bytes between samples; by the second, the
	 * daemon chooses a period that gives so many samples an hour. */
	uint64_t period_bytes, samples_per_hour;
	uint64_t interval_ns; /* between snapshots, 0: none */
	uint64_t keep;        /* numbered snapshots of a process; 0: the store's limits decide */
	bool attach, profile;
	struct labels labels;
	unsigned int given; /* the keys that the section has, a bit each */
	bool faulty;        /* a line before the next section of a service could not be read */
};

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
