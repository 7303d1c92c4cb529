/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/thread_rounds.h"

#include "pprof/table/array.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <stdlib.h>

struct round {
	const struct thread_rounds *rounds;
	pid_t *known; /* threads of all rounds; also ended ones, which may have created others */
	size_t count, capacity;
	size_t found; /* in this round */
	size_t reached;
};

static bool is_known(const struct round *round, pid_t tid)
{
	for (size_t i = 0; i < round->count; i++)
		if (round->known[i] == tid)
			return true;
	return false;
}

static int visit(void *context, pid_t tid)
{
	struct round *round = context;

	if (is_known(round, tid))
		return 0;
	if (array_reserve(&round->known, &round->capacity, round->count + 1, sizeof(*round->known)) != 0)
		return -ENOMEM;
	int result = round->rounds->thread(round->rounds->context, tid);
	if (result && result != -ESRCH)
		return result;
	round->known[round->count++] = tid;
	round->found++;
	round->reached += result == 0;
	return 0;
}

ssize_t thread_rounds_run(const struct thread_rounds *rounds)
{
	struct round round = {.rounds = rounds};
	int error = 0;
	bool quiet = false;

	for (int i = 0; i < rounds->rounds_max && !quiet && !error; i++) {
		round.found = 0;
		error = proc_each_thread(rounds->pid, visit, &round);
		error = error == -ENOENT ? -ESRCH : error;
		quiet = round.found == 0 || (rounds->one_is_quiet && i == 0 && round.found == 1);
	}
	free(round.known);
	return error ? error : (ssize_t)round.reached;
}
