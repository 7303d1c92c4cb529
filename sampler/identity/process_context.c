/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/identity/process_context.h"

#include "sampler/linux/memory_reader.h"
#include "sampler/linux/proc.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { TRIES = 3 }; /* while it is being written */

struct context_bytes {
	uint64_t address; /* of the header */
	size_t payload_bytes;
	uint8_t payload[DECLARED_CONTEXT_BYTES_MAX + 1];
};

static bool copy(pid_t pid, uint64_t address, void *bytes, size_t length)
{
	struct iovec local = {bytes, length}, remote = {(void *)(uintptr_t)address, length};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)length;
}

/* Header, payload, header again: in between it may be written (OTEP 4719, "Reading Protocol"). */
static void gather(pid_t pid, void *result)
{
	struct context_bytes *bytes = result;
	uint8_t header[DECLARED_CONTEXT_HEADER_BYTES], again[DECLARED_CONTEXT_HEADER_BYTES];
	struct declared_context context;

	for (int tries = 0; tries < TRIES; tries++) {
		if (!copy(pid, bytes->address, header, sizeof(header)) ||
		    !declared_names_context_header(header, sizeof(header), &context))
			return;
		if (!context.published_ns || context.payload_bytes > sizeof(bytes->payload) ||
		    !copy(pid, context.payload, bytes->payload, context.payload_bytes) ||
		    !copy(pid, bytes->address, again, sizeof(again)) ||
		    memcmp(header, again, sizeof(header)) != 0)
			continue;
		bytes->payload_bytes = context.payload_bytes;
		return;
	}
}

static bool find(pid_t pid, uint64_t *address)
{
	FILE *maps = proc_open_text(pid, "maps");
	char line[PATH_MAX + 128];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = declared_names_is_context(line, address);
	if (maps)
		fclose(maps);
	return found;
}

void process_context_read(struct declared_names *names, pid_t pid)
{
	uint64_t address;
	struct context_bytes *bytes = find(pid, &address) ? calloc(1, sizeof(*bytes)) : NULL;

	if (!bytes)
		return;
	bytes->address = address;
	if (memory_reader_run(gather, pid, bytes, sizeof(*bytes)) == 0 && bytes->payload_bytes)
		declared_names_of_context(names, bytes->payload, bytes->payload_bytes);
	free(bytes);
}
