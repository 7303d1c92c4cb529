/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_answer.h"

#include "pprof/analysis/filtered_profile.h"
#include "pprof/analysis/late_names.h"
#include "pprof/analysis/merge.h"
#include "pprof/model/profile.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"
#include "serve/blob.h"
#include "serve/debug_answer.h"
#include "serve/route.h"

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

/* text: one line, or "" for strerror() of the error. */
static void refuse(struct reply *reply, int err, const char *text)
{
	reply_json_error(reply, status_of(err), *text ? text : strerror(-err));
}

static int decode(const struct blob *blob, struct blob_budget *budget, struct profile **profile, char *error,
    size_t error_bytes)
{
	int err = blob_decode(blob, budget, profile);

	if (err == -EBADMSG)
		snprintf(error, error_bytes, "no valid profile");
	if (err == -EFBIG)
		snprintf(error, error_bytes, "the profiles take too much memory");
	return err;
}

static int write_view(FILE *out, const struct api_question *question, const struct api_query *query,
    char *error, size_t error_bytes)
{
	struct api_input_profile *profiles = calloc(question->count + 1, sizeof(*profiles));
	const struct api_input input = {profiles, question->count, question->column_count, question->title};
	struct blob_budget budget = {API_ANSWER_MEMORY_MAX / 2, BLOB_FOREIGN_BYTES};
	int err = profiles ? 0 : -ENOMEM;

	for (size_t i = 0; i < question->count && !err; i++) {
		const struct task_item *item = &question->items[i];

		profiles[i] = (struct api_input_profile){NULL, item->column, item->owner, item->ended};
		err = decode(item->profile, &budget, &profiles[i].profile, error, error_bytes);
	}
	if (!err)
		err = api_view_write(out, question->view, query, &input, error, error_bytes);
	for (size_t i = 0; i < question->count && profiles; i++)
		profile_free(profiles[i].profile);
	free(profiles);
	return err;
}

/* ---- time lines */

static int compare(const void *left, const void *right)
{
	const struct api_point *a = left, *b = right;

	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* A profile without the values that the query asks for is no point. */
static int add_profile(struct api_point *points, size_t *count, const struct api_question *question,
    size_t index, const struct api_query *query, struct blob_budget *budget, char *error, size_t error_bytes)
{
	struct profile *profile;
	int err;

	budget->left_bytes = API_ANSWER_MEMORY_MAX / 2; /* one profile at a time */
	err = decode(question->items[index].profile, budget, &profile, error, error_bytes);
	if (err)
		return err;
	err = api_facts_point(&points[*count], profile, query);
	profile_free(profile);
	if (err == -ENODATA || err == -EINVAL)
		return 0;
	if (!err) {
		snprintf(points[*count].id, sizeof(points->id), "%s", question->items[index].id);
		++*count;
	}
	return err;
}

/* First the points of profiles, then those of lists. A list is about the whole heap, so its points are no
 * answer to a filter. owners: the number of each point's process. */
static int collect(const struct api_question *question, const struct api_query *query,
    struct api_point *points, size_t *owners, size_t *count, char *error, size_t error_bytes)
{
	struct blob_budget budget = {.foreign_left_bytes = BLOB_FOREIGN_BYTES};
	int err = 0;

	for (size_t i = 0; i < question->count && !err; i++) {
		owners[*count] = question->items[i].column;
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
		api_lists_write_timeline(out, &process, query);
	}
	free(points);
	free(owners);
	return err;
}

/* ---- files */

#define FILE_NAME       "profile.pb.gz"
#define FILE_MEMORY_MAX ((size_t)512 << 20)

struct file {
	const struct api_question *question;
	const struct parameters *parameters;
	const struct api_query *query;
	struct profile **profiles;
	size_t count;
	char *error;
	size_t error_bytes;
};

static int decode_all(struct file *file)
{
	struct blob_budget budget = {FILE_MEMORY_MAX, BLOB_FOREIGN_BYTES};
	int err = 0;

	file->profiles = calloc(file->question->count + 1, sizeof(struct profile *));
	if (!file->profiles)
		return -ENOMEM;
	while (file->count < file->question->count && !err) {
		err = decode(file->question->items[file->count].profile, &budget,
		    &file->profiles[file->count], file->error, file->error_bytes);
		file->count += !err;
	}
	return err;
}

/* One profile with the label is enough: a process that has freed everything has no ages. */
static int check_labels(struct file *file)
{
	const char *missing = NULL;

	for (size_t i = 0; i < file->count; i++) {
		missing = filter_missing_label(&file->query->filter, file->profiles[i]);
		if (!missing)
			return 0;
	}
	if (!missing)
		return 0;
	snprintf(file->error, file->error_bytes, "no sample has the label %s; record with --labels %s",
	    missing, missing);
	return -EINVAL;
}

/* Replaces each profile by the part that the filters select. */
static int select_all(struct file *file)
{
	struct late_names names = {0};
	int err = check_labels(file);

	for (size_t i = 0; i < file->count && !err && file->query->filter.thread; i++)
		err = late_names_learn_threads(&names, file->profiles[i]);
	for (size_t i = 0; i < file->count && !err; i++) {
		struct profile *part;

		err = filtered_profile_make(file->profiles[i], &file->query->filter, &names, &part);
		if (err)
			break;
		profile_free(file->profiles[i]);
		file->profiles[i] = part;
	}
	late_names_fini(&names);
	return err;
}

/* A comment, so that nobody takes the part for the state of a process. */
static void describe(struct profile *profile, const struct parameters *parameters)
{
	static const char *const names[] = {"focus", "ignore", "hide", "module", "thread", "size", "age"};
	char text[1024] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = parameters_get(parameters, names[i]);

		if (value && *value)
			text_append(text, sizeof(text), "%s %s=%s",
			    *text ? "" : "merged: what these filters select:", names[i], value);
	}
	utf8_disarm(text, strlen(text));
	profile_add_comment(profile, text);
}

