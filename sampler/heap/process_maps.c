/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/process_maps.h"

#include "sampler/linux/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

/* for so long the maps of a process that was found are good for its books */
enum { FOUND_NS = 500 * 1000000 };

/* A path by which every program may be executed is nobody's name. */
static bool is_name(const char *path)
{
	return strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/dev/fd/", 8) != 0;
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
static const struct maps *maps_of_image(const struct process *process)
{
	const struct image *image = process->image;
	if (!image->offered)
		return NULL;
	if (image->finding)
		return image->finding->target.maps;
	return image->process[0] ? image->process[0]->target.maps : NULL;
}

/* Those that were read when it was found, if that was just now: to read them opens each of its files.
 * (What has changed since is found as in any process: by a stack in no map.) */
static bool take_maps_of_finding(struct process *process)
{
	struct target *target = &process->target,
	              *found = process->image->finding ? &process->image->finding->target : NULL;
	if (!found || !found->maps || !target->readable || found->pid != target->pid ||
	    clock_now_ns() - found->start_ns > FOUND_NS ||
	    (target->code_address && !maps_find(found->maps, target->code_address)))
		return false;
	target->maps = found->maps;
	target->maps_read_ns = found->start_ns;
	found->maps = NULL;
	process_finding_weigh(process->image->finding);
	return true;
}

void process_maps_open(struct process *process, struct modules *modules, const struct process *parent)
{
	struct target *target = &process->target;
	if (take_maps_of_finding(process))
		return;
	target->maps = maps_new(modules, target->readable ? target->pid : 0, true);
	process_look_for_maps_room(process);
	if (!target->maps || (target_read_maps(target, clock_now_ns(), 0) && maps_count(target->maps) > 0))
		return;
	target->maps_read_ns = 0;
	const struct maps *alike = maps_of_image(process);
	if (!alike && parent)
		alike = parent->target.maps;
	if (!alike) {
		maps_from_image(process);
		return;
	}
	maps_free(target->maps);
	target->maps = maps_copy(alike, 0, target->maps_room_bytes);
}
