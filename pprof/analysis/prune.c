/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/prune.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/model/profile.h"
#include "pprof/text/clock.h"
#include "pprof/text/pattern.h"

enum {
	/* of CPU time: enough for ten million functions */
	SECONDS_MAX = 2,
	/* between two looks at the clock, which cost more than most names */
	LOOK_FUNCTIONS = 64,
	LOOK_BYTES = 64 * 1024,
};

/* Length of the name without its argument list, as pprof matches it; skips parentheses that are part of a
 * name. */
static size_t name_length(const char *name)
{
	static const char *const reserved[] = {"(anonymous namespace)", "operator()"};
	const char *at = name;

	while (*at) {
		bool skipped = false;

		for (size_t i = 0; i < 2 && !skipped; i++) {
			size_t length = strlen(reserved[i]);

			if (strncmp(at, reserved[i], length) == 0) {
				at += length;
				skipped = true;
			}
		}
		if (!skipped && *at++ == '(')
			return (size_t)(at - 1 - name);
	}
	return (size_t)(at - name);
}

static int matches(struct pattern *drop, struct pattern *keep, const char *name, bool *found)
{
	char *plain;

	*found = false;
	if (*name == '.')
		name++;
	plain = strndup(name, name_length(name));
	if (!plain)
		return -ENOMEM;
	*found = pattern_matches(drop, plain) && !(keep && pattern_matches(keep, plain));
	free(plain);
	return 0;
}

/* Matches every function once; locations then look the result up. -ETIME if that takes too long: a name's
 * match is bounded (pattern.h), but a hostile profile has a million names that cost almost that. */
static int match_functions(const struct profile *p, struct pattern *drop, struct pattern *keep, bool *dropped)
{
	const uint64_t end_ns = clock_thread_cpu_ns() + SECONDS_MAX * UINT64_C(1000000000);
	size_t functions = 0, bytes = 0;

	for (uint32_t id = 1; id <= profile_function_count(p); id++) {
		const char *name = profile_function(p, id).name;
		int err = *name ? matches(drop, keep, name, &dropped[id]) : 0;

		if (err)
			return err;
		bytes += strlen(name);
		if (++functions < LOOK_FUNCTIONS && bytes < LOOK_BYTES)
			continue;
		if (clock_thread_cpu_ns() > end_ns)
			return -ETIME;
		functions = bytes = 0;
	}
	return 0;
}

static int mark_locations(struct prune *prune, const struct profile *p, const bool *dropped)
{
	for (uint32_t id = 1; id <= profile_location_count(p); id++) {
		struct profile_location location = profile_location(p, id);
		size_t cut = location.line_count;

		while (cut && !dropped[location.lines[cut - 1].function])
			cut--;
		if (cut)
			prune->cut[id] = cut == location.line_count ? PRUNE_WHOLE : (uint32_t)cut;
	}
	return 0;
}

static int mark(struct prune *prune, const struct profile *p, struct pattern *drop, struct pattern *keep)
{
	bool *dropped = calloc((size_t)profile_function_count(p) + 1, sizeof(*dropped));
	int err = dropped ? 0 : -ENOMEM;

	prune->cut = calloc((size_t)profile_location_count(p) + 1, sizeof(*prune->cut));
	if (!prune->cut)
		err = -ENOMEM;
	if (!err)
		err = match_functions(p, drop, keep, dropped);
	if (!err)
		err = mark_locations(prune, p, dropped);
	free(dropped);
	return err;
}

int prune_init(struct prune *prune, const struct profile *profile)
{
	struct pattern *drop = NULL, *keep = NULL;
	const char *keep_regex = profile_keep_frames(profile);
	char error[256];
	int err;

	memset(prune, 0, sizeof(*prune));
	if (!*profile_drop_frames(profile))
		return 0;
	err = pattern_new(profile_drop_frames(profile), PATTERN_WHOLE, &drop, error, sizeof(error));
	if (!err && *keep_regex)
		err = pattern_new(keep_regex, PATTERN_WHOLE, &keep, error, sizeof(error));
	if (!err)
		err = mark(prune, profile, drop, keep);
	pattern_free(drop);
	pattern_free(keep);
	if (err)
		prune_fini(prune);
	return err == -ENOMEM ? err : 0;
}

void prune_fini(struct prune *prune)
{
	free(prune->cut);
	prune->cut = NULL;
}

size_t prune_stack(const struct prune *prune, const struct profile_sample *sample)
{
	bool user = false;

	for (size_t i = sample->depth; prune->cut && i-- > 0;) {
		uint32_t cut = prune->cut[sample->locations[i]];

		if (!cut)
			user = true;
		else if (user)
			return cut == PRUNE_WHOLE ? i + 1 : i;
	}
	return 0;
}

uint32_t prune_lines(const struct prune *prune, uint32_t location)
{
	uint32_t cut = prune->cut ? prune->cut[location] : 0;

	return cut == PRUNE_WHOLE ? 0 : cut;
}
