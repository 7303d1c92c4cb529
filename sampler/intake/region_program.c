/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/region_program.h"

#include <string.h>

void region_program_path(const struct region *region, char path[REGION_PATH_BYTES])
{
	struct region_module first;
	const unsigned char *at = region->base + region->offsets.modules;

	memcpy(&first, at, sizeof(first));
	memcpy(path, at + sizeof(first), REGION_PATH_BYTES);
	path[first.path_bytes >= 1 && first.path_bytes <= REGION_PATH_BYTES ? first.path_bytes - 1 : 0] =
	    '\0';
}

void region_program_command_line(const struct region *region, char line[REGION_COMMAND_LINE_BYTES])
{
	memcpy(line, region->base + region->offsets.command_line, REGION_COMMAND_LINE_BYTES);
	line[REGION_COMMAND_LINE_BYTES - 1] = '\0';
}
