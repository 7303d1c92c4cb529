/* SPDX-License-Identifier: Apache-2.0 */
/* `[service]` and `[service NAME]` of the configuration file: which processes, and how they are profiled. */
#ifndef SAMPLER_RULES_RULES_SERVICE_H
#define SAMPLER_RULES_RULES_SERVICE_H

#include "pprof/profile/labels.h"
#include "pprof/service/service_name.h"
#include "pprof/text/ini_text.h"

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

/* "exe" */
const char *rules_fact_name(enum rules_fact fact);

enum { RULES_LABELS_MOST = 16, RULES_TITLE_BYTES = 64 };

#define RULES_PERIOD_BYTES_DEFAULT (UINT64_C(512) << 10)
#define RULES_INTERVAL_NS_DEFAULT  UINT64_MAX /* nobody asked for one: see snapshot/schedule.h */

struct rules_globs {
	char **globs;
	size_t count, room;
};

void rules_globs_fini(struct rules_globs *globs);

/* key: for the error line. 0 or -errno. */
int rules_globs_add(
    struct rules_globs *globs, const char *key, const char *value, char error[INI_TEXT_ERROR_BYTES]);

/* One section. What it does not say is taken from [service] once the file is read. */
struct rules_service {
	char title[RULES_TITLE_BYTES]; /* NAME as written; "" of [service] */
	char name[SERVICE_NAME_BYTES]; /* of the service in the store: cleaned */
	int line;                      /* where it begins */
	struct rules_globs
	    match[RULES_FACTS]; /* one glob of each fact that has some must match; none: all do */
	/* One of the two is 0: mean bytes between samples, or the period that gives so many samples an
	 * hour. */
	uint64_t period_bytes, samples_per_hour;
	uint64_t interval_ns; /* between snapshots, 0: none */
	uint64_t keep;        /* numbered snapshots of a process, 0: what the store keeps */
	bool attach, profile;
	struct labels labels;
	unsigned int given; /* the keys it has itself, a bit each */
	bool faulty;        /* a line of it, or of a section behind it, could not be read */
};

/* title "": [service], with its defaults. */
void rules_service_init(struct rules_service *service, const char *title, int line);
void rules_service_fini(struct rules_service *service);

/* One KEY = VALUE. 0, or -errno with what is wrong and what is allowed in error. */
int rules_service_set(
    struct rules_service *service, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES]);

/* Takes what is not given from [service]. 0 or -ENOMEM. */
int rules_service_inherit(struct rules_service *service, const struct rules_service *defaults);

/* Does it say at all which processes? */
bool rules_service_is_choosy(const struct rules_service *service);

#endif
