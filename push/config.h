/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap's configuration file (INI, read by libinih), as far as it is about pushing: `[push NAME]`
 * sections, one per target, and `store` of `[daemon]`. Other sections are the daemon's.
 */
#ifndef PUSH_CONFIG_H
#define PUSH_CONFIG_H

#include "push/target.h"

#include <stddef.h>

enum { CONFIG_TARGETS_MAX = 16 };

struct config {
	struct target targets[CONFIG_TARGETS_MAX];
	size_t count;
	char *store; /* NULL: not given */
};

/* 0, or -errno with one line in error, "FILE:LINE: what is wrong". config_fini() is due in any case. */
int config_read(struct config *config, const char *path, char *error, size_t error_bytes);

/* The same of text; name is for error lines. */
int config_parse(struct config *config, const char *text, const char *name, char *error, size_t error_bytes);
void config_fini(struct config *config);

#endif
