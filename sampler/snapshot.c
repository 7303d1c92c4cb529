/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot.h"

#include "pprof/drop_frames.h"
#include "pprof/encode.h"
#include "pprof/file.h"
#include "pprof/gzip.h"
#include "sampler/naming.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void comment_losses(struct profile *profile, const struct snapshot *s)
{
	const struct process_counters *c = &s->process->counters;
	const struct region_place *place = region_place(s->process->image->region, s->process->place);
	char text[1024];
	int at = snprintf(text, sizeof(text), "samples: %" PRIu64 " taken, %" PRIu64 " lost stacks", s->view.allocated.samples,
	    s->view.lost_alloc.samples);
	for (uint32_t i = 0; i < REGION_LOSS_COUNT && at < (int)sizeof(text) - 64; i++) {
		struct tally tally = region_read_tally(&place->lost[i]);
		if (tally.samples)
			at += snprintf(text + at, sizeof(text) - (size_t)at, ", %s %" PRIu64, region_loss_name((enum region_loss)i),
			    tally.samples);
	}
	if (c->copied && at < (int)sizeof(text) - 64)
		at += snprintf(text + at, sizeof(text) - (size_t)at, ", copied by the hook %" PRIu64, c->copied);
	for (uint32_t i = 0; i < UNWIND_OUTCOMES && at < (int)sizeof(text) - 64; i++)
		if (c->outcome[i] && i != UNWIND_COMPLETE)
			at += snprintf(text + at, sizeof(text) - (size_t)at, ", %s %" PRIu64,
			    unwind_outcome_name((enum unwind_outcome)i), c->outcome[i]);
	profile_add_comment(profile, text);
}

static void add_comments(struct profile *profile, const struct snapshot *s)
{
	char text[1024];
	const char *slash = strrchr(s->process->name, '/');
	profile_add_comment(profile, "heaptap " HEAPTAP_VERSION);
	snprintf(text, sizeof(text), "pid=%d comm=%s host=%s", (int)s->process->pid,
	    slash ? slash + 1 : s->process->name, s->host);
	profile_add_comment(profile, text);
	snprintf(text, sizeof(text), "snapshot: %s", s->cause);
	profile_add_comment(profile, text);
	comment_losses(profile, s);
	snprintf(text, sizeof(text), "in use: %.0f +- %.0f bytes, %.0f +- %.0f objects (one standard error)",
	    s->view.inuse.bytes, sqrt(s->view.inuse.bytes_variance), s->view.inuse.objects,
	    sqrt(s->view.inuse.objects_variance));
	profile_add_comment(profile, text);
	profile_add_comment(profile, s->session);
}

static int64_t rounded(uint64_t value, int shift)
{
	return (int64_t)((value >> shift) + (value >> (shift - 1) & 1));
}

static int add_row(struct profile *profile, struct naming *naming, const struct heap_row *row)
{
	const uint32_t *locations;
	uint32_t lost;
	size_t depth = 1;
	if (row->stack == UINT32_MAX) {
		lost = naming_marker(naming, "[lost stack]");
		locations = &lost;
	} else {
		depth = naming_stack(naming, row->stack, &locations);
	}
	const int64_t values[4] = {
	    rounded(row->alloc_objects_q16, WEIGHT_OBJECTS_SHIFT),
	    rounded(row->alloc_bytes_q8, WEIGHT_BYTES_SHIFT),
	    rounded(row->inuse_objects_q16, WEIGHT_OBJECTS_SHIFT),
	    rounded(row->inuse_bytes_q8, WEIGHT_BYTES_SHIFT),
	};
	/* The mean size of this stack's blocks, as Go writes it: the estimates of bytes and objects have one ratio. */
	bool allocated = values[0] > 0;
	int64_t objects = allocated ? values[0] : values[2], bytes = allocated ? values[1] : values[3];
	const struct profile_label labels[2] = {
	    {.key = "bytes", .num = objects > 0 ? (bytes + objects / 2) / objects : bytes, .unit = "bytes"},
	    {.key = "inherited", .str = "yes"},
	};
	return profile_add_sample(profile, locations, depth, values, labels, row->inherited ? 2 : 1);
}

static int fill(struct profile *profile, const struct snapshot *s)
{
	static const char *const types[4][2] = {
	    {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < 4; i++)
		profile_add_sample_type(profile, types[i][0], types[i][1]);
	profile_set_default_sample_type(profile, "inuse_space");
	profile_set_period(profile, "space", "bytes", (int64_t)s->period_bytes);
	profile_set_time(profile, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, 0);
	profile_set_drop_frames(profile, DROP_FRAMES_HEAP);
	add_comments(profile, s);

	bool *used = calloc(stacks_node_count(s->process->stacks), sizeof(*used));
	if (!used)
		return -ENOMEM;
	for (size_t i = 0; i < s->view.count; i++)
		if (s->view.rows[i].stack != UINT32_MAX)
			used[s->view.rows[i].stack] = true;
	struct naming *naming = naming_new(profile, s->process, used, s->detail);
	free(used);
	if (!naming)
		return -ENOMEM;
	int error = 0;
	for (size_t i = 0; i < s->view.count && !error; i++)
		error = add_row(profile, naming, &s->view.rows[i]);
	naming_free(naming);
	profile_compute_mapping_flags(profile);
	return error;
}

int snapshot_write(const struct snapshot *s)
{
	struct profile *profile = profile_new();
	uint8_t *raw = NULL, *packed = NULL;
	size_t raw_bytes, packed_bytes;
	if (!profile)
		return -ENOMEM;
	int error = fill(profile, s);
	if (!error)
		error = encode_profile(profile, &raw, &raw_bytes);
	if (!error)
		error = gzip_encode(raw, raw_bytes, GZIP_LEVEL_SMALL, &packed, &packed_bytes);
	if (!error)
		error = file_publish(s->path, packed, packed_bytes, 0600, FILE_MKDIR);
	free(raw);
	free(packed);
	profile_free(profile);
	return error;
}
