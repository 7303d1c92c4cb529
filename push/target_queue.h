/* SPDX-License-Identifier: Apache-2.0 */
/* The way of profiles to one target: its spool, and one request at a time. */
#ifndef PUSH_TARGET_QUEUE_H
#define PUSH_TARGET_QUEUE_H

#include "push/answer.h"
#include "push/http.h"
#include "push/number_set.h"
#include "push/spool.h"
#include "push/target.h"

struct origin;

/*
 * Tells a profile that a server cannot take from a server that takes none.
 *
 * A server may answer "try again later" for an entry each time. After a long time of such answers, another
 * entry is sent once: the probe. If the server accepts the probe, the entry is at fault. If not, the server
 * is, and the entry is tried for as long again. If no answer comes (no connection, a time limit), the server
 * is at fault.
 */
struct poison_check {
	uint64_t number; /* of the entry; 0: none */
	uint64_t probe;  /* of the entry that is sent instead; 0: none */
	uint64_t since_ns;
	unsigned int attempts;
};

struct target_queue {
	struct target *target; /* borrowed */
	struct spool spool;
	struct http_request request;
	struct answer answer;
	struct http_call *call;          /* NULL: nothing is under way */
	struct profile *kept;            /* of the head: what is noted if it is accepted; owned */
	bool unwanted;                   /* the head has nothing that the target wants: it is only noted */
	bool next_due;                   /* it was accepted, but that could not be written down yet */
	unsigned int failures;           /* in a row */
	uint64_t due_ns;                 /* clock_now_ns() of the next attempt; 0: at once */
	bool spool_full;                 /* the disk is: said once */
	uint64_t look_ns, forget_ns;     /* clock_now_ns() when the spool is looked at next, and tidied */
	struct poison_check poison;      /* what the server may not be able to take */
	struct number_set said;          /* processes of which it was said that the clock was set back */
	int64_t passed_over_ns;          /* time of the last profile that was counted so */
	uint64_t say_ns;                 /* clock_now_ns() when the next of them may be named */
	char trouble[ANSWER_TEXT_BYTES]; /* of the last attempt, said once */
};

/* 0, or -errno after a line on stderr. target_queue_close() is due in any case. */
int target_queue_open(struct target_queue *queue, struct target *target);
void target_queue_close(struct target_queue *queue, struct http *http);

/* Takes a profile into the spool, if the target wants it and has not had it. 0, or -errno if it could not be
 * written: then the caller offers it again. -EAGAIN comes only with may_wait: the spool is full, but the
 * server takes what is in it, so nothing need be dropped. is_new: the profile has just been written, and was
 * not offered before. */
int target_queue_offer(struct target_queue *queue, const struct origin *origin, const void *bytes,
    size_t length, bool may_wait, bool is_new);

/* Does what is due. Returns nanoseconds until something is; UINT64_MAX: not before something happens. */
uint64_t target_queue_step(struct target_queue *queue, struct http *http);

/* The call is over. error says why no answer came, "" if one came. */
void target_queue_answered(struct target_queue *queue, const char *error);

#endif
