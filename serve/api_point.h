/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as one point of a time line: what is in use, with its error, and the process' resident memory. */
#ifndef SERVE_API_POINT_H
#define SERVE_API_POINT_H

#include "serve/api_query.h"

#include <stdbool.h>
#include <stdint.h>

struct profile;

struct api_point {
	int64_t time_ns;
	double value, error, samples; /* of what the query selects; in use without one */
	bool known;                   /* error and samples are */
	double allocated;             /* bytes, since the recording began; NaN: not known */
	int64_t rss_bytes;            /* -1: the profile does not say */
	char id[64], cause[96];       /* of the profile; filled in by the caller, if at all */
	/* of a sum (timeline_sum.h): the processes that it is of, and those that it lacks */
	size_t processes, missing;
};

/* 0, -ENODATA (no such values), -EINVAL (a label is missing), -ENOMEM, -EFBIG. */
int api_point_make(struct api_point *point, struct profile *profile, const struct api_query *query);

#endif