static int make_file(struct file *file, struct blob **blob)
{
	struct profile *sum = NULL;
	const bool whole = api_query_selects_all(file->query);
	size_t culprit;
	int err = decode_all(file);

	if (!err && !whole)
		err = select_all(file);
	if (err)
		return err;
	err = merge_profiles(file->profiles, file->count, false, &sum, &culprit);
	if (err == -ENODATA)
		snprintf(file->error, file->error_bytes, "the profiles have no sample type in common");
	if (err)
		return err;
	if (!whole)
		describe(sum, file->parameters);
	err = profile_error(sum);
	if (!err)
		err = debug_answer_encode(sum, blob);
	profile_free(sum);
	return err;
}

/* ---- replies */

static const char *get(const void *context, const char *name)
{
	return parameters_get(context, name);
}

/* error: gets one line if the parameters are wrong. The caller calls parse_fini() in all cases. */
static int parse(const struct api_question *question, struct parameters *parameters, struct api_query *query,
    char *error, size_t error_bytes)
{
	int err;

	*query = (struct api_query){0};
	if (parameters_parse(parameters, question->query))
		return -ENOMEM;
	err = api_query_parse(query, get, parameters, error, error_bytes);
	query->max_bytes = API_ANSWER_MEMORY_MAX;
	return err;
}

static void parse_fini(struct parameters *parameters, struct api_query *query)
{
	api_query_fini(query);
	parameters_fini(parameters);
}

static void answer_json(struct reply *reply, const struct api_question *question,
    int (*write)(FILE *out, const struct api_question *question, const struct api_query *query, char *error,
        size_t error_bytes))
{
	struct parameters parameters;
	struct api_query query;
	char *text = NULL, error[512] = "";
	size_t length = 0;
	int err = parse(question, &parameters, &query, error, sizeof(error));
	FILE *out = err ? NULL : open_memstream(&text, &length);

	if (out) {
		err = write(out, question, &query, error, sizeof(error));
		if (fclose(out) && !err)
			err = -ENOMEM;
	} else if (!err) {
		err = -ENOMEM;
	}
	if (err) {
		free(text);
		refuse(reply, err, error);
	} else {
		reply_bytes(reply, 200, REPLY_JSON, blob_new(text, length));
	}
	parse_fini(&parameters, &query);
}

void api_answer_view(struct reply *reply, const struct api_question *question)
{
	answer_json(reply, question, write_view);
}

void api_answer_timeline(struct reply *reply, const struct api_question *question)
{
	answer_json(reply, question, write_timeline);
}

void api_answer_file(struct reply *reply, const struct api_question *question)
{
	struct parameters parameters;
	struct api_query query;
	char error[512] = "";
	struct file file = {question, &parameters, &query, NULL, 0, error, sizeof(error)};
	struct blob *blob = NULL;
	int err = parse(question, &parameters, &query, error, sizeof(error));

	if (!err && question->count == 1 && api_query_selects_all(&query))
		blob = blob_hold(question->items[0].profile);
	else if (!err)
		err = make_file(&file, &blob);
	if (err)
		refuse(reply, err, error);
	else
		debug_answer_file(reply, FILE_NAME, blob);
	for (size_t i = 0; i < file.count; i++)
		profile_free(file.profiles[i]);
	free(file.profiles);
	parse_fini(&parameters, &query);
}
