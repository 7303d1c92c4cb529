/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/profile_mappings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Marker frames need an address that is neither zero nor real, and so does a program that is not mapped. */
enum {
	MARKER_END = PROFILE_MAPPINGS_MARKER_BASE + 0x1000,
	NOWHERE_BASE = MARKER_END,
	NOWHERE_END = NOWHERE_BASE + 0x1000,
};
_Static_assert(NOWHERE_END <= PROFILE_ADDRESSES_RESERVED_END, "one page each");

struct profile_mappings {
	struct profile *profile;
	struct profile_mappings_source source;
	struct profile_addresses *addresses;
	const struct module *program; /* the file of the program; NULL: no mapping has the program's name */
	uint32_t *ids;                /* in the profile, by range of the addresses; 0: not made */
	uint32_t markers;             /* id; 0: not made */
};

const char *profile_mappings_kind_name(uint8_t kind)
{
	static const char *const names[] = {[MAP_KIND_ANON] = "[anon:jit]",
	    [MAP_KIND_VDSO] = "[vdso]",
	    [MAP_KIND_STACK] = "[stack]",
	    [MAP_KIND_HEAP] = "[heap]",
	    [MAP_KIND_UPROBES] = "[uprobes]",
	    [MAP_KIND_KERNEL] = "[kernel.kallsyms]"};

	return kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind] : "[unknown]";
}

static uint32_t add_mapping(struct profile_mappings *mappings, uint64_t start, uint64_t end, uint64_t offset,
    const struct module *module, const char *name)
{
	char build_id[MODULE_BUILD_ID_BYTES * 2 + 1] = "";

	for (size_t i = 0; module && i < module->file.build_id_len; i++)
		sprintf(build_id + i * 2, "%02x", module->file.build_id[i]);
	const struct profile_mapping mapping = {
	    .start = start,
	    .limit = end,
	    .file_offset = offset,
	    .filename = name,
	    .build_id = build_id,
	};
	return profile_add_mapping(mappings->profile, &mapping);
}

/* Is the file at `path` the program that was executed as `name`? A program that was executed by a relative
 * path is mapped under its absolute path. */
static bool is_program(const char *path, const char *name)
{
	const char *file = strrchr(path, '/'), *base = strrchr(name, '/');

	if (strcmp(path, name) == 0)
		return true;
	return name[0] && name[0] != '/' && path[0] == '/' && strcmp(file + 1, base ? base + 1 : name) == 0;
}

/* Readers show the first mapping's name as the program's. Debian's redis-server is a link to another name. */
static const char *file_name(
    const struct profile_mappings *mappings, const struct module *module, const char *path)
{
	const bool program =
	    (module && module == mappings->program) || is_program(path, mappings->source.program);

	return mappings->source.called && program ? mappings->source.called : path;
}

static uint32_t mapping_id(struct profile_mappings *mappings, uint32_t number)
{
	const struct profile_addresses_range *range = profile_addresses_range(mappings->addresses, number);
	const struct stack_mapping *m = stacks_mapping(mappings->source.stacks, range->mapping);
	const char *path = m->module && !m->module->vdso ? m->module->path : NULL;

	if (!mappings->ids[number])
		mappings->ids[number] =
		    add_mapping(mappings, range->start, range->limit, range->file_offset, m->module,
		        path ? file_name(mappings, m->module, path) : profile_mappings_kind_name(m->kind));
	return mappings->ids[number];
}

/* The same. `resolved` is the program's path, where its name is relative and a link. */
static bool is_main(const char *path, const char *name, const char *resolved)
{
	return is_program(path, name) || strcmp(path, resolved) == 0;
}

/* Readers take the program's name and build id from the first mapping. A process that was gone at the first
 * look is known by its name alone; its mapping has passed the comparison of build ids (maps_add). */
static void find_main_mapping(struct profile_mappings *mappings, const char *name, const char *resolved)
{
	const struct profile_addresses *addresses = mappings->addresses;
	const struct maps *maps = mappings->source.maps;

	/* A file keeps the path by which it was first found. Another process may have used a link. */
	for (size_t i = 0; i < maps_count(maps) && !mappings->program; i++)
		if (is_main(map_path(maps_at(maps, i)), name, resolved))
			mappings->program = maps_at(maps, i)->module;
	for (uint32_t i = 0; i < profile_addresses_count(addresses); i++) {
		const struct module *module =
		    stacks_mapping(mappings->source.stacks, profile_addresses_range(addresses, i)->mapping)
		        ->module;

		if (module && (module == mappings->program || is_main(module->path, name, resolved))) {
			mapping_id(mappings, i);
			return;
		}
	}
	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct map *map = maps_at(maps, i);

		if (is_main(map_path(map), name, resolved) &&
		    !profile_addresses_overlaps(addresses, map->start, map->end)) {
			add_mapping(mappings, map->start, map->end, map->pgoff, map->module,
			    file_name(mappings, map->module, map_path(map)));
			return;
		}
	}
	add_mapping(mappings, NOWHERE_BASE, NOWHERE_END, 0, NULL, name[0] ? name : "[unknown]");
}

static void add_main_mapping(struct profile_mappings *mappings)
{
	const char *name = mappings->source.program;
	char *resolved = name[0] && name[0] != '/' ? realpath(name, NULL) : NULL;

	find_main_mapping(mappings, name, resolved ? resolved : name);
	free(resolved);
}

struct profile_mappings *profile_mappings_new(
    struct profile *profile, const struct profile_mappings_source *source)
{
	struct profile_mappings *mappings = calloc(1, sizeof(*mappings));

	if (!mappings)
		return NULL;
	mappings->profile = profile;
	mappings->source = *source;
	mappings->addresses = profile_addresses_new(source->stacks);
	if (mappings->addresses)
		mappings->ids =
		    calloc(profile_addresses_count(mappings->addresses) + 1, sizeof(*mappings->ids));
	if (!mappings->ids) {
		profile_mappings_free(mappings);
		return NULL;
	}
	add_main_mapping(mappings);
	return mappings;
}

void profile_mappings_free(struct profile_mappings *mappings)
{
	if (!mappings)
		return;
	profile_addresses_free(mappings->addresses);
	free(mappings->ids);
	free(mappings);
}

bool profile_mappings_find(struct profile_mappings *mappings, uint32_t frame, uint32_t *id, uint64_t *address)
{
	uint32_t range;

	if (!profile_addresses_find(mappings->addresses, frame, &range, address))
		return false;
	*id = mapping_id(mappings, range);
	return true;
}

uint32_t profile_mappings_markers(struct profile_mappings *mappings)
{
	if (!mappings->markers)
		mappings->markers =
		    add_mapping(mappings, PROFILE_MAPPINGS_MARKER_BASE, MARKER_END, 0, NULL, "[heaptap]");
	return mappings->markers;
}

bool profile_mappings_is_program(const struct profile_mappings *mappings, const struct module *module)
{
	return module == mappings->program;
}
