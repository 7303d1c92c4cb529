/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main of the programs that call one allocator's own functions:
 *
 *   PROGRAM FOLDER COUNT   four threads and main each call work(COUNT, keep); then a child is forked that
 *                          frees half of what it inherited and works too. FOLDER/PID.tsv is each one's truth.
 *
 * work() allocates by every function, and gives each block either to keep() or frees it.
 */
#ifndef TESTS_TARGETS_ALLOCATOR_MAIN_H
#define TESTS_TARGETS_ALLOCATOR_MAIN_H

#include "tests/targets/allocator_truth.h"

#include "proto/heaptap.h"

#include <pthread.h>
#include <sys/wait.h>

enum { KEPT_MOST = 1 << 16, THREADS = 4 };
static struct block kept[KEPT_MOST];
static int kept_count;

static void keep(struct block block)
{
	int at = __atomic_fetch_add(&kept_count, 1, __ATOMIC_RELAXED);

	must(at < KEPT_MOST, "room for blocks");
	kept[at] = block;
}

static void work(long turn);
static void drop_any(struct block *block, long turn);

static void *work_many(void *argument)
{
	for (long turn = 0; turn < *(long *)argument; turn++)
		work(turn);
	return NULL;
}

static void write_own(const char *folder)
{
	char file[4096];

	snprintf(file, sizeof(file), "%s/%d.tsv", folder, (int)getpid());
	truth_write(file);
	heaptap_snapshot(NULL); /* the sampler has read the maps before the process is gone */
}

int main(int argc, char *argv[])
{
	pthread_t threads[THREADS];
	long count = argc > 2 ? atol(argv[2]) : 0;
	int status = 0;

	if (argc < 3)
		return 2;
	for (int i = 0; i < THREADS; i++)
		must(pthread_create(&threads[i], NULL, work_many, &count) == 0, "a thread");
	work_many(&count);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* What threads have allocated is freed by another one. */
	for (int i = 0; i < kept_count; i += 3)
		drop_any(&kept[i], i);
	pid_t child = fork();
	if (child == 0) {
		truth_forked();
		for (int i = 1; i < kept_count; i += 3)
			drop_any(&kept[i], i);
		work_many(&count);
		write_own(argv[1]);
		_exit(0);
	}
	waitpid(child, &status, 0);
	must(status == 0, "the child");
	write_own(argv[1]);
	puts("good");
	return 0;
}

#endif
