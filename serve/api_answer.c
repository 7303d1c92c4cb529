/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_answer.h"

#include "pprof/profile/profile.h"
#include "serve/decoded.h"
#include "serve/parameters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static unsigned int status_of(int err)
{
	switch (err) {
	case -EINVAL:
		return 400;
	case -ENODATA:
		return 404;
	case -EFBIG:
	case -EOVERFLOW:
		return 413;
	default:
		return 500;
	}
}

void api_answer_refuse(struct reply *reply, int err, const char *text)
{
	reply_json_error(reply, status_of(err), *text ? text : strerror(-err));
}

static int decode(const struct blob *blob, struct decoded_budget *budget, struct profile **profile,
    char *error, size_t error_bytes)
{
	int err = decoded_make(blob, budget, profile);

	if (err == -EBADMSG)
		snprintf(error, error_bytes, "no valid profile");
	if (err == -EFBIG)
		snprintf(error, error_bytes, "the profiles take too much memory");
	return err;
}

static void profiles_free(struct profile **profiles, size_t count)
{
	for (size_t i = 0; i < count && profiles; i++)
		profile_free(profiles[i]);
	free(profiles);
}

static int write_view(FILE *out, const struct api_question *question, const struct api_query *query,
    char *error, size_t error_bytes)
{
	struct profile **profiles = calloc(question->count + 1, sizeof(struct profile *));
	const struct api_input input = {profiles, question->columns, question->count, question->column_count,
	    question->title, question->profile_owners, question->profile_ended};
	struct decoded_budget budget = {API_ANSWER_MEMORY_MAX / 2, DECODED_FOREIGN_BYTES};
	int err = profiles ? 0 : -ENOMEM;

	for (size_t i = 0; i < question->count && !err; i++)
		err = decode(question->blobs[i], &budget, &profiles[i], error, error_bytes);
	if (!err)
		err = api_view_write(out, question->view, query, &input, error, error_bytes);
	profiles_free(profiles, question->count);
	return err;
}

/* ---- time lines */

static int compare(const void *left, const void *right)
{
	const struct api_point *a = left, *b = right;

	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* A profile that does not have what is asked for is no point. */
static int add_profile(struct api_point *points, size_t *count, const struct api_question *question,
    size_t index, const struct api_query *query, struct decoded_budget *budget, char *error,
    size_t error_bytes)
{
	struct profile *profile;
	int err;

	budget->left_bytes = API_ANSWER_MEMORY_MAX / 2; /* one at a time */
	err = decode(question->blobs[index], budget, &profile, error, error_bytes);
	if (err)
		return err;
	err = api_point_make(&points[*count], profile, query);
	profile_free(profile);
	if (err == -ENODATA || err == -EINVAL)
		return 0;
	if (!err) {
		snprintf(points[*count].id, sizeof(points->id), "%s", question->ids[index]);
		++*count;
	}
	return err;
}

/* Those of the profiles first, then those of lists, which are of the whole heap: they are no answer to a
 * filter. owners: whose each point is. */
static int collect(const struct api_question *question, const struct api_query *query,
    struct api_point *points, size_t *owners, size_t *count, char *error, size_t error_bytes)
{
	struct decoded_budget budget = {.foreign_left_bytes = DECODED_FOREIGN_BYTES};
	int err = 0;

	for (size_t i = 0; i < question->count && !err; i++) {
		owners[*count] = question->columns[i];
		err = add_profile(points, count, question, i, query, &budget, error, error_bytes);
	}
	for (size_t i = 0; i < question->point_count && !err && api_query_is_plain(query); i++) {
		owners[*count] = question->owners ? question->owners[i] : 0;
		points[(*count)++] = question->points[i];
	}
	return err;
}

static int add_up(
    const struct api_question *question, struct api_point **points, const size_t *owners, size_t *count)
{
	struct timeline_sum_event *events = calloc(*count + 1, sizeof(*events));
	struct api_point *sums = calloc(TIMELINE_SUM_POINTS + 1, sizeof(*sums));
	const struct timeline_sum_input input = {
	    events, *count, question->members, question->column_count, question->from_ns};
	int err = events && sums ? 0 : -ENOMEM;

	for (size_t i = 0; i < *count && !err; i++)
		events[i] = (struct timeline_sum_event){(*points)[i], owners[i]};
	if (!err)
		err = timeline_sum_make(&input, sums, count);
	free(events);
	if (err) {
		free(sums);
		return err;
	}
	free(*points);
	*points = sums;
	return 0;
}

static int write_timeline(FILE *out, const struct api_question *question, const struct api_query *query,
    char *error, size_t error_bytes)
{
	const size_t room = question->count + question->point_count + 1;
	struct api_point *points = calloc(room, sizeof(*points));
	size_t *owners = calloc(room, sizeof(*owners)), count = 0;
	struct api_process process = *question->process;
	int err = points && owners ? 0 : -ENOMEM;

	if (!err)
		err = collect(question, query, points, owners, &count, error, error_bytes);
	if (!err && question->members)
		err = add_up(question, &points, owners, &count);
	if (!err) {
		if (count)
			qsort(points, count, sizeof(*points), compare);
		process.points = points;
		process.point_count = count;
		process.is_sum = question->members != NULL;
		api_timeline_write(out, &process, query);
	}
	free(points);
	free(owners);
	return err;
}

static const char *get(const void *context, const char *name)
{
	return parameters_get(context, name);
}

void api_answer_make(struct reply *reply, const struct api_question *question)
{
	struct parameters parameters;
	struct api_query query;
	char *text = NULL, error[512] = "";
	size_t length = 0;
	FILE *out;
	int err;

	if (parameters_parse(&parameters, question->query)) {
		api_answer_refuse(reply, -ENOMEM, "");
		return;
	}
	err = api_query_parse(&query, get, &parameters, error, sizeof(error));
	query.max_bytes = API_ANSWER_MEMORY_MAX;
	out = err ? NULL : open_memstream(&text, &length);
	if (out) {
		err = question->kind == API_ANSWER_TIMELINE
		    ? write_timeline(out, question, &query, error, sizeof(error))
		    : write_view(out, question, &query, error, sizeof(error));
		if (fclose(out) && !err)
			err = -ENOMEM;
	} else if (!err) {
		err = -ENOMEM;
	}
	if (err) {
		free(text);
		api_answer_refuse(reply, err, error);
	} else {
		reply_bytes(reply, 200, REPLY_JSON, blob_new(text, length));
	}
	api_query_fini(&query);
	parameters_fini(&parameters);
}
