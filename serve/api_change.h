/* SPDX-License-Identifier: Apache-2.0 */
/* What changed between profiles: the views diff and growth of api_view.h. Each writes members of the object
 * that is open. 0, -ENOMEM, -EFBIG or -EOVERFLOW. */
#ifndef SERVE_API_CHANGE_H
#define SERVE_API_CHANGE_H

#include "serve/api_facts.h"

/* Column 0 is the base, 1 the new. */
int api_change_diff(struct json *json, const struct api_facts *facts);
int api_change_columns(struct json *json, const struct api_facts *facts); /* as the page reads it */

/* Columns are snapshots of one process, by time; without `total` if there are too few, or of several
 * processes. */
int api_change_growth(struct json *json, const struct api_facts *facts);

/* Growth of what is in use between two profiles of one process. */
struct api_growth {
	double change, error, per_hour, per_hour_error; /* bytes */
	bool beyond_chance;
};

struct profile;

/* first is the older one. 0; -EINVAL if they are not of one process, or of one time; -ENODATA if they do
 * not say what is in use, or have no period; -ENOMEM. */
int api_growth_between(struct api_growth *growth, struct profile *first, struct profile *last);

#endif
