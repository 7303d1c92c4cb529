/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that make up a service unit, as systemd.unit(5) says it finds them: the unit file in the first
 * folder that has it, and the drop-ins of all folders, of the unit, its template, its prefixes and its
 * type, by their names' order.
 */
#ifndef SAMPLER_ENABLE_UNIT_SOURCES_H
#define SAMPLER_ENABLE_UNIT_SOURCES_H

#include "sampler/enable/root_folder.h"

#include <limits.h>
#include <stddef.h>

enum { UNIT_NAME_BYTES = 256, UNIT_SOURCE_BYTES = PATH_MAX };

/* Where an administrator's unit files and drop-ins are, and ours. */
#define UNIT_FOLDER "/etc/systemd/system"

struct unit_source {
	char path[UNIT_SOURCE_BYTES]; /* in the root */
	const char *name;             /* its last part: drop-ins are in the order of these */
};

struct unit_sources {
	char unit[UNIT_NAME_BYTES];  /* its own name, not an alias */
	struct unit_source fragment; /* the unit file */
	struct unit_source *drop_ins;
	size_t count, capacity;
};

/* "redis" is "redis.service". 0; -EINVAL: no name of a unit; -EOPNOTSUPP: of no service. */
int unit_sources_name(const char *word, char unit[UNIT_NAME_BYTES]);

/* 0; -ENOENT: there is no such unit; -ERFKILL: it is masked; -ENOMEM or -errno. The caller calls fini in
 * any case. */
int unit_sources_find(struct unit_sources *sources, const struct root_folder *root, const char *unit);

/* Those of the manager's configuration, systemd-system.conf(5): a file that may be missing, and drop-ins.
 * Likewise. */
int unit_sources_manager(struct unit_sources *sources, const struct root_folder *root);
void unit_sources_fini(struct unit_sources *sources);

/* Calls `visit` for each name in the folders UNIT.wants, in no order, maybe more than once: what starts when
 * the unit does, as an administrator or a generator has said. 0, what `visit` returned, or -errno. */
int unit_sources_wants(const struct root_folder *root, const char *unit,
    int (*visit)(void *context, const char *name), void *context);

#endif
