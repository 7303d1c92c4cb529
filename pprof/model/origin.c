/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/model/profile.h"
#include "pprof/text/utf8.h"

/* What is too long is cut between characters: JSON is made of it. */
static void copy(char *to, size_t bytes, const char *from, size_t length)
{
	if (length >= bytes)
		length = utf8_valid_prefix(from, bytes - 1);
	memcpy(to, from, length);
	to[length] = '\0';
}

/* "pid=4711 comm=a program host=box": a program's name may have spaces. */
static void read_process(struct origin *origin, const char *text)
{
	const char *program = strstr(text, " comm="), *host = NULL;

	origin->pid = (pid_t)strtol(text + strlen("pid="), NULL, 10);
	if (!program)
		return;
	program += strlen(" comm=");
	for (const char *at = program; (at = strstr(at, " host=")); at++)
		host = at;
	copy(origin->program, sizeof(origin->program), program,
	    host ? (size_t)(host - program) : strlen(program));
	if (host)
		copy(origin->host, sizeof(origin->host), host + strlen(" host="),
		    strlen(host + strlen(" host=")));
}

/* A time that no recording can have is none, so that the difference of two times always has room. */
static int64_t time_of(int64_t time_ns)
{
	return time_ns > 0 && time_ns < INT64_MAX / 2 ? time_ns : 0;
}

/* "session=1795348560123456789-4711 start=1795348561000000000": what it says is only compared, and the
 * times shown. */
static void read_identity(struct origin *origin, const char *text)
{
	const char *session = text + strlen("session="), *start = strstr(session, " start=");

	if (!start)
		return;
	copy(origin->session, sizeof(origin->session), session, (size_t)(start - session));
	origin->session_ns = time_of(strtoll(session, NULL, 10));
	origin->start_ns = time_of(strtoll(start + strlen(" start="), NULL, 10));
}

/* Of the kernel's counters there is only what the heap does not explain ("slack"). */
static void read_resident(struct origin *origin, const char *text, const char *total)
{
	static const char anonymous[] = " anonymous=", slack[] = " slack=";
	const char *part = strstr(text, anonymous), *rest = strstr(text, slack);
	const int64_t bytes = part ? strtoll(part + strlen(anonymous), NULL, 10)
	    : rest                 ? strtoll(rest + strlen(slack), NULL, 10)
	                           : 0;

	origin->rss_bytes = strtoll(total, NULL, 10);
	if (origin->rss_bytes < 0)
		origin->rss_bytes = -1;
	origin->anonymous_bytes = bytes > 0 ? bytes : 0;
}

static void read_comment(struct origin *origin, const char *text, size_t *counts)
{
	static const char snapshot[] = "snapshot: ", samples[] = "samples: ", unseen[] = "not seen: ",
	                  attached[] = "attached: ";
	static const char event[] = "event: ", merged[] = "merged: ", rss[] = "rss: total=";

	if (strncmp(text, "heaptap ", 8) == 0) {
		origin->ours = true;
	} else if (!origin->ours) {
		return;
	} else if (strncmp(text, "pid=", 4) == 0) {
		read_process(origin, text);
		origin->process_count++;
	} else if (strncmp(text, "session=", 8) == 0) {
		read_identity(origin, text);
	} else if (strncmp(text, ORIGIN_NAME, strlen(ORIGIN_NAME)) == 0) {
		copy(origin->name, sizeof(origin->name), text + strlen(ORIGIN_NAME),
		    strlen(text + strlen(ORIGIN_NAME)));
	} else if (strncmp(text, event, strlen(event)) == 0) {
		copy(origin->event, sizeof(origin->event), text + strlen(event),
		    strcspn(text + strlen(event), ","));
	} else if (strncmp(text, merged, strlen(merged)) == 0) {
		copy(origin->merged, sizeof(origin->merged), text + strlen(merged),
		    strlen(text + strlen(merged)));
	} else if (strncmp(text, snapshot, strlen(snapshot)) == 0) {
		copy(origin->cause, sizeof(origin->cause), text + strlen(snapshot),
		    strlen(text + strlen(snapshot)));
	} else if (strncmp(text, samples, strlen(samples)) == 0) {
		copy(origin->samples, sizeof(origin->samples), text + strlen(samples),
		    strlen(text + strlen(samples)));
		++*counts;
	} else if (strncmp(text, attached, strlen(attached)) == 0) {
		copy(origin->attached, sizeof(origin->attached), text + strlen(attached),
		    strlen(text + strlen(attached)));
		origin->gaps |= ORIGIN_GAP_ATTACHED;
	} else if (strncmp(text, ORIGIN_TAKEN_OVER, strlen(ORIGIN_TAKEN_OVER)) == 0) {
		copy(origin->taken_over, sizeof(origin->taken_over), text + strlen(ORIGIN_TAKEN_OVER),
		    strlen(text + strlen(ORIGIN_TAKEN_OVER)));
		origin->gaps |= ORIGIN_GAP_TAKEN_OVER;
	} else if (strncmp(text, ORIGIN_LIMITED, strlen(ORIGIN_LIMITED)) == 0) {
		origin->gaps |= ORIGIN_GAP_LIMITED;
	} else if (strstr(text, ORIGIN_PAUSED)) {
		origin->gaps |= ORIGIN_GAP_PAUSED;
	} else if (strncmp(text, "labels: ", 8) == 0) {
		origin->is_daemons = true;
	} else if (strncmp(text, rss, strlen(rss)) == 0) {
		read_resident(origin, text, text + strlen(rss));
	} else if (strncmp(text, unseen, strlen(unseen)) == 0 && !*origin->unseen) {
		copy(origin->unseen, sizeof(origin->unseen), text + strlen(unseen),
		    strlen(text + strlen(unseen)));
	}
}

