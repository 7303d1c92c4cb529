/* SPDX-License-Identifier: Apache-2.0 */
#include "push/delivery.h"

#include "pprof/analysis/since.h"
#include "pprof/analysis/stack_key.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/model/sample_types.h"
#include "pprof/text/clock.h"
#include "pprof/text/text.h"
#include "push/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names of processes and profiles */

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return stack_key_mix(hash, text, strlen(text) + 1);
}

static uint64_t mix_number(uint64_t hash, int64_t number)
{
	return stack_key_mix(hash, &number, sizeof(number));
}

/* What origin_same_process() compares. */
uint64_t delivery_process(const struct origin *origin)
{
	uint64_t key = mix_text(mix_number(1, origin->pid), origin->host);

	if (!origin_has_process(origin))
		return 0;
	key = mix_text(mix_text(key, origin->session), origin->event);
	key = *origin->session ? mix_number(key, origin->start_ns)
	                       : mix_text(mix_text(key, origin->program), origin->build_id);
	return key ? key : 1;
}

/* The UUID (version 8) of a profile. It is made of the profile's time, kind and process. If the profile does
 * not tell its process, it is made of the bytes. */
static void make_uuid(
    const struct origin *origin, const void *bytes, size_t length, char uuid[DELIVERY_UUID_BYTES])
{
	uint64_t process = delivery_process(origin), high, low;

	if (!process)
		process = stack_key_mix(3, bytes, length);
	high = mix_number(mix_number(process, origin->time_ns), origin->kind);
	low = mix_number(high, (int64_t)process);
	snprintf(uuid, DELIVERY_UUID_BYTES, "%08x-%04x-8%03x-%04x-%012llx", (unsigned int)(high >> 32),
	    (unsigned int)(high >> 16 & 0xffff), (unsigned int)(high & 0xfff),
	    (unsigned int)(0x8000 | (low >> 48 & 0x3fff)), (unsigned long long)(low & 0xffffffffffff));
}

/* ---- the delivery */

struct making {
	struct delivery *delivery;
	const struct target *target;
	const struct profile *profile;
	const struct origin *origin;
	const struct since *base;
	int64_t *values;
	bool *types;
};

enum { PART_ALL, PART_STATE, PART_TOTALS };

void delivery_fini(struct delivery *delivery)
{
	for (size_t i = 0; i < delivery->part_count; i++) {
		free(delivery->parts[i].profile);
		free(delivery->parts[i].packed);
	}
	labels_fini(&delivery->labels);
	*delivery = (struct delivery){0};
}

enum delivery_age delivery_age(const struct target *target, int64_t time_ns, int64_t now_ns)
{
	const struct target_limits *limits = target_limits(target);

	if (limits->past_ns && time_ns && time_ns < now_ns - (int64_t)limits->past_ns)
		return DELIVERY_TOO_OLD;
	if (limits->future_ns && time_ns > now_ns + (int64_t)limits->future_ns)
		return DELIVERY_TOO_NEW;
	return DELIVERY_IN_TIME;
}

/* "memory", "process_cpu" as other agents name them; an event's profile is named after its event. */
static void name_series(struct delivery *delivery, const struct making *m)
{
	char clean[LABELS_NAME_BYTES + 2];

	if (!*m->origin->event && strcmp(m->origin->period_type, "cpu") != 0)
		strcpy(delivery->series, "memory");
	else if (strcmp(m->origin->period_type, "cpu") == 0)
		strcpy(delivery->series, "process_cpu");
	else {
		labels_name_clean(m->origin->event, strlen(m->origin->event), clean);
		snprintf(delivery->series, sizeof(delivery->series), "%.60s", clean);
	}
}

/* The window of alloc_*: since the accepted profile, else since the start of the process. */
static void set_window(struct delivery *delivery, const struct making *m)
{
	int64_t since = m->base->time_ns ? m->base->time_ns : m->origin->start_ns;

	delivery->end_ns = m->origin->time_ns > 0 ? m->origin->time_ns : clock_unix_ns();
	if (m->origin->kind == ORIGIN_DELTA || !m->origin->ours)
		since = delivery->end_ns - m->origin->duration_ns;
	delivery->start_ns = since > 0 && since < delivery->end_ns ? since : delivery->end_ns;
}

/* Chooses the sample types of a part. Returns how many. alloc_* of a peak is that of the snapshot beside it.
 * */
