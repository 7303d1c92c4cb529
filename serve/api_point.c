/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_point.h"

#include "pprof/text/utf8.h"
#include "serve/api_facts.h"

#include <math.h>
#include <string.h>

int api_point_make(struct api_point *point, struct profile *profile, const struct api_query *query)
{
	static const struct api_shape shape = {FRAMES_FULL, false, false, false};
	const struct api_input_profile only = {.profile = profile};
	const struct api_input input = {.profiles = &only, .count = 1, .column_count = 1, .title = ""};
	struct api_facts facts;
	char error[256];
	int err = api_facts_make(&facts, query, &input, &shape, error, sizeof(error));

	memset(point, 0, sizeof(*point));
	if (!err) {
		const struct traces_doubt doubt = traces_doubt_selected(&facts.traces, 0, facts.kind);

		point->time_ns = facts.origins[0].time_ns;
		point->allocated = traces_has(&facts.traces, MEASURE_ALLOC) ? 0 : NAN;
		for (size_t row = 0; row < facts.traces.row_count; row++) {
			point->value += (double)traces_value(&facts.traces, row, 0, facts.kind);
			if (!isnan(point->allocated))
				point->allocated +=
				    (double)traces_value(&facts.traces, row, 0, MEASURE_ALLOC);
		}
		point->error = sqrt(fmax(doubt.variance, 0));
		point->samples = doubt.samples;
		point->known = api_facts_known(&facts);
		point->rss_bytes = facts.origins[0].rss_bytes;
		snprintf(point->cause, sizeof(point->cause), "%.95s", facts.origins[0].cause);
		point->cause[utf8_valid_prefix(point->cause, strlen(point->cause))] =
		    '\0'; /* it may be cut */
	}
	api_facts_fini(&facts);
	return err;
}
