/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/generated_names.h"

#include "sampler/symbol/jitdump.h"
#include "sampler/symbol/perfmap.h"

#include <errno.h>
#include <stdio.h>

static void read_perfmap(struct perfmap *perfmap, const struct perf_map_file *file, struct profile *profile)
{
	char comment[160];

	if (perfmap_read(perfmap, file) == -ESTALE)
		profile_add_comment(profile, "perf map: not read, it was written before the process started");
	if (perfmap_cut(perfmap)) {
		snprintf(comment, sizeof(comment),
		    "perf map: only its last %d MiB were read; older code in it is [jit] here",
		    PERFMAP_BYTES_MAX >> 20);
		profile_add_comment(profile, comment);
	}
}

static void read_jitdump(struct jitdump *jitdump, const struct jitdump_file *file, struct profile *profile)
{
	char comment[160];

	(void)jitdump_read(jitdump, file->fd);
	if (jitdump_cut(jitdump)) {
		snprintf(comment, sizeof(comment),
		    "jitdump: only its first %d MiB were read; other code in it is [jit] here",
		    JITDUMP_BYTES_MAX >> 20);
		profile_add_comment(profile, comment);
	}
}

int generated_names_read(struct generated_names *names, const struct generated_files *files,
    uint64_t *addresses, size_t count, struct profile *profile)
{
	if (files->perf_map) {
		names->perfmap = perfmap_new(addresses, count);
		if (!names->perfmap)
			return -ENOMEM;
		read_perfmap(names->perfmap, files->perf_map, profile);
	}
	if (files->jitdump) {
		names->jitdump = jitdump_new(addresses, count);
		if (!names->jitdump)
			return -ENOMEM;
		read_jitdump(names->jitdump, files->jitdump, profile);
	}
	return 0;
}

void generated_names_fini(struct generated_names *names)
{
	perfmap_free(names->perfmap);
	jitdump_free(names->jitdump);
}

struct symbol_frame generated_names_find(const struct generated_names *names, uint64_t address, bool lines)
{
	const struct jitdump_name *made = names->jitdump ? jitdump_find(names->jitdump, address) : NULL;
	const char *name = NULL;

	if (made)
		return (struct symbol_frame){.name = made->function,
		    .system_name = made->function,
		    .file = lines ? made->file : NULL,
		    .line = lines ? made->line : 0};
	if (names->perfmap)
		name = perfmap_find(names->perfmap, address);
	name = name ? name : "[jit]";
	return (struct symbol_frame){.name = name, .system_name = name};
}
