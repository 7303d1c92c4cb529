/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/attach_job.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/inject/preload_check.h"
#include "sampler/inject/preload_library.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/linux/thread_facts.h"

#include <limits.h>
#include <stdlib.h>

int attach_job_open_library(struct library_copy *library_copy, char copy[PROC_PATH_BYTES])
{
	char path[PATH_MAX], why[PRELOAD_CHECK_WHY_BYTES];
	int error = attach_library_find(path, sizeof(path));

	if (!error) {
		error = preload_check_library(path, true, why);
		if (error)
			log_line("%s %s", path, why);
	}
	if (!error)
		error = library_copy_open(library_copy, path);
	if (error)
		library_copy->fd = -1;
	else
		(void)proc_fd_path(copy, library_copy->fd);
	return error;
}

struct arrivals_attached attach_job_facts(pid_t pid)
{
	char status[PROC_STATUS_BYTES];
	struct arrivals_attached facts = {
	    .pid = pid, .after_ns = thread_facts_age_ns(thread_facts_birth(pid).ticks)};

	(void)proc_read(pid, "status", status, sizeof(status));
	facts.rss_bytes = proc_status_number(status, "\nVmRSS:", 10, 0) << 10;
	return facts;
}

int attach_job_start(struct attach_job *job, const struct attachment_wish *wish, int epoll_fd)
{
	struct attachment_wish with_region = *wish;

	with_region.region = job->region;
	job->begun_ns = clock_now_ns();
	int error = attacher_start(&job->attacher, attachment_begin, &with_region);
	if (!error)
		error = epoll_set_add(epoll_fd, job->attacher.fd);
	if (error)
		attach_job_drop(job);
	return error;
}

int attach_job_result(struct attach_job *job, int epoll_fd, struct attachment *attachment)
{
	epoll_set_remove(epoll_fd, job->attacher.fd);
	const int error = attacher_finish(&job->attacher, attachment);
	if (error)
		attach_job_drop(job);
	else
		job->facts.other_library = attachment->reused || attachment->by_file;
	return error;
}

int attach_job_register(struct attach_job *job, struct registry *registry)
{
	struct region *region = job->region;
	const struct arrivals_attached facts = job->facts;

	*job = (struct attach_job){.attacher.fd = -1};
	return arrivals_attach(registry, region, &facts);
}

void attach_job_drop(struct attach_job *job)
{
	if (job->region)
		region_close(job->region);
	free(job->region);
	free(job->facts.plan);
	*job = (struct attach_job){.attacher.fd = -1};
}
