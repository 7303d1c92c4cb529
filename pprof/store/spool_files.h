/* SPDX-License-Identifier: Apache-2.0 */
/* The spools of `heaptap push`: the names of their files, what counters say, and a list of all spools. */
#ifndef PPROF_STORE_SPOOL_FILES_H
#define PPROF_STORE_SPOOL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- names. Each target has a folder. The names of its files say all that is needed to order and count the
 * files. Pure. */

struct spool_entry {
	uint64_t number;  /* of arrival, from 1: the smallest is sent first */
	int64_t time_ns;  /* of the profile */
	uint64_t process; /* of push/delivery.h */
	bool last;        /* the process has ended: no profile of it follows */
	uint64_t bytes;   /* of the file; not part of the name */
};

enum { SPOOL_NAME_BYTES = 80, SPOOL_NAME_TARGET_BYTES = 128 };

/* Can a target have that name? It has letters, digits, '.', '_' and '-', and does not begin with '.'. */
bool spool_name_is_target(const char *name);

/* "00000000000000000042-01795360871703950382-4aa21527451f2630-s.pb.gz"; e instead of s for the last. */
void spool_name_print(const struct spool_entry *entry, char name[SPOOL_NAME_BYTES]);

/* False for any other name. Leaves entry->bytes as it is. */
bool spool_name_parse(const char *name, struct spool_entry *entry);

/* ---- counters: what became of the profiles of a target since its spool was made. The spool's file
 * `counters` has it as lines `sent 12`. */

struct spool_counters {
	uint64_t sent;
	uint64_t retried;  /* attempts after which the same profile was tried again */
	uint64_t rejected; /* refused for good, moved to rejected/ */
	uint64_t dropped;  /* never delivered: too old, or no room */
	/* moved to rejected/ after `give-up`: the server could not take it, but took another profile */
	uint64_t given_up;
	/* of a time before a profile of the same process that was taken: the clock was set back */
	uint64_t passed_over;
	/* repeated attempts where the server may have the profile: all was sent, but no answer was read. At
	 * most so many profiles are there twice. */
	uint64_t resent;
	/* how many of the last attempts in a row were refused because we may not send (401, 403, 407), most
	 * likely for the token */
	uint64_t denied;
	uint64_t denied_since_s; /* when the first of these came, as Unix time; 0: none */
	uint64_t sending;        /* the entry that is sent now, or was when we were killed; 0: none */
};

enum { SPOOL_COUNTERS_BYTES = 512 };

/* Returns the length. */
size_t spool_counters_print(const struct spool_counters *counters, char text[SPOOL_COUNTERS_BYTES]);

/* Reads a file that may hold anything. A counter that is not understood is 0. */
void spool_counters_parse(const uint8_t *bytes, size_t length, struct spool_counters *counters);

/* ---- the list: what all spools hold and have counted, for `heaptap status` and /metrics. Reads names, sizes
 * and the file `counters`; opens no profile. */

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
