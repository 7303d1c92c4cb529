/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The album: every snapshot of the session, from the reason for it to the files on disk.
 *
 *   interval        album_tend, when a process' is due
 *   signal, API     album_tend, when a word in the shared memory has changed
 *   SIGUSR1 to us   album_want_all
 *   heaptap snapshot   album_ask
 *   end             album_close, once per process
 *
 * Taking: census, then drain, then books and census together, then to the writer, whose forked child has the
 * rest of the day. A periodic snapshot is only taken when the writer has a child to spare.
 */
#ifndef SAMPLER_ALBUM_H
#define SAMPLER_ALBUM_H

#include "sampler/control.h"
#include "sampler/event_album.h"
#include "sampler/options.h"
#include "sampler/output.h"
#include "sampler/roster.h"

#include <sys/types.h>

struct album;

struct album_setup {
	const struct options *options; /* these four are borrowed */
	struct roster *roster;
	struct output *output;
	struct control *control; /* NULL: nobody can ask */
	/* A line about the session for every profile. */
	void (*describe)(void *context, char *text, size_t text_bytes);
	struct event_album *events; /* borrowed; takes its own with each numbered one; NULL: none */
	void *context;
};

struct album *album_new(const struct album_setup *setup);
void album_free(struct album *album);

/* Does what is due. Returns when to come again at the latest, in ns from now. */
uint64_t album_tend(struct album *album, uint64_t now_ns, uint64_t period_bytes);

/* Snapshots of all live processes, or of one: returns how many processes that means (0: not ours). asker: see
 * control.h, 0 for none. */
uint32_t album_want_all(struct album *album, const char *cause, uint64_t asker);
uint32_t album_ask(struct album *album, pid_t pid, uint64_t asker);

/* The process has ended, its books are closed: the exit profile. Ends in roster_release. */
void album_close(struct album *album, struct process *process);

/* A child of the sampler has ended. */
void album_reap(struct album *album, pid_t pid, int status);

/* Profiles of ended processes that were written without a word, since there are so many. */
uint64_t album_unsaid(const struct album *album);

/* True when everything that has ended is on disk. */
bool album_settled(const struct album *album);

#endif
