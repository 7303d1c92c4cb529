/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/offerer.h"

#include "pprof/text/clock.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <stdlib.h>

enum { FRESH_NS = 500 * 1000000 }; /* for so long the maps that were read are good for a process' books */

static void weigh(struct offerer *offerer)
{
	const struct maps *maps = offerer->target.maps;

	if (offerer->memory)
		memory_share_note(&offerer->share, offerer->memory, maps ? maps_bytes(maps) : 0);
}

struct offerer *offerer_read(
    pid_t pid, uint64_t account, struct modules *modules, struct memory_bound *memory)
{
	struct offerer *offerer = calloc(1, sizeof(*offerer));
	const struct thread_facts facts = thread_facts_read(pid);

	if (!offerer)
		return NULL;
	struct target *target = &offerer->target;
	bool good = target_init(target, pid, clock_now_ns()) && facts.pid == pid;
	offerer->inner = facts.inner;
	offerer->memory = memory;
	offerer->share.account = account ? account : target_account_of_user(facts.user);
	target->pidfd = good ? pidfd_open_process(pid) : -1;
	target->readable = target->pidfd >= 0;
	target->maps = maps_new(modules, pid, true);
	if (target->maps && memory)
		maps_set_room(target->maps, memory_bound_room(memory, &offerer->share, 0));
	if (target->readable && target->maps && maps_read_proc(target->maps) == 0 &&
	    target_read_executable(target, target->name)) {
		proc_strip_deleted(target->name);
		target_set_title(target, target->name);
		weigh(offerer);
		return offerer;
	}
	offerer_free(offerer);
	return NULL;
}

void offerer_free(struct offerer *offerer)
{
	if (!offerer)
		return;
	if (offerer->memory)
		memory_share_note(&offerer->share, offerer->memory, 0);
	target_fini(&offerer->target);
	free(offerer);
}

void offerer_find(struct program_run *run, pid_t pid, struct modules *modules)
{
	const uint64_t account = target_account(&(struct target){.plan = run->plan});
	struct offerer *offerer = offerer_read(pid, account, modules, run->memory);

	/* Else the process has ended or executed another program, and what was read is that program's. */
	if (offerer && region_mapped_by(run->region, pid) != REGION_MAPPED) {
		offerer_free(offerer);
		return;
	}
	run->offerer = offerer;
}

const struct offerer *offerer_that_ended(const struct process *process, pid_t told)
{
	const struct offerer *offerer = process->run->offerer;

	return process->target.pidfd < 0 && offerer && told &&
	        (told == offerer->target.pid || told == offerer->inner)
	    ? offerer
	    : NULL;
}

struct maps *offerer_take_maps(const struct process *process, uint64_t *read_ns)
{
	struct offerer *offerer = process->run->offerer;
	const struct target *target = &process->target;
	struct maps *maps = offerer ? offerer->target.maps : NULL;

	if (!maps || !target->readable || offerer->target.pid != target->pid ||
	    clock_now_ns() - offerer->target.start_ns > FRESH_NS ||
	    (target->code_address && !maps_find(maps, target->code_address)))
		return NULL;
	*read_ns = offerer->target.start_ns;
	offerer->target.maps = NULL;
	weigh(offerer);
	return maps;
}

void offerer_forget(const struct process *process)
{
	struct program_run *run = process->run;

	if (!run->offerer || run->offerer->target.pid != process->target.pid)
		return;
	offerer_free(run->offerer);
	run->offerer = NULL;
}
