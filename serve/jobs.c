/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct list {
	struct job *first, **last;
};

struct jobs {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t more;
	struct list waiting[2], finished; /* [1]: foreign */
	uint64_t turn[2];                 /* of the last job that was taken */
	unsigned int count[2];            /* of jobs that wait or run */
	bool stop;
	int fd;
};

static void put(struct list *list, struct job *job)
{
	job->next = NULL;
	if (!list->first)
		list->last = &list->first;
	*list->last = job;
	list->last = &job->next;
}

static struct job *take(struct list *list)
{
	struct job *job = list->first;

	if (job)
		list->first = job->next;
	return job;
}

/* The turn of a new job: the next one, or one after the last job of its client. */
static uint64_t turn_of(const struct list *list, const struct job *job, uint64_t last_turn)
{
	for (const struct job *at = list->first; at; at = at->next)
		if (at->client.family == job->client.family && at->client.number == job->client.number)
			last_turn = at->turn;
	return last_turn + 1;
}

static void put_in_turn(struct list *list, struct job *job)
{
	struct job **link = &list->first;

	while (*link && (*link)->turn <= job->turn)
		link = &(*link)->next;
	job->next = *link;
	*link = job;
}

/* Takes the job with the last turn out of the list, if that turn comes after `turn`. */
static struct job *take_last(struct list *list, uint64_t turn)
{
	struct job **link = &list->first, *job;

	while (*link && (*link)->next)
		link = &(*link)->next;
	job = *link;
	if (!job || job->turn <= turn)
		return NULL;
	*link = NULL;
	return job;
}

static void *work(void *argument)
{
	struct jobs *jobs = argument;

	pthread_mutex_lock(&jobs->mutex);
	while (!jobs->stop) {
		struct job *job = take(&jobs->waiting[false]);
		const uint64_t one = 1;

		if (!job)
			job = take(&jobs->waiting[true]);

		if (!job) {
			pthread_cond_wait(&jobs->more, &jobs->mutex);
			continue;
		}
		jobs->turn[job->foreign] = job->turn;
		pthread_mutex_unlock(&jobs->mutex);
		job->run(job);
		pthread_mutex_lock(&jobs->mutex);
		put(&jobs->finished, job);
		if (write(jobs->fd, &one, sizeof(one)) < 0)
			continue; /* only fails when the counter is full */
	}
	pthread_mutex_unlock(&jobs->mutex);
	return NULL;
}

struct jobs *jobs_new(int *error)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));

	*error = -ENOMEM;
	if (!jobs)
		return NULL;
	jobs->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&jobs->mutex, NULL);
	pthread_cond_init(&jobs->more, NULL);
	*error = jobs->fd < 0 ? -errno : -pthread_create(&jobs->thread, NULL, work, jobs);
	if (!*error)
		return jobs;
	if (jobs->fd >= 0)
		close(jobs->fd);
	free(jobs);
	return NULL;
}

void jobs_free(struct jobs *jobs)
{
	struct job *job;

	if (!jobs)
		return;
	pthread_mutex_lock(&jobs->mutex);
	jobs->stop = true;
	pthread_cond_signal(&jobs->more);
	pthread_mutex_unlock(&jobs->mutex);
	pthread_join(jobs->thread, NULL);
	while ((job = take(&jobs->finished)) || (job = take(&jobs->waiting[false])) ||
	    (job = take(&jobs->waiting[true])))
		job->done(job);
	pthread_cond_destroy(&jobs->more);
	pthread_mutex_destroy(&jobs->mutex);
	close(jobs->fd);
	free(jobs);
}

bool jobs_submit(struct jobs *jobs, struct job *job)
{
	struct list *waiting = &jobs->waiting[job->foreign];
	struct job *refused;
	const uint64_t one = 1;
	bool room;

	pthread_mutex_lock(&jobs->mutex);
	job->turn = turn_of(waiting, job, jobs->turn[job->foreign]);
	room = jobs->count[job->foreign] < JOBS_MAX;
	if (!room && (refused = take_last(waiting, job->turn))) {
		refused->refused = true;
		put(&jobs->finished, refused);
		room = write(jobs->fd, &one, sizeof(one)) > 0;
	}
	if (room) {
		put_in_turn(waiting, job);
		jobs->count[job->foreign]++;
		pthread_cond_signal(&jobs->more);
	}
	pthread_mutex_unlock(&jobs->mutex);
	return room;
}

int jobs_fd(const struct jobs *jobs)
{
	return jobs->fd;
}

void jobs_event(struct jobs *jobs)
{
	struct job *job;
	uint64_t count;

	if (read(jobs->fd, &count, sizeof(count)) < 0)
		return;
	for (;;) {
		pthread_mutex_lock(&jobs->mutex);
		job = take(&jobs->finished);
		if (job)
			jobs->count[job->foreign]--;
		pthread_mutex_unlock(&jobs->mutex);
		if (!job)
			return;
		job->done(job);
	}
}
