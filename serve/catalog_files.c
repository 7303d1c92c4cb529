/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog_files.h"

#include "pprof/codec/decode.h"
#include "pprof/model/labels.h"
#include "pprof/model/profile.h"
#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "pprof/text/utf8.h"
#include "sampler/core/control_client.h"
#include "serve/file_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one file */

static void copy(char *to, size_t room, const char *from)
{
	size_t length = strlen(from);

	if (length >= room)
		length = utf8_valid_prefix(from, room - 1);
	memcpy(to, from, length);
	to[length] = '\0';
}

static void note_origin(struct catalog_file *file, const struct origin *origin)
{
	const char *slash = strrchr(file->path, '/');

	file->kind = origin->kind;
	file->pid = origin->pid;
	copy(file->program, sizeof(file->program),
	    origin->program[0] ? origin->program
	        : slash        ? slash + 1
	                       : file->path);
	copy(file->name, sizeof(file->name), origin->name[0] ? origin->name : file->program);
	copy(file->host, sizeof(file->host), origin->host);
	copy(file->session, sizeof(file->session), origin->session);
	copy(file->event, sizeof(file->event), origin->event);
	copy(file->cause, sizeof(file->cause), origin->merged[0] ? origin->merged : origin->cause);
	file->session_ns = origin->session_ns;
	file->start_ns = origin->start_ns;
	file->time_ns = origin->time_ns ? origin->time_ns : file->mtime_ns;
	file->duration_ns = origin->duration_ns;
	if (!origin_has_process(origin)) { /* a sum, or another tool's file: a process of its own */
		file->pid = 0;
		file->start_ns = 0;
	}
}

/* Reads the service, which is in the profiles of the daemon. */
static void note_service(struct catalog_file *file, const struct profile *profile)
{
	struct labels labels = {0};
	const char *service;

	for (size_t i = 0; i < profile_comment_count(profile); i++) {
		const char *text = profile_comment(profile, i);

		if (strncmp(text, LABELS_COMMENT, strlen(LABELS_COMMENT)) != 0)
			continue;
		if (labels_add_comment(&labels, text + strlen(LABELS_COMMENT)))
			break;
	}
	service = labels_find(&labels, "service_name");
	copy(file->service, sizeof(file->service), service ? service : "");
	labels_fini(&labels);
}

static bool is_heap(const struct catalog_file *file)
{
	return file->kind == ORIGIN_LIVE && !file->event[0];
}

/* Reads the bytes of a file. 0, or -errno if they are no profile. */
static int read_profile(struct catalog_file *file, const struct blob *bytes)
{
	const struct api_query all = {.max_bytes = CATALOG_FILE_MEMORY};
	struct origin *origin = malloc(sizeof(*origin));
	struct profile *profile;

	if (!origin)
		return -ENOMEM;
	if (decode_profile(bytes->bytes, bytes->length, CATALOG_FILE_MEMORY, &profile) != DECODE_OK) {
		free(origin);
		return -EINVAL;
	}
	origin_read(origin, profile);
	note_origin(file, origin);
	note_service(file, profile);
	if (!is_heap(file) || api_facts_point(&file->point, profile, &all))
		file->point.time_ns = 0;
	profile_free(profile);
	free(origin);
	return 0;
}

static void free_file(struct catalog_file *file)
{
	if (file)
		free(file->path);
	free(file);
}

const char *catalog_file_kind(const struct catalog_file *file)
{
	if (file->event[0])
		return file->event;
	return file->kind == ORIGIN_PEAK ? "peak" : file->kind == ORIGIN_DELTA ? "delta" : "live";
}

bool catalog_file_is_state(const struct catalog_file *file)
{
	return file->state == CATALOG_FILE_READ && is_heap(file);
}

bool catalog_file_is_last(const struct catalog_file *file)
{
	return strncmp(file->cause, "exit", 4) == 0 || strncmp(file->cause, "detach", 6) == 0;
}

/* ---- all of them */

enum {
	READ_AT_ONCE = 4,
	PATIENCE_MS = 5000,
};

struct catalog_files {
	struct broker_client *broker;
	struct jobs *jobs;
	void (*finished)(void *context);
	void *context;
	struct catalog_file **files; /* by number */
	size_t count, room;
	size_t next; /* all files before it are read */
	unsigned int reading;
	bool listing, told; /* listing: a list is awaited. told: finished() was called for this scan */
	uint64_t began_ns;
};

struct read_job {
	struct job job;
	struct catalog_files *scan;
	struct catalog_file *file;
	struct catalog_file facts; /* filled in by the job */
	struct blob *bytes;
	int error;
};

struct catalog_files *catalog_files_new(
    struct broker_client *broker, struct jobs *jobs, void (*finished)(void *context), void *context)
{
	struct catalog_files *scan = calloc(1, sizeof(*scan));

	if (scan)
		*scan = (struct catalog_files){
		    .broker = broker, .jobs = jobs, .finished = finished, .context = context, .told = true};
	return scan;
}

void catalog_files_free(struct catalog_files *scan)
{
	for (size_t i = 0; scan && i < scan->count; i++)
		free_file(scan->files[i]);
	if (scan)
		free(scan->files);
	free(scan);
}

static void tell(struct catalog_files *scan)
{
	if (scan->told)
		return;
	scan->told = true;
	scan->finished(scan->context);
}

/* ---- reading files */

static void read_more(struct catalog_files *scan);

/* Files are not removed from memory while they are being read: see catalog_files_drop_gone(). */
static void settle(struct catalog_files *scan, struct catalog_file *file, int error)
{
	file->state = error ? CATALOG_FILE_BAD : CATALOG_FILE_READ;
	scan->reading--;
	read_more(scan);
}