static size_t choose_types(const struct making *m, int part)
{
	size_t chosen = 0;

	for (size_t i = 0; i < profile_sample_type_count(m->profile); i++) {
		const char *type = profile_sample_type(m->profile, i).type;
		bool total = since_is_total(m->origin, type);

		m->types[i] = target_wants(m->target, type) && (part != PART_STATE || !total) &&
		    (part != PART_TOTALS || total) && !(total && m->base->unknown) &&
		    !(m->origin->kind == ORIGIN_PEAK && sample_type_is_total(type));
		chosen += m->types[i];
	}
	return chosen;
}

static void add_fitted(struct fitted *sum, const struct fitted *more)
{
	sum->samples += more->samples;
	sum->other += more->other;
	sum->stacks_cut += more->stacks_cut;
	sum->strings_cut += more->strings_cut;
	if (more->other_share > sum->other_share)
		sum->other_share = more->other_share;
}

static int make_part(struct making *m, int part)
{
	struct delivery *delivery = m->delivery;
	struct delivery_part *made = &delivery->parts[delivery->part_count];
	const struct target_limits *limits = target_limits(m->target);
	double seconds = (double)(delivery->end_ns - delivery->start_ns) / 1e9;
	struct fit_input input = {
	    m->profile, m->values, m->types, .time_ns = delivery->end_ns, .limits = &limits->fit};
	char comment[128];
	struct fitted fitted;
	int err;

	if (!choose_types(m, part))
		return 0;
	/* A duration says that everything in a profile is a difference. */
	if (part == PART_TOTALS || m->origin->kind == ORIGIN_DELTA || *m->origin->event || !m->origin->ours)
		input.duration_ns = delivery->end_ns - delivery->start_ns;
	snprintf(comment, sizeof(comment),
	    part == PART_TOTALS ? "snapshot: delta, what was allocated in %.3f s"
	                        : "alloc_* is what was allocated in %.3f s",
	    seconds);
	if (part == PART_TOTALS)
		input.snapshot = comment;
	else if (part == PART_ALL && m->origin->kind == ORIGIN_LIVE && m->origin->ours)
		input.comment = comment;
	err = fit(&input, &fitted);
	if (err)
		return err;
	*made = (struct delivery_part){.profile = fitted.bytes, .profile_bytes = fitted.length};
	delivery->part_count++;
	add_fitted(&delivery->fitted, &fitted);
	err = gzip_encode(
	    made->profile, made->profile_bytes, GZIP_LEVEL_FAST, &made->packed, &made->packed_bytes);
	if (m->target->url.protocol != URL_OTLP) {
		free(made->profile);
		made->profile = NULL;
	}
	return err;
}

static int make_parts(struct making *m)
{
	bool apart =
	    m->target->url.protocol == URL_PARCA && m->origin->kind == ORIGIN_LIVE && m->origin->ours;
	int err;

	if (!apart)
		return make_part(m, PART_ALL);
	err = make_part(m, PART_STATE);
	return err ? err : make_part(m, PART_TOTALS);
}

int delivery_make(struct delivery *delivery, const struct target *target, const struct profile *profile,
    const struct origin *origin, const struct since *base)
{
	struct making m = {delivery, target, profile, origin, base, NULL, NULL};
	uint64_t process = delivery_process(origin);
	int err;

	*delivery = (struct delivery){0};
	name_series(delivery, &m);
	set_window(delivery, &m);
	if (process)
		snprintf(delivery->session, sizeof(delivery->session), "%016" PRIx64, process);
	err = labels_of_profile(&delivery->labels, profile, origin, &target->labels);
	if (err)
		return err;
	m.values = since_values(base, profile, origin, &delivery->fallen);
	m.types = calloc(profile_sample_type_count(profile) + 1, sizeof(*m.types));
	err = m.values && m.types ? make_parts(&m) : -ENOMEM;
	if (!err && delivery->part_count)
		make_uuid(origin, delivery->parts[0].packed, delivery->parts[0].packed_bytes, delivery->uuid);
	free(m.values);
	free(m.types);
	return err;
}

void delivery_cuts(const struct delivery *delivery, char *text, size_t text_bytes)
{
	const struct fitted *f = &delivery->fitted;

	text[0] = '\0';
	if (f->other)
		text_append(text, text_bytes,
		    "; %zu of %zu stacks, %.2g%% of the total at most, are under [other]", f->other,
		    f->other + f->samples, 100 * f->other_share);
	if (f->stacks_cut)
		text_append(text, text_bytes, "; %zu stacks lost frames in their middle", f->stacks_cut);
	if (f->strings_cut)
		text_append(text, text_bytes, "; %zu names cut", f->strings_cut);
	if (delivery->labels.left_out)
		text_append(text, text_bytes, "; %zu labels left out", delivery->labels.left_out);
	if (delivery->fallen)
		text_append(text, text_bytes, "; %" PRId64 " of alloc_* are under other stacks than before",
		    delivery->fallen);
}
