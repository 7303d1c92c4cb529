/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/split.h"

#include "pprof/analysis/filter.h"
#include "pprof/analysis/grouping.h"
#include "pprof/model/anonymous.h"
#include "pprof/model/profile.h"
#include "pprof/table/intern.h"

#include <string.h>

int split_make(struct split *split, struct intern *strings, const struct profile *profile, size_t sample,
    const char *thread, bool anonymize)
{
	char text[GROUPING_TEXT_BYTES], hashed[ANONYMOUS_BYTES];
	struct profile_label label;
	const char *name = text;
	int err = 0;

	*split = (struct split){0, 0};
	if (thread || filter_label(profile, sample, "thread_id", &label)) {
		grouping_name(GROUP_THREAD, profile, sample, thread, text);
		if (anonymize)
			name = anonymous_name('t', text, hashed);
		err = intern_add(strings, name, strlen(name), &split->thread);
	}
	if (err || !filter_label(profile, sample, "age", &label))
		return err;
	grouping_name(GROUP_AGE, profile, sample, NULL, text);
	return intern_add(strings, text, strlen(text), &split->age);
}
