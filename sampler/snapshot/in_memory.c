/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/in_memory.h"

#include "sampler/snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

bool in_memory_want(struct in_memory *in_memory, uint64_t asker)
{
	if (in_memory->asker_count == SNAPSHOT_ASKERS)
		return false;
	in_memory->askers[in_memory->asker_count++] = asker;
	return true;
}

bool in_memory_is_due(const struct in_memory *in_memory)
{
	return in_memory->asker_count && !in_memory->writing;
}

int in_memory_begin(struct in_memory *in_memory, struct snapshot *snapshot)
{
	int error = sink_memory_open(&snapshot->memory);

	if (error)
		return error;
	memcpy(snapshot->askers, in_memory->askers, sizeof(snapshot->askers));
	snapshot->asker_count = in_memory->asker_count;
	in_memory->asker_count = 0;
	in_memory->writing = true;
	snapshot->item.series = NULL; /* it replaces no file, so it need not wait for one */
	snapshot->sink = &snapshot->memory.base;
	return 0;
}

void in_memory_end(
    struct in_memory *in_memory, struct snapshot *snapshot, const struct in_memory_giver *giver, int error)
{
	error = error ? error : sink_memory_seal(&snapshot->memory);
	for (uint32_t i = 0; i < snapshot->asker_count; i++) {
		int fd = error ? error : fcntl(snapshot->memory.fd, F_DUPFD_CLOEXEC, 0);

		giver->give(
		    giver->context, snapshot->askers[i], snapshot->target->pid, fd == -1 ? -errno : fd);
	}
	snapshot->asker_count = 0;
	sink_memory_close(&snapshot->memory);
	in_memory->writing = false;
}

void in_memory_refuse(struct in_memory *in_memory, pid_t pid, const struct in_memory_giver *giver, int error)
{
	uint64_t askers[SNAPSHOT_ASKERS]; /* one may be taken off the list meanwhile (scheduler_forget) */
	const uint32_t count = in_memory->asker_count;

	memcpy(askers, in_memory->askers, sizeof(askers));
	in_memory->asker_count = 0;
	for (uint32_t i = 0; i < count; i++)
		giver->give(giver->context, askers[i], pid, error);
}
