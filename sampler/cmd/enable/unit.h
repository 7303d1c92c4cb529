/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service unit as systemd reads it, see systemd.unit(5): which files make it up, and what LD_PRELOAD they
 * give to the service. Where several assignments are read, the last one counts: DefaultEnvironment= of the
 * manager first, then Environment= of [Service], then EnvironmentFile=, and UnsetEnvironment= at the end.
 *
 * Our drop-in puts our library first and keeps what the files before it say.
 */
#ifndef SAMPLER_CMD_ENABLE_UNIT_H
#define SAMPLER_CMD_ENABLE_UNIT_H

#include "sampler/cmd/enable/root_folder.h"

#include <limits.h>
#include <stdbool.h>

enum { UNIT_NAME_BYTES = 256, UNIT_PATH_BYTES = PATH_MAX, UNIT_PRELOAD_BYTES = 8192 };

#define UNIT_FOLDER  "/etc/systemd/system" /* where an administrator's unit files are, and our drop-ins */
#define UNIT_DROP_IN "50-heaptap.conf"

enum unit_state {
	UNIT_ABSENT,     /* nothing loads our library */
	UNIT_IN_FORCE,   /* our library is the first entry of LD_PRELOAD */
	UNIT_BEHIND,     /* it is an entry, but another library goes first: that library's malloc is called */
	UNIT_OVERRIDDEN, /* our drop-in is there, and the file in `where` overrides it */
};

struct unit {
	char name[UNIT_NAME_BYTES]; /* its own name, not an alias */
	enum unit_state state;
	bool has_drop_in;                     /* our drop-in is there */
	bool foreign;                         /* a file of its name is there that heaptap has not written */
	char theirs[UNIT_PRELOAD_BYTES];      /* LD_PRELOAD without our library; "" */
	char value[UNIT_PRELOAD_BYTES];       /* LD_PRELOAD as the service gets it; "" */
	char where[UNIT_PATH_BYTES + 16];     /* what sets it: ".../override.conf:3" */
	char program[UNIT_PATH_BYTES];        /* of ExecStart=, as it is written; "" */
	char root_directory[UNIT_PATH_BYTES]; /* RootDirectory= or RootImage=; "": the machine's */
	char drop_in[UNIT_PRELOAD_BYTES * 2]; /* the text that our drop-in should have */
};

/* Writes the full name, "redis.service" for "redis". Returns 0; -EINVAL if the word is no name of a unit;
 * -EOPNOTSUPP if the unit is no service. */
int unit_name(const char *word, char name[UNIT_NAME_BYTES]);

/*
 * Reads the unit of that name or alias. with_ours: as if our drop-in were there with the right text.
 * library: the absolute path of our library. Returns 0; -ENOENT if there is no such unit; -ERFKILL if it is
 * masked; or -errno. Sets unit->name in any case.
 */
int unit_read(
    struct unit *unit, const struct root_folder *root, const char *name, const char *library, bool with_ours);

/* The folder for the drop-ins of an administrator, and for ours. */
void unit_folder(const char *name, char folder[UNIT_PATH_BYTES]);

/* Is this text of a drop-in ours? */
bool unit_text_is_ours(const char *text);

/* Calls `visit` for each unit that the unit starts (a name in a folder NAME.wants), in no order, maybe more
 * than once. Returns 0, what `visit` returned, or -errno. */
int unit_wants(const struct root_folder *root, const char *name,
    int (*visit)(void *context, const char *name), void *context);

#endif
