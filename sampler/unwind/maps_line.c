/* SPDX-License-Identifier: Apache-2.0 */
/* The pure part of maps.h: a line of /proc/PID/maps, the path of a range, and the time of the next
 * reading. */
#include "sampler/unwind/maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
	RETRY_NS = 20 * 1000000,
	RETRY_MAX_NS = 1000 * 1000000,
};

uint64_t maps_retry_ns(uint64_t before_ns, bool helped)
{
	if (helped || before_ns < RETRY_NS)
		return RETRY_NS;
	return before_ns < RETRY_MAX_NS / 2 ? before_ns * 2 : RETRY_MAX_NS;
}

bool maps_parse_line(const char *line, struct map_range *range)
{
	uint64_t end;
	char prot[5];
	int path_at = 0;

	memset(range, 0, sizeof(*range));
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
	        &range->start, &end, prot, &range->pgoff, &range->major, &range->minor, &range->ino,
	        &path_at) != 7 ||
	    end <= range->start || strlen(prot) != 4)
		return false;
	range->len = end - range->start;
	range->prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
	    (prot[2] == 'x' ? PROT_EXEC : 0);
	range->path = line + path_at;
	return true;
}

enum map_kind maps_kind_of(const char *path)
{
	static const struct {
		const char *prefix;
		enum map_kind kind;
	} names[] = {
	    {"//anon", MAP_KIND_ANON},
	    {"[anon", MAP_KIND_ANON},
	    {"/dev/zero", MAP_KIND_ANON},
	    {"/memfd:libheaptap-attach.so", MAP_KIND_FILE}, /* our library in a process that is attached to */
	    {"/memfd:", MAP_KIND_ANON},
	    {"/anon_hugepage", MAP_KIND_ANON},
	    {"/SYSV", MAP_KIND_ANON},
	    {"[vdso]", MAP_KIND_VDSO},
	    {"[stack", MAP_KIND_STACK},
	    {"[heap]", MAP_KIND_HEAP},
	    {"[uprobes]", MAP_KIND_UPROBES},
	    {"[", MAP_KIND_SPECIAL},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(path, names[i].prefix, strlen(names[i].prefix)) == 0)
			return names[i].kind;
	return path[0] == '/' ? MAP_KIND_FILE : MAP_KIND_ANON;
}

const char *map_path(const struct map *map)
{
	static const char *const names[] = {
	    [MAP_KIND_FILE] = "",
	    [MAP_KIND_ANON] = "",
	    [MAP_KIND_VDSO] = "[vdso]",
	    [MAP_KIND_STACK] = "[stack]",
	    [MAP_KIND_HEAP] = "[heap]",
	    [MAP_KIND_UPROBES] = "[uprobes]",
	    [MAP_KIND_SPECIAL] = "[special]",
	};

	return map->file ? map->file->path : names[map->kind];
}
