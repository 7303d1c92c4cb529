/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/process_maps.h"

#include "proto/loader_log.h"
#include "sampler/heap/offerer.h"
#include "sampler/linux/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

/* A path by which every program may be executed is nobody's name. */
static bool is_name(const char *path)
{
	return strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/dev/fd/", 8) != 0;
}

/* Where the process counts what it unmaps, and who notes it. A forked child counts on from its parent's
 * count, so up to there the image's notes, or the parent's maps, are good for it too. */
static void find_past(struct process *process, const struct process *parent)
{
	const struct region *region = process->image->region;
	const struct region_place *place = region_place(region, process->place);
	const uint64_t forked = loader_log_count(*(const volatile uint64_t *)&place->forked_unmaps);
	struct target_past_source *source = &process->target.past.source;

	*source = (struct target_past_source){.place = place, .header = region_header(region)};
	if (process->place != 0 && (!parent || forked > parent->target.past.source.log_until))
		return;
	source->log = process->place == 0 ? &region_walk(region)->loader_log : parent->target.past.source.log;
	source->log_until = process->place == 0 ? UINT64_MAX : forked;
}

/* When maps were read that are another process' too. */
static uint64_t read_at_of(const struct process *process, uint64_t read_at)
{
	const uint64_t forked = *(const volatile uint64_t *)&process->target.past.source.place->forked_unmaps;

	return loader_log_count(read_at) <= loader_log_count(forked) ? read_at : TARGET_PAST_UNKNOWN;
}

/* Takes the maps from the image's own list of what its loader had mapped: the only source if the process has
 * already ended. */
static void maps_from_image(struct process *process)
{
	const struct region *region = process->image->region;
	const unsigned char *at = region->base + region->offsets.modules, *end = at + REGION_MODULES_BYTES;

	for (uint32_t i = 0; i < 4096 && (size_t)(end - at) > sizeof(struct region_module); i++) {
		struct region_module module;
		char path[REGION_PATH_BYTES];

		memcpy(&module, at, sizeof(module));
		if (module.total_bytes < sizeof(module) || module.total_bytes > (size_t)(end - at) ||
		    module.path_bytes < 1 || module.path_bytes > sizeof(path) ||
		    module.path_bytes > module.total_bytes - sizeof(module) || module.end < module.start)
			break;
		memcpy(path, at + sizeof(module), module.path_bytes);
		path[module.path_bytes - 1] = '\0';
		at += module.total_bytes;
		if (!process->target.name[0] && is_name(path))
			snprintf(process->target.name, sizeof(process->target.name), "%s", path);
		if (module.start == module.end)
			continue; /* only by which path it was executed */
		const struct map_range range = {
		    .start = module.start,
		    .len = module.end - module.start,
		    .pgoff = module.file_offset,
		    .prot = PROT_READ | PROT_EXEC,
		    .path = strncmp(path, "linux-vdso", 10) == 0 || strcmp(path, "linux-gate.so.1") == 0
		        ? "[vdso]"
		        : path,
		    .build_id = module.build_id_bytes ? module.build_id : NULL,
		    .build_id_len =
		        (uint8_t)(module.build_id_bytes <= REGION_BUILD_ID_MAX ? module.build_id_bytes : 0),
		    .major = major(module.dev),
		    .minor = minor(module.dev),
		    .ino = module.ino,
		    .listed = true,
		};
		maps_add(process->target.maps, &range);
	}
}

/* Of an image that has offered its region, and so tells no modules: those of another of its processes. */
static const struct target *alike_of_image(const struct process *process)
{
	const struct image *image = process->image;

	if (!image->origin.offered)
		return NULL;
	if (image->offerer)
		return &image->offerer->target;
	return image->places.at[0] ? &image->places.at[0]->target : NULL;
}

void process_maps_open(struct process *process, struct modules *modules, const struct process *parent)
{
	struct target *target = &process->target;

	find_past(process, parent);
	target->maps = offerer_take_maps(process, &target->maps_read_ns);
	if (target->maps) {
		target_note_reading(target, 0); /* the count was not read then */
		return;
	}
	target->maps = maps_new(modules, target->readable ? target->pid : 0, true);
	process_look_for_maps_room(process);
	if (!target->maps || (target_read_maps(target, clock_now_ns(), 0) && maps_count(target->maps) > 0))
		return;
	target->maps_read_ns = 0;
	const struct target *alike = alike_of_image(process);
	if (!alike && parent)
		alike = &parent->target;
	if (!alike) {
		maps_from_image(process);
		target->past.read_at = 0;
		return;
	}
	maps_free(target->maps);
	target->maps = maps_copy(alike->maps, 0, target->maps_room_bytes);
	target->past.read_at = read_at_of(process, alike->past.read_at);
}
