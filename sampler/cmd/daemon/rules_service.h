/* SPDX-License-Identifier: Apache-2.0 */
/* `[service]` and `[service NAME]` of the configuration file: the processes that they match, and how these
 * are profiled. */
#ifndef SAMPLER_CMD_DAEMON_RULES_SERVICE_H
#define SAMPLER_CMD_DAEMON_RULES_SERVICE_H

#include "pprof/model/labels.h"
#include "pprof/store/service_name.h"
#include "pprof/text/ini_text.h"

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

void rules_globs_fini(struct rules_globs *globs);

/* Adds a glob. key: for the error line. 0, or -errno with a line in error. */
int rules_globs_add(
    struct rules_globs *globs, const char *key, const char *value, char error[INI_TEXT_ERROR_BYTES]);

/* A section. Keys that it does not have are taken from [service] once the file is read. */
struct rules_service {
	char title[RULES_TITLE_BYTES]; /* NAME as written; "" for [service] */
	char name[SERVICE_NAME_BYTES]; /* the cleaned NAME, for the store */
	int line;                      /* where the section begins */
	struct rules_globs match
	    [RULES_FACTS]; /* of each fact with globs, one must match; without any, all processes match */
	/* One of the two is 0. The first is the mean number of bytes between samples; by the second, the
	 * daemon chooses a period that gives so many samples an hour. */
	uint64_t period_bytes, samples_per_hour;
	uint64_t interval_ns; /* between snapshots, 0: none */
	uint64_t keep;        /* numbered snapshots of a process; 0: the store's limits decide */
	bool attach, profile;
	struct labels labels;
	unsigned int given; /* the keys that the section has, a bit each */
	bool faulty;        /* a line of it, or of another section after it, could not be read */
};

/* Begins a section. title "": [service], with the defaults. */
void rules_service_init(struct rules_service *service, const char *title, int line);
void rules_service_fini(struct rules_service *service);

/* Sets KEY = VALUE. 0, or -errno with a line in error: what is wrong, and what is allowed. */
int rules_service_set(
    struct rules_service *service, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES]);

/* Takes the keys that are not given from [service]. 0 or -ENOMEM. */
int rules_service_inherit(struct rules_service *service, const struct rules_service *defaults);

/* Has the section a `match` key? */
bool rules_service_is_choosy(const struct rules_service *service);

#endif
