/* SPDX-License-Identifier: Apache-2.0 */
/* Whose job is done next, and who gets none where there are too many. */
#include "serve/jobs.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static unsigned int order[3], ran, refused[3], done_count;

static void run(struct job *job)
{
	pthread_mutex_lock(&gate);
	ran++;
	if (!order[job->client.number])
		order[job->client.number] = ran;
	pthread_mutex_unlock(&gate);
}

static void done(struct job *job)
{
	refused[job->client.number] += job->refused;
	done_count++;
}

/* One client fills the queue: another one is next, gets half of the room, and no more. */
static void a_client_has_a_share(void **state)
{
	static struct job one[JOBS_MAX + 1], two[JOBS_MAX];
	struct pollfd polled;
	unsigned int got = 0;
	int error;
	struct jobs *jobs = jobs_new(&error);

	(void)state;
	assert_non_null(jobs);
	pthread_mutex_lock(&gate);
	for (unsigned int i = 0; i <= JOBS_MAX; i++) {
		one[i] = (struct job){.run = run, .done = done, .client = {1, 1}};
		assert_int_equal(jobs_submit(jobs, &one[i]), i < JOBS_MAX);
	}
	for (unsigned int i = 0; i < JOBS_MAX; i++) {
		two[i] = (struct job){.run = run, .done = done, .client = {1, 2}};
		if (!jobs_submit(jobs, &two[i]))
			break;
		got++;
		jobs_event(jobs);
	}
	assert_in_range(got, JOBS_MAX / 2 - 1, JOBS_MAX / 2);
	assert_int_equal(refused[1], got);
	pthread_mutex_unlock(&gate);
	polled = (struct pollfd){.fd = jobs_fd(jobs), .events = POLLIN};
	while (done_count < JOBS_MAX + got) {
		assert_int_equal(poll(&polled, 1, 100000), 1);
		jobs_event(jobs);
	}
	assert_int_equal(ran, JOBS_MAX);
	assert_int_equal(refused[2], 0);
	assert_in_range(order[2], 2, 3);
	jobs_free(jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_client_has_a_share)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
