/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles that wait for a target, on disk. An outage of the server or of this machine loses no profile for
 * which there is room.
 *
 *	NUMBER-TIME-PROCESS-s.pb.gz   one profile each, as it was written (spool_files.h); made
 *	                              under another name and renamed, so that each is whole
 *	counters                      pprof/store/spool_files.h
 *	lock                          who holds it sends; others may add
 *	state/PROCESS.taken           time of the newest profile that was added of a process
 *	state/PROCESS.accepted        what since_keep() made of the profile that the server acknowledged
 *	                              last; only its time if it was the last of its process
 *	rejected/                     the last 10 that were refused, each with the answer
 *
 * SIGKILL may come at any moment: an entry is removed after `accepted` is written, and an entry that is not
 * newer than `accepted` is not sent again.
 */
#ifndef PUSH_SPOOL_H
#define PUSH_SPOOL_H

#include "pprof/store/spool_files.h"
#include "push/answer.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct profile;
struct since;

#define SPOOL_STATE    "state"
#define SPOOL_REJECTED "rejected"

enum { SPOOL_REJECTED_KEPT = 10 };

struct spool {
	char path[PATH_MAX - 256];
	uint64_t budget_bytes;
	int folder_fd;               /* locked (shared) while it is open, so that nobody removes it */
	int state_fd;                /* of its folder `state` */
	int lock_fd;                 /* -1: another process sends; this one only adds */
	struct spool_entry *entries; /* ascending by number */
	size_t count, room;
	uint64_t bytes;     /* of all entries */
	uint64_t in_flight; /* number of the entry that is being sent; 0: none. It is not dropped for room */
	struct timespec looked; /* st_mtim of the folder at the last scan */
	struct spool_counters counters;
};

/* The folder of a spool, in spool_list_folder(). 0, -ENAMETOOLONG; -ENOENT without a home. */
int spool_path(const char *name, char *path, size_t path_bytes);

/* Opens the folder, or makes it. It must be our own (FOLDER_OWN). All later work in it uses its descriptor. 0
 * or -errno; the caller calls spool_close() in both cases. */
int spool_open(struct spool *spool, const char *path, uint64_t budget_bytes);
void spool_close(struct spool *spool);

/* Removes the folder with all notes. Does nothing if a profile waits, if one was rejected, or if another
 * process has the spool open. Files that heaptap has not made stay. Only spool_close() may follow. */
void spool_remove(struct spool *spool);

/* Tries to become the process that sends, if another process was. */
bool spool_lock(struct spool *spool);

/* Removes files that were half written a minute ago or more: their process was killed. */
void spool_tidy(const struct spool *spool);

/* Looks for entries that others have added or removed. 0 or -errno. */
int spool_scan(struct spool *spool);

/* Does the same if the folder has changed since the last scan: cheap enough for every second. */
int spool_look(struct spool *spool);

/* Would a profile of that size displace others? */
bool spool_is_full(const struct spool *spool, uint64_t bytes);

/* Adds a profile, and sets number and bytes of entry. Drops the oldest profiles if there is no room. 0 or
 * -errno. */
int spool_add(struct spool *spool, struct spool_entry *entry, const void *bytes, size_t length);

/* The entry to send: the one that is being sent; or else the one that the server may have got before we were
 * killed; or else the oldest. NULL if the spool is empty. Valid until the next change. */
const struct spool_entry *spool_head(const struct spool *spool);

/* The number of an entry other than `number`: the oldest of another process, else the next of the same
 * process. 0 if there is none. */
uint64_t spool_another(const struct spool *spool, uint64_t number);

/* Reads the head; the caller frees the bytes. 0 or -errno. */
int spool_read(const struct spool *spool, uint8_t **bytes, size_t *length);

/* Each removes the head. All but spool_skip() count it. Only spool_reject() and spool_give_up() keep it, in
 * rejected/ beside the server's answer. */
void spool_sent(struct spool *spool); /* the server has acknowledged it */
void spool_drop(struct spool *spool); /* it is of no use any more */
void spool_reject(struct spool *spool, const char *answer);
void spool_give_up(struct spool *spool, const char *answer);
void spool_skip(struct spool *spool); /* nothing of it is to be sent, or it is counted already */

/* Notes that the head is sent now. The note is on disk before the request begins, so even after a SIGKILL we
 * know that the server may have the profile. */
void spool_sending(struct spool *spool);

/* Notes what the server's answer means, or that none came (ANSWER_LATER). The next change writes it down. */
void spool_judged(struct spool *spool, enum answer_verdict verdict);

/* Has the head waited for a day, in which the server has refused the token each time? */
bool spool_is_denied_for_a_day(const struct spool *spool);

/* Counts an attempt that is to be repeated. unread: the whole request was sent, and no answer was read. */
void spool_retried(struct spool *spool, bool unread);

/* Counts a profile that was not added. */
void spool_passed_over(struct spool *spool);

/* Writes a file into one of the spool's folders. flags: 0 or FILE_NO_REPLACE (file.h). 0 or -errno. */
int spool_write(int folder_fd, const char *name, const void *bytes, size_t length, unsigned int flags);

/* ---- by process */

/* Of a name in `state`: false if it is none of ours. */
bool spool_state_parse(const char *name, uint64_t *process);

/* Time of the newest profile that was added, 0 for none. */
int64_t spool_taken(const struct spool *spool, uint64_t process);
int spool_take(const struct spool *spool, uint64_t process, int64_t time_ns);

/* Reads what the server has acknowledged last of a process. *since is all zero if there is nothing.
 * since->unknown is true if the file cannot be read: the file is damaged, or an earlier version wrote it. The
 * caller owns since->first. 0 or -ENOMEM. */
int spool_accepted(const struct spool *spool, uint64_t process, struct since *since);

/* Notes that the server has acknowledged the head. Call this before the head is removed. kept: what
 * since_keep() made of the head's profile. If the disk is full, the head's file gives its room to the note.
 * So a spool that fills the disk can be emptied. The next call must be spool_sent() or spool_skip(): a scan
 * would miss the head. 0 or -errno. */
int spool_accept_head(const struct spool *spool, const struct profile *kept);

/* Forgets processes that have nothing in the spool and were not heard of for age_ns. A process whose last
 * profile was accepted is forgotten after ended_ns: what is noted of it only keeps its files from being sent
 * again. */
void spool_forget(struct spool *spool, int64_t age_ns, int64_t ended_ns);

#endif
