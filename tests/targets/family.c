/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family CHILDREN [SNAPSHOTS] [STEPS] [late]: a forking server with known truth, for what belongs together.
 *
 * The parent keeps 1000 blocks of 1000 bytes, after it forked, or before with `late`. Child i (from 1) keeps
 * i * 100. Each then holds 200 more for a moment, and asks for so many snapshots, keeping a block more before
 * each. In each of STEPS, of which the first is 0, the parent makes the file done.N, waits for go.N, and
 * keeps 100 blocks more. Nothing else allocates, stdio included.
 */
#include "proto/heaptap.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 1000,
	PARENT_BLOCKS = 1000,
	CHILD_BLOCKS = 100,
	SPARE_BLOCKS = 200,
	STEP_BLOCKS = 100,
	CHILDREN_MAX = 16
};

static void *kept[100000];
static int kept_count;

static __attribute__((noinline)) void keep(int count)
{
	for (int i = 0; i < count; i++) {
		kept[kept_count] = malloc(BLOCK_BYTES);
		memset(kept[kept_count++], 1, BLOCK_BYTES);
	}
}

static __attribute__((noinline)) void spare(int count)
{
	void *blocks[SPARE_BLOCKS];

	for (int i = 0; i < count; i++) {
		blocks[i] = malloc(BLOCK_BYTES);
		memset(blocks[i], 1, BLOCK_BYTES);
	}
	for (int i = 0; i < count; i++)
		free(blocks[i]);
}

static void take_snapshots(int count)
{
	for (int i = 0; i < count; i++) {
		keep(1);
		heaptap_snapshot("");
	}
}

static void take_step(int step)
{
	char path[32];

	snprintf(path, sizeof(path), "done.%d", step);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof(path), "go.%d", step);
	for (int i = 0; i < 60000 && access(path, F_OK) != 0; i++)
		usleep(10000);
	keep(STEP_BLOCKS);
}

int main(int argc, char *argv[])
{
	int children = argc > 1 ? atoi(argv[1]) : 0, snapshots = argc > 2 ? atoi(argv[2]) : 0;
	bool late = argc > 4;
	pid_t pids[CHILDREN_MAX];

	if (late)
		keep(PARENT_BLOCKS);
	for (int i = 0; i < children && i < CHILDREN_MAX; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			keep((i + 1) * CHILD_BLOCKS);
			spare(SPARE_BLOCKS);
			take_snapshots(snapshots);
			_exit(0);
		}
	}
	if (!late)
		keep(PARENT_BLOCKS);
	spare(SPARE_BLOCKS);
	take_snapshots(snapshots);
	for (int i = 0; i < children && i < CHILDREN_MAX; i++)
		waitpid(pids[i], NULL, 0);
	for (int step = 0; argc > 3 && step < atoi(argv[3]); step++)
		take_step(step);
	return 0;
}