/* "4 profiles of 4 processes: nginx (4); samples: 2408 taken, 0 lost stacks" */
static void read_merged_samples(struct origin *origin)
{
	const char *text = strstr(origin->merged, ORIGIN_MERGED_SAMPLES);

	origin->samples[0] = '\0';
	if (!text)
		return;
	copy(origin->samples, sizeof(origin->samples), text + strlen(ORIGIN_MERGED_SAMPLES),
	    strlen(text + strlen(ORIGIN_MERGED_SAMPLES)));
	origin->merged[text - origin->merged] = '\0';
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The first mapping is the program's, but it may have only the name of the command ("./server"): then a later
 * mapping has the file's path. */
static void read_program(struct origin *origin, const struct profile *profile)
{
	struct profile_mapping first = profile_mapping(profile, 1), mapping = first;
	const char *name = base_name(first.filename);

	for (uint32_t id = 2; id <= profile_mapping_count(profile) && !*mapping.build_id; id++) {
		struct profile_mapping other = profile_mapping(profile, id);

		if (*other.build_id && *other.filename == '/' && strcmp(base_name(other.filename), name) == 0)
			mapping = other;
	}
	copy(origin->path, sizeof(origin->path), mapping.filename, strlen(mapping.filename));
	copy(origin->build_id, sizeof(origin->build_id), mapping.build_id, strlen(mapping.build_id));
	if (!*origin->program)
		copy(origin->program, sizeof(origin->program), name, strlen(name));
}

void origin_read(struct origin *origin, const struct profile *profile)
{
	struct profile_value_type period = profile_period_type(profile);
	size_t counts = 0;

	memset(origin, 0, sizeof(*origin));
	origin->rss_bytes = -1;
	for (size_t i = 0; i < profile_comment_count(profile); i++)
		read_comment(origin, profile_comment(profile, i), &counts);
	if (origin->process_count > 1 && !*origin->merged) /* added up by another tool */
		snprintf(origin->merged, sizeof(origin->merged), "%zu processes", origin->process_count);
	if (*origin->merged) { /* one of its profiles' */
		origin->cause[0] = '\0';
		origin->rss_bytes = -1;
	}
	if (*origin->merged ||
	    counts > 1) /* likewise; equal comments are there once, so no sum can be made */
		read_merged_samples(origin);
	if (profile_mapping_count(profile))
		read_program(origin, profile);
	if (!*origin->name || *origin->merged)
		copy(origin->name, sizeof(origin->name), origin->program, strlen(origin->program));
	if (strncmp(origin->cause, "peak", 4) == 0)
		origin->kind = ORIGIN_PEAK;
	/* Our profiles of an event have a duration too, but each goes back to the beginning of its
	 * process. */
	if (strncmp(origin->cause, "delta", 5) == 0 || (!*origin->event && profile_duration_ns(profile) > 0))
		origin->kind = ORIGIN_DELTA;
	origin->time_ns = time_of(profile_time_ns(profile));
	origin->duration_ns = profile_duration_ns(profile);
	origin->period = profile_period(profile);
	copy(origin->period_type, sizeof(origin->period_type), period.type, strlen(period.type));
	copy(origin->period_unit, sizeof(origin->period_unit), period.unit, strlen(period.unit));
}

bool origin_has_process(const struct origin *origin)
{
	return origin->ours && origin->pid && *origin->session && !*origin->merged;
}

bool origin_same_process(const struct origin *a, const struct origin *b)
{
	if (!origin_has_process(a) || !origin_has_process(b) || a->pid != b->pid ||
	    strcmp(a->host, b->host) != 0 || strcmp(a->session, b->session) != 0)
		return false;
	/* Events are first seen at another time than the heap: with them the program tells. */
	if (strcmp(a->event, b->event) == 0)
		return a->start_ns == b->start_ns;
	return strcmp(a->program, b->program) == 0;
}
