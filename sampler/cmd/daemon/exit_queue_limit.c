/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/exit_queue_limit.h"

#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/intake/target_plan.h"
#include "sampler/write/process_end.h"

#include <string.h>
#include <sys/resource.h>

enum {
	/* A process that waits takes 60 to 110 KiB of our memory, and 230 KiB or more of shared memory. */
	EACH_BYTES = 512 << 10,
	EACH_DESCRIPTORS = 8, /* it has two to four; living processes need some too */
	LEAST = 16,           /* so many may always wait: the smallest daemon has room for them */
};

bool exit_queue_limit_has_room(const struct exit_queue_limit *room)
{
	uint64_t most = room->memory_bytes / EACH_BYTES;

	if (most > room->descriptors / EACH_DESCRIPTORS)
		most = room->descriptors / EACH_DESCRIPTORS;
	if (most < LEAST)
		most = LEAST;
	/* Few may wait when the books of all processes take most of what they may. */
	if (room->books_bytes > room->books_max_bytes / 4 * 3)
		most = LEAST;
	return room->waiting < most && room->of_account < most - most / 8 &&
	    (room->killed || room->of_service < most - most / 4);
}

static const char *service_of(const struct target *target)
{
	return target->plan ? target->plan->service : target->title;
}

bool exit_queue_limit_allows(void *context, const struct target *target)
{
	const struct daemon *d = ((const struct core *)context)->command;
	const uint64_t account = target_account(target);
	struct rlimit files = {.rlim_cur = RLIM_INFINITY};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	struct exit_queue_limit room = {
	    .memory_bytes = d->rules->daemon.memory_bytes,
	    .descriptors = files.rlim_cur,
	    .books_bytes = d->core.memory.held_bytes,
	    .books_max_bytes = d->core.memory.max_bytes,
	    .killed = process_end_alarm(target) == PROCESS_END_KILLED,
	};
	books_each_process (process, &d->core.heap.intake.books) {
		const struct target *other = &process->target;

		if (!scheduler_is_closing(other))
			continue;
		room.waiting++;
		room.of_account += target_account(other) == account;
		room.of_service += strcmp(service_of(other), service_of(target)) == 0;
	}
	return exit_queue_limit_has_room(&room);
}
