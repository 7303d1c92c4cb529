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
	unsigned int count[2];            /* of those that wait or run */
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
		pthread_mutex_unlock(&jobs->mutex);
		job->run(job);
		pthread_mutex_lock(&jobs->mutex);
		put(&jobs->finished, job);
		if (write(jobs->fd, &one, sizeof(one)) < 0)
			continue; /* the counter is not at its end */
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
	bool room;

	pthread_mutex_lock(&jobs->mutex);
	room = jobs->count[job->foreign] < JOBS_MAX;
	if (room) {
		put(&jobs->waiting[job->foreign], job);
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
