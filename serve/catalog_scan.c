/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog_scan.h"

#include "pprof/table/array.h"
#include "sampler/control/control_client.h"
#include "sampler/linux/clock.h"
#include "serve/file_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_AT_ONCE = 4,
	PATIENCE_MS = 5000,
};

struct catalog_scan {
	struct broker_client *broker;
	struct jobs *jobs;
	void (*finished)(void *context);
	void *context;
	struct catalog_file **files; /* by number */
	size_t count, room;
	size_t next; /* below it none is unread */
	unsigned int reading;
	bool listing, told; /* a list is awaited; finished() was called for this scan */
	uint64_t began_ns;
};

struct read_job {
	struct job job;
	struct catalog_scan *scan;
	struct catalog_file *file;
	struct catalog_file facts; /* filled in by the job */
	struct blob *bytes;
	int error;
};

struct catalog_scan *catalog_scan_new(
    struct broker_client *broker, struct jobs *jobs, void (*finished)(void *context), void *context)
{
	struct catalog_scan *scan = calloc(1, sizeof(*scan));

	if (scan)
		*scan = (struct catalog_scan){
		    .broker = broker, .jobs = jobs, .finished = finished, .context = context, .told = true};
	return scan;
}

void catalog_scan_free(struct catalog_scan *scan)
{
	for (size_t i = 0; scan && i < scan->count; i++)
		catalog_file_free(scan->files[i]);
	if (scan)
		free(scan->files);
	free(scan);
}

static void tell(struct catalog_scan *scan)
{
	if (scan->told)
		return;
	scan->told = true;
	scan->finished(scan->context);
}

/* ---- reading files */

static void read_more(struct catalog_scan *scan);

/* Files are not removed from memory while they are being read: see catalog_scan_drop_gone(). */
static void settle(struct catalog_scan *scan, struct catalog_file *file, int error)
{
	file->state = error ? CATALOG_FILE_BAD : CATALOG_FILE_READ;
	scan->reading--;
	read_more(scan);
}

static void run_read(struct job *job)
{
	struct read_job *read = (struct read_job *)job;

	read->error = catalog_file_read(&read->facts, read->bytes);
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
	struct catalog_scan *scan;
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

static bool read_one(struct catalog_scan *scan, struct catalog_file *file)
{
	const struct broker_request request = {.verb = BROKER_OPEN, .file = file->number};
	struct opening *opening = malloc(sizeof(*opening));

	if (!opening)
		return false;
	*opening = (struct opening){scan, file};
	if (!broker_client_ask(scan->broker, &request, on_open, opening)) {
		free(opening);
		return false;
	}
	file->state = CATALOG_FILE_BEING_READ;
	scan->reading++;
	return true;
}

static void read_more(struct catalog_scan *scan)
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

void catalog_scan_drop_gone(struct catalog_scan *scan)
{
	size_t kept = 0;

	for (size_t i = 0; scan && i < scan->count; i++) {
		if (scan->files[i]->there || scan->files[i]->state == CATALOG_FILE_BEING_READ)
			scan->files[kept++] = scan->files[i];
		else
			catalog_file_free(scan->files[i]);
	}
	if (!scan || kept == scan->count)
		return;
	scan->count = kept;
	scan->next = 0; /* numbers have changed: looks again for those that are unread */
}

static struct catalog_file *find(const struct catalog_scan *scan, size_t count, uint64_t number)
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

static void note(struct catalog_scan *scan, size_t known, const struct file_list_item *item)
{
	struct catalog_file *file = find(scan, known, item->number);

	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file || !(file->path = strdup(item->path)) ||
		    array_reserve(
		        &scan->files, &scan->room, scan->count + 1, sizeof(struct catalog_file *))) {
			catalog_file_free(file);
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
	struct catalog_scan *scan = context;
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

bool catalog_scan_begin(struct catalog_scan *scan)
{
	const struct broker_request request = {.verb = BROKER_SCAN};

	if (scan->listing || !broker_client_ask(scan->broker, &request, on_list, scan))
		return false;
	scan->listing = true;
	scan->told = false;
	scan->began_ns = clock_now_ns();
	return true;
}

void catalog_scan_tend(struct catalog_scan *scan, uint64_t now_ns)
{
	if (!scan->listing && !scan->reading)
		read_more(scan);
	if (!scan->told && now_ns - scan->began_ns > (uint64_t)PATIENCE_MS * CLOCK_NS_PER_MS)
		tell(scan);
}

size_t catalog_scan_files(const struct catalog_scan *scan, struct catalog_file *const **files)
{
	*files = scan ? scan->files : NULL;
	return scan ? scan->count : 0;
}
