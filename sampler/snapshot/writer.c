/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CHILD_CPU_SECONDS = 120,
	CHILD_SECONDS = 600, /* of real time: it may hang in a file system */
	FORK_SECONDS = 10,   /* for which a refused fork is tried again */
	CHILD_NICE = 5,
};
/* Debug files are read into memory, and bad ones ask for any amount of it. */
#ifdef __SANITIZE_ADDRESS__
#define CHILD_MEMORY_BYTES RLIM_INFINITY /* its shadow counts */
#else
#define CHILD_MEMORY_BYTES (8ull << 30)
#endif

struct job {
	struct job *next;
	struct writer_item *item;
	pid_t pid; /* 0: waits */
};

struct writer {
	struct job *jobs;    /* oldest first */
	uint64_t refused_ns; /* when a fork was first refused; 0: not since one was not */
	void (*done)(void *context, const struct writer_item *item, int error);
	void *context;
};

struct writer *writer_new(
    void (*done)(void *context, const struct writer_item *item, int error), void *context)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	if (!writer)
		return NULL;
	writer->done = done;
	writer->context = context;
	return writer;
}

static void job_free(struct job *job)
{
	job->item->discard(job->item);
	free(job);
}

void writer_free(struct writer *writer)
{
	while (writer && writer->jobs) {
		struct job *job = writer->jobs;
		writer->jobs = job->next;
		job_free(job);
	}
	free(writer);
}

static void run_child(const struct writer_item *item)
{
	const struct rlimit memory = {CHILD_MEMORY_BYTES, CHILD_MEMORY_BYTES};
	const struct rlimit cpu = {CHILD_CPU_SECONDS, CHILD_CPU_SECONDS + 1};
	const struct rlimit core = {0, 0};
	sigset_t none;
	sigemptyset(&none);
	/* A signal that was meant for the sampler, sent to all of its name, must not end a snapshot. */
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGTERM, SIG_IGN); /* the unit's end is when profiles are written */
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error to report */
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "heaptap-writer");
	setrlimit(RLIMIT_DATA, &memory); /* not RLIMIT_AS: the regions are mapped here too */
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &core);
	alarm(CHILD_SECONDS);
	if (!item->urgent && nice(CHILD_NICE) == -1)
		errno = 0; /* already nicer than that */
	int error = item->write(item);
	_exit(error ? -error & 0x7f ? -error & 0x7f : 1 : 0);
}

static void start(struct writer *writer)
{
	int running = 0;
	for (struct job *job = writer->jobs; job; job = job->next)
		running += job->pid != 0;
	for (struct job *job = writer->jobs; job && running < WRITER_CHILDREN; job = job->next) {
		if (job->pid)
			continue;
		pid_t pid = fork();
		if (pid == 0)
			run_child(job->item);
		if (pid < 0)
			return; /* writer_tend tries again */
		writer->refused_ns = 0;
		job->pid = pid;
		running++;
	}
}

void writer_submit(struct writer *writer, struct writer_item *item)
{
	struct job *job = calloc(1, sizeof(*job)), **end = &writer->jobs;
	if (!job) {
		writer->done(writer->context, item, -ENOMEM);
		item->discard(item);
		return;
	}
	job->item = item;
	while (*end)
		end = &(*end)->next;
	*end = job;
	start(writer);
}

/* Without a child nobody will come back from one: then it is for the clock to say that it has been tried
 * enough. */
void writer_tend(struct writer *writer, uint64_t now_ns)
{
	if (!writer->jobs || writer->jobs->pid)
		return;
	start(writer);
	struct job *job = writer->jobs;
	for (const struct job *other = job; other; other = other->next)
		if (other->pid)
			return;
	if (!writer->refused_ns)
		writer->refused_ns = now_ns;
	if (now_ns - writer->refused_ns < FORK_SECONDS * 1000000000ull)
		return;
	writer->jobs = job->next;
	if (!writer->jobs)
		writer->refused_ns = 0; /* what comes next has its own time */
	writer->done(writer->context, job->item, -EAGAIN);
	job_free(job);
}

void writer_reap(struct writer *writer, pid_t pid, int status)
{
	struct job **link = &writer->jobs;
	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	struct job *job = *link;
	if (!job)
		return;
	if (WIFSIGNALED(status) && job->item->detail < SYMBOL_RAW) {
		job->item->detail++;
		job->pid = 0;
	} else {
		*link = job->next;
		writer->done(
		    writer->context, job->item, WIFSIGNALED(status) ? -EFAULT : -WEXITSTATUS(status));
		job_free(job);
	}
	start(writer);
}

bool writer_can_start(const struct writer *writer)
{
	int jobs = 0;
	for (const struct job *job = writer->jobs; job; job = job->next)
		jobs++;
	return jobs < WRITER_CHILDREN;
}
