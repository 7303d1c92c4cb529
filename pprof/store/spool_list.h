/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spools of `heaptap push` hold and have counted, for `heaptap status` and /metrics. Reads names,
 * sizes and the file `counters`; opens no profile.
 */
#ifndef PPROF_STORE_SPOOL_LIST_H
#define PPROF_STORE_SPOOL_LIST_H

#include "pprof/store/spool_counters.h"
#include "pprof/store/spool_name.h"

#include <stddef.h>
#include <stdint.h>

enum { SPOOL_LIST_MAX = 256 };

struct spool_list_row {
	char target[SPOOL_NAME_TARGET_BYTES];
	struct spool_counters counters;
	uint64_t bytes, count; /* of the profiles that wait */
	int64_t oldest_ns;     /* time of the oldest of them, since 1970; 0: none waits */
};

/* All zero is empty. Rows by target. */
struct spool_list {
	struct spool_list_row *rows;
	size_t count, room;
};

void spool_list_fini(struct spool_list *list);

/* The folder in which the running user's spools are made: $XDG_STATE_HOME/heaptap/push; without that
 * variable, or if it leads to another user's folder (folder_of_user()), ~/.local/state/heaptap/push. Of root
 * /var/lib/heaptap/push; push-root beside it where push is another user's, as heaptap-push.service's is. 0,
 * -ENAMETOOLONG; -ENOENT without a home. */
int spool_list_folder(char *path, size_t path_bytes);

/* Reads the spools of the running user; as root also the spools of heaptap-push.service. A folder that is
 * missing or may not be read gives no rows. 0 or -ENOMEM; the caller ends the list in both cases. */
int spool_list_read(struct spool_list *list);

/* Adds the spools in a folder, likewise. */
int spool_list_add(struct spool_list *list, const char *path);

/* Age of the oldest profile that waits, in seconds; 0 if none does. */
double spool_list_age(const struct spool_list_row *row, int64_t now_ns);

/* As text, a line each: the target, and numbers. The caller frees it; NULL: no memory. */
char *spool_list_print(const struct spool_list *list, size_t *bytes);

/* Of text from anywhere. 0, -EPROTO or -ENOMEM; the list is the caller's in all cases. */
int spool_list_parse(struct spool_list *list, const char *text, size_t bytes);

#endif
