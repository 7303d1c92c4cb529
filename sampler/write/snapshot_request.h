/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request of a snapshot of one process: from the reason for it to the file on disk. Pure.
 *
 *                        ask
 *        +-----------------------------------+
 *        |                                   v
 *      NONE ----due----> DUE ----ask----> ASKED <-----------written-----------+
 *      ^  ^               ^               | | |                               |
 *      |  +-not due, drop-+               | | +--------beside--------+        |
 *      |  |               |               | |                        |        |
 *      |  +---------------|-----drop------+ |                        v        |
 *      |                  +-------take------+---> WRITING ---ask---> WRITING_ASKED
 *      |                                           |   ^                |
 *      +------------------written------------------+   +------drop------+
 *
 * Events that are not drawn change nothing. One arrow is not drawn: `beside` leads from NONE and DUE to
 * WRITING.
 *
 * At most one snapshot is in the writer. All who ask meanwhile get the next one together, because the one
 * that is being written may be older than their request. A periodic snapshot that is due while another is
 * written needs no state: the scheduler looks at the clock again as soon as that one is on disk.
 *
 * A process has two requests: one for snapshots that are files, and one for snapshots in shared memory, which
 * are never due.
 */
#ifndef SAMPLER_WRITE_SNAPSHOT_REQUEST_H
#define SAMPLER_WRITE_SNAPSHOT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

enum { SNAPSHOT_ASKERS = 16 }; /* clients that can wait for one snapshot: all of the control socket */

enum request_state {
	REQUEST_NONE,          /* nothing is asked for, and nothing is written */
	REQUEST_DUE,           /* by the clock; waits for its turn with the writer */
	REQUEST_ASKED,         /* the next look of the scheduler takes it */
	REQUEST_WRITING,       /* the writer has a snapshot */
	REQUEST_WRITING_ASKED, /* the writer has a snapshot, and another one is asked for */
};

enum request_event {
	REQUEST_ON_ASK,     /* a client, the program, a signal or a threshold asks */
	REQUEST_ON_DUE,     /* the interval is over */
	REQUEST_ON_NOT_DUE, /* the interval is not over, or is longer now */
	REQUEST_ON_TAKE,    /* the snapshot that waited was taken, and the writer has it */
	REQUEST_ON_BESIDE,  /* the writer has one because of another request: events beside a heap */
	REQUEST_ON_DROP,    /* it failed, or is refused, or the last profile answers it */
	REQUEST_ON_WRITTEN, /* the snapshot is on disk, or could not be written */
};

/* Who asked: a set. */
enum snapshot_by {
	SNAPSHOT_BY_CLOCK = 1 << 0,
	SNAPSHOT_BY_PROGRAM = 1 << 1, /* heaptap_snapshot() */
	SNAPSHOT_BY_SIGNAL = 1 << 2,  /* to the process */
	SNAPSHOT_BY_THRESHOLD = 1 << 3,
	SNAPSHOT_BY_CLIENT = 1 << 4, /* the sampler's user: `heaptap snapshot`, or a signal to the sampler */
	SNAPSHOT_BY_HAND = SNAPSHOT_BY_SIGNAL | SNAPSHOT_BY_CLIENT,
};

struct snapshot_request {
	enum request_state state; /* changed by snapshot_request_step() alone */
	/* About the snapshot that is asked for and was not taken yet. */
	unsigned int by;                  /* enum snapshot_by: who asked */
	char cause[384];                  /* for the profile's comment */
	char name[64];                    /* a word in the file's name; "" none */
	uint64_t askers[SNAPSHOT_ASKERS]; /* clients that wait for an answer */
	uint32_t asker_count;
};

/* Makes every change of the state. */
void snapshot_request_step(struct snapshot_request *request, enum request_event event);

/* Is a snapshot asked for that was not taken yet? */
bool snapshot_request_is_asked(const struct snapshot_request *request);

/* Asks. Until the snapshot is taken, the first cause and name are kept; the cause of a threshold is appended
 * to an earlier one. name: NULL for none. asker: 0 if no client waits. False: too many clients wait. */
bool snapshot_request_ask(struct snapshot_request *request, enum snapshot_by by, const char *cause,
    const char *name, uint64_t asker);

/* Moves the clients that wait to `askers`, and returns their number. Call it before the clients are answered:
 * to answer a client that has gone calls snapshot_request_forget(), which must find this list empty. */
uint32_t snapshot_request_take_askers(struct snapshot_request *request, uint64_t askers[SNAPSHOT_ASKERS]);

/* The asker has gone: its place is free for another. */
void snapshot_request_forget(struct snapshot_request *request, uint64_t asker);

#endif