static void run_read(struct job *job)
{
	struct read_job *read = (struct read_job *)job;

	read->error = read_profile(&read->facts, read->bytes);
}

static void done_read(struct job *job)
{
	struct read_job *read = (struct read_job *)job;

	if (!read->error) {
		read->facts.there = read->file->there;
		*read->file = read->facts;
	}
	blob_drop(read->bytes);
	settle(read->scan, read->file, read->error);
	free(read);
}

struct opening {
	struct catalog_files *scan;
	struct catalog_file *file;
};

static void on_open(void *context, const struct broker_reply *reply, int fd)
{
	struct opening opening = *(struct opening *)context;
	struct read_job *read = calloc(1, sizeof(*read));
	int error = reply->error ? reply->error : fd < 0 ? -EPROTO : 0;

	free(context);
	if (!error && (reply->bytes > CATALOG_FILE_MEMORY || !read))
		error = read ? -EFBIG : -ENOMEM;
	if (!error)
		read->bytes = blob_read(fd, reply->bytes, &error);
	else if (fd >= 0)
		close(fd);
	if (!error) {
		read->job = (struct job){.run = run_read, .done = done_read};
		read->scan = opening.scan;
		read->file = opening.file;
		read->facts = *opening.file;
		if (jobs_submit(opening.scan->jobs, &read->job))
			return;
		error = -EBUSY;
	}
	if (read)
		blob_drop(read->bytes);
	free(read);
	settle(opening.scan, opening.file, error);
}

static bool read_one(struct catalog_files *scan, struct catalog_file *file)
{
	const struct broker_question question = {.verb = BROKER_OPEN, .file = file->number};
	struct opening *opening = malloc(sizeof(*opening));

	if (!opening)
		return false;
	*opening = (struct opening){scan, file};
	if (!broker_client_ask(scan->broker, &question, on_open, opening)) {
		free(opening);
		return false;
	}
	file->state = CATALOG_FILE_BEING_READ;
	scan->reading++;
	return true;
}

static void read_more(struct catalog_files *scan)
{
	while (scan->reading < READ_AT_ONCE && scan->next < scan->count) {
		struct catalog_file *file = scan->files[scan->next];

		if (file->state == CATALOG_FILE_UNREAD && file->there && !read_one(scan, file))
			break;
		scan->next++;
	}
	if (!scan->reading && !scan->listing && scan->next >= scan->count)
		tell(scan);
}

/* ---- the list */

void catalog_files_drop_gone(struct catalog_files *scan)
{
	size_t kept = 0;

	for (size_t i = 0; scan && i < scan->count; i++) {
		if (scan->files[i]->there || scan->files[i]->state == CATALOG_FILE_BEING_READ)
			scan->files[kept++] = scan->files[i];
		else
			free_file(scan->files[i]);
	}
	if (!scan || kept == scan->count)
		return;
	scan->count = kept;
	scan->next = 0; /* the places have changed: looks again for unread files */
}

static struct catalog_file *find(const struct catalog_files *scan, size_t count, uint64_t number)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (scan->files[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && scan->files[low]->number == number ? scan->files[low] : NULL;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = (*(struct catalog_file *const *)left)->number;
	uint64_t b = (*(struct catalog_file *const *)right)->number;

	return a < b ? -1 : a > b;
}

static void note(struct catalog_files *scan, size_t known, const struct file_list_item *item)
{
	struct catalog_file *file = find(scan, known, item->number);

	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file || !(file->path = strdup(item->path)) ||
		    array_reserve(
		        &scan->files, &scan->room, scan->count + 1, sizeof(struct catalog_file *))) {
			free_file(file);
			return;
		}
		file->number = item->number;
		scan->files[scan->count++] = file;
	} else if (file->state != CATALOG_FILE_BEING_READ &&
	    (file->bytes != item->bytes || file->mtime_ns != item->mtime_ns)) {
		file->state = CATALOG_FILE_UNREAD;
	}
	file->bytes = item->bytes;
	file->mtime_ns = item->mtime_ns;
	file->there = true;
}

static void on_list(void *context, const struct broker_reply *reply, int fd)
{
	struct catalog_files *scan = context;
	struct file_list list = {0};
	void *text = NULL;
	int error = reply->error ? reply->error : fd < 0 ? -EPROTO : 0;
	size_t known = scan->count;

	scan->listing = false;
	if (!error)
		error = control_client_read(fd, reply->bytes, &text);
	else if (fd >= 0)
		close(fd);
	if (!error)
		error = file_list_parse(&list, text, (size_t)reply->bytes);
	for (size_t i = 0; i < known && !error; i++)
		scan->files[i]->there = false;
	for (size_t i = 0; i < list.count && !error; i++)
		note(scan, known, &list.items[i]);
	file_list_fini(&list);
	if (scan->count)
		qsort(scan->files, scan->count, sizeof(struct catalog_file *), compare);
	scan->next = 0;
	read_more(scan);
}

bool catalog_files_begin(struct catalog_files *scan)
{
	const struct broker_question question = {.verb = BROKER_SCAN};

	if (scan->listing || !broker_client_ask(scan->broker, &question, on_list, scan))
		return false;
	scan->listing = true;
	scan->told = false;
	scan->began_ns = clock_now_ns();
	return true;
}

void catalog_files_tend(struct catalog_files *scan, uint64_t now_ns)
{
	if (!scan->listing && !scan->reading)
		read_more(scan);
	if (!scan->told && now_ns - scan->began_ns > (uint64_t)PATIENCE_MS * CLOCK_NS_PER_MS)
		tell(scan);
}

size_t catalog_files_all(const struct catalog_files *scan, struct catalog_file *const **files)
{
	*files = scan ? scan->files : NULL;
	return scan ? scan->count : 0;
}
