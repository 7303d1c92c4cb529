/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer: at most three sentences about a heap, the same wherever a profile is shown.
 *
 * 	held    53.1 MiB +- 5.1 MiB in use, 93 % of it by gw::RouteCache::resolve (> std::make_shared).
 * 	grows   gw::RouteCache::resolve grows since 12:26:59, by 81.9 MiB a minute +- 10 %.
 * 	unseen  Not seen: what _decimal allocates; LD_PRELOAD shows it.
 *
 * The names of functions are those of the traces, and may come from a hostile process. The caller makes a
 * sentence safe for its medium, as any name. Pure.
 */
#ifndef PPROF_EXPORT_ANSWER_H
#define PPROF_EXPORT_ANSWER_H

#include "pprof/analysis/growth.h"
#include "pprof/analysis/traces.h"
#include "pprof/model/origin.h"
#include "pprof/text/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWER_BYTES = 768 };

/* Sentences are "" where there is nothing to say. */
struct answer {
	char held[ANSWER_BYTES], grows[ANSWER_BYTES], unseen[ANSWER_BYTES];
	/* Functions that the sentences name, as in the traces, which own them; "" none. */
	const char *held_function, *grows_function;
};

/* What an answer is about. All zero but for `traces` and `column` is allowed. */
struct answer_facts {
	const struct traces *traces; /* with headings (row_label.h), as tables have them */
	size_t column;               /* what is shown */
	bool is_peak;                /* it is a peak, not a state */
	bool has_ended;              /* it was written when its processes ended */
	bool is_attached;            /* heaptap came when a process ran already */
	bool has_peak;               /* another column has the peak; if not, `peak` has no meaning */
	size_t peak;
	const struct growth *growth; /* NULL if growth is not asked for */
	/* The series that growth was looked for in, however short: when, and the resident memory of all its
	 * processes, -1 unknown. NULL: not known at all. */
	size_t point_count;
	const int64_t *times_ns, *rss_bytes;
	const char *unseen;          /* origin.h; NULL or "": nothing known */
	const struct origin *origin; /* of `column`, for advice about more snapshots; NULL: not known */
	bool is_alone;               /* a single file was given */
};

/* How more snapshots would have come in the time for which the process had been profiled: "-i 2s gives more".
 * origin NULL: not known. */
enum { ANSWER_MORE_BYTES = 64 };
const char *answer_more_snapshots(const struct origin *origin, char text[ANSWER_MORE_BYTES]);

/* 0 or -ENOMEM. */
int answer_make(struct answer *answer, const struct answer_facts *facts);

/* The member "answer" of the open object. */
void answer_json(struct json *json, const struct answer *answer);

#endif
