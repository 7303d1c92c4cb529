/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD of a service, as its unit files give it: Environment= and UnsetEnvironment= of [Service] in
 * their order, DefaultEnvironment= of the manager before them, EnvironmentFile= after them. And our
 * drop-in, which puts our library first and keeps what there was.
 */
#ifndef SAMPLER_ENABLE_UNIT_PRELOAD_H
#define SAMPLER_ENABLE_UNIT_PRELOAD_H

#include "sampler/enable/root_folder.h"
#include "sampler/enable/unit_sources.h"

#include <stdbool.h>

enum { UNIT_PRELOAD_BYTES = 8192 };

#define UNIT_PRELOAD_NAME "50-heaptap.conf"

enum unit_preload_state {
	UNIT_PRELOAD_ABSENT,   /* nothing loads our library */
	UNIT_PRELOAD_IN_FORCE, /* it is the first entry */
	UNIT_PRELOAD_BEHIND, /* it is an entry, but another library goes first: that one's malloc is called */
	UNIT_PRELOAD_OVERRIDDEN, /* our drop-in is there, and `where` takes it back */
};

struct unit_preload {
	enum unit_preload_state state;
	bool has_drop_in; /* ours is there */
	bool foreign;     /* a file of its name is there, which is not ours */
	char theirs
	    [UNIT_PRELOAD_BYTES]; /* what LD_PRELOAD would be without us, without our library; "": nothing */
	char where[UNIT_SOURCE_BYTES +
	    16]; /* "/etc/systemd/system/x.service.d/override.conf:3": what set the last value */
	char value[UNIT_PRELOAD_BYTES];          /* the last value */
	char program[UNIT_SOURCE_BYTES];         /* of ExecStart=, as it is written; "": none */
	char root_directory[UNIT_SOURCE_BYTES];  /* RootDirectory= or RootImage=; "": the machine's */
	char drop_in[UNIT_PRELOAD_BYTES + 1024]; /* the text that ours should have */
};

/*
 * Reads the sources. with_ours: as if our drop-in were there with the right text. library: absolute path of
 * ours. 0, -ENAMETOOLONG: the value does not fit; or -errno.
 */
int unit_preload_read(struct unit_preload *preload, const struct root_folder *root,
    const struct unit_sources *sources, const char *library, bool with_ours);

/* Is it a drop-in that heaptap has written? made_folder: it has made its folder, too. Pure. */
bool unit_preload_is_ours(const char *text, bool *made_folder);

/* The same text, saying that the folder was made with it. */
void unit_preload_mark_folder(struct unit_preload *preload);

/* "/etc/systemd/system/redis.service.d" */
void unit_preload_folder(const char *unit, char folder[UNIT_SOURCE_BYTES]);

#endif
