/* SPDX-License-Identifier: Apache-2.0 */
/* What changed between profiles: the views diff and growth of api_view.h. Each writes members of the object
 * that is open. 0, -ENOMEM, -EFBIG or -EOVERFLOW. */
#ifndef SERVE_API_CHANGE_H
#define SERVE_API_CHANGE_H

#include "serve/api_facts.h"

/* Column 0 is the base, 1 the new. */
int api_change_diff(struct json *json, const struct api_facts *facts);
int api_change_columns(struct json *json, const struct api_facts *facts); /* as the page reads it */

/* Columns are snapshots of one process, or sums of those of several, by time; without `total` if there are
 * too few. */
int api_change_growth(struct json *json, const struct api_facts *facts);

#endif
