/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/unseen.h"

#include "sampler/inject/preload_library.h"
#include "sampler/inject/program_symbols.h"
#include "sampler/linux/jit_files.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files */

enum { KNOWN_FILES = 1024, ENVIRONMENT_BYTES = 256 << 10 /* more is not looked at */ };

/* By the file's number: another file with the same number takes its place. */
static struct known {
	uint64_t dev, ino, bytes;
	int64_t mtime_ns, ctime_ns;
	bool any;
	struct program_symbols symbols;
} known_files[KNOWN_FILES];

static int read_module(void *context, void *to, size_t bytes, uint64_t offset)
{
	return module_read(context, to, bytes, offset);
}

/* NULL if the file cannot be read. */
static const struct program_symbols *symbols_of(struct module *module)
{
	const struct module_file *file = &module->file;
	struct known *known = &known_files[(file->ino * 31 + file->dev) % KNOWN_FILES];

	if (!module->readable || module->vdso)
		return NULL;
	if (known->any && known->dev == file->dev && known->ino == file->ino && known->bytes == file->bytes &&
	    known->mtime_ns == file->mtime_ns && known->ctime_ns == file->ctime_ns)
		return &known->symbols;
	*known = (struct known){.dev = file->dev,
	    .ino = file->ino,
	    .bytes = file->bytes,
	    .mtime_ns = file->mtime_ns,
	    .ctime_ns = file->ctime_ns,
	    .any = file->copied.pid == 0};
	if (program_symbols_read(&known->symbols, read_module, module) != 0)
		known->symbols = (struct program_symbols){.table = true}; /* no fact about it */
	return &known->symbols;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A program's own allocator is not seen even if the program exports it: only the libraries' calls are seen
 * (family.h). */
static void note_file(struct unseen_facts *facts, const struct module *module,
    const struct program_symbols *symbols, bool program)
{
	if (program) {
		snprintf(facts->program, sizeof(facts->program), "%s", base_name(module->path));
		facts->stripped = !symbols->table;
		memcpy(facts->debug_link, symbols->debug_link, sizeof(facts->debug_link));
		for (size_t i = 0; i < module->file.build_id_len && i < sizeof(facts->build_id) / 2; i++)
			snprintf(facts->build_id + 2 * i, 3, "%02x", module->file.build_id[i]);
	}
	if (symbols->runtime.kind && (!facts->runtime.kind || symbols->runtime.python_names))
		facts->runtime = symbols->runtime;
	if (!symbols->allocator[0] || facts->allocator[0] || (symbols->exports_allocator && !program))
		return;
	memcpy(facts->allocator, symbols->allocator, sizeof(facts->allocator));
	snprintf(facts->allocator_file, sizeof(facts->allocator_file), "%s", base_name(module->path));
}

/* Compares paths; for a program that was executed by a relative path, the last parts of the paths. */
static bool is_program(const struct map *map, const char *program)
{
	return strcmp(map_path(map), program) == 0 ||
	    (program[0] && program[0] != '/' && strcmp(base_name(map_path(map)), base_name(program)) == 0);
}

static bool is_ours(const struct map *map)
{
	const char *name = base_name(map_path(map));

	return strcmp(name, PRELOAD_LIBRARY_NAME) == 0 ||
	    strncmp(name, ATTACH_LIBRARY_NAME, strlen(ATTACH_LIBRARY_NAME)) == 0 ||
	    strncmp(name, "memfd:" ATTACH_LIBRARY_NAME, strlen("memfd:" ATTACH_LIBRARY_NAME)) == 0;
}

/* dlmopen loads every library once more, and binds a plug-in to these: no preloaded library is before
 * them. */
static bool is_libc(const struct map *map)
{
	const char *name = base_name(map_path(map));

	return map->has_bias && strcmp(name, "libc.so.6") == 0;
}

void unseen_facts_look(struct unseen_facts *facts, const struct maps *maps, const char *program)
{
	const struct module *before = NULL;
	const struct map *libc = NULL;

	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct map *map = maps_at(maps, i);
		const struct program_symbols *symbols =
		    map->module && map->module != before && !is_ours(map) ? symbols_of(map->module) : NULL;

		before = map->module;
		facts->second_libc |= libc && is_libc(map) && map->bias != libc->bias;
		libc = !libc && is_libc(map) ? map : libc;
		if (symbols)
			note_file(facts, map->module, symbols, is_program(map, program));
	}
}

bool unseen_facts_runtime_entry(struct module *module, uint64_t *start, uint64_t *end)
{
	const struct program_symbols *symbols = module ? symbols_of(module) : NULL;

	if (!symbols || !symbols->runtime.entry_end)
		return false;
	*start = symbols->runtime.entry_start;
	*end = symbols->runtime.entry_end;
	return true;
}

/* ---- a process */

bool unseen_facts_asks(pid_t pid)
{
	char text[PROC_STATUS_BYTES];

	return proc_read(pid, "status", text, sizeof(text)) >= 0 &&
	    proc_status_number(text, "\nSigCgt:", 16, 0) & 1u << (SIGQUIT - 1);
}

bool unseen_facts_runtime_by_malloc(pid_t pid, enum runtime_kind kind)
{
	char *text = kind ? malloc(ENVIRONMENT_BYTES) : NULL;
	const ssize_t bytes = text ? proc_read(pid, "environ", text, ENVIRONMENT_BYTES) : 0;
	const bool by_malloc = bytes > 0 && runtime_memory_is_off(kind, text, (size_t)bytes);

	free(text);
	return by_malloc;
}

static bool names_functions(pid_t pid, const struct maps *maps)
{
	struct perf_map_file file;

	for (size_t i = 0; i < maps_count(maps); i++)
		if (jitdump_file_is_name(map_path(maps_at(maps, i))))
			return true;
	if (perf_map_file_note(&file, pid) != 0)
		return false;
	const int fd = perf_map_file_open(&file);
	perf_map_file_forget(&file);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int unseen_facts_look_at_process(struct unseen_facts *facts, struct modules *modules, pid_t pid)
{
	char program[PATH_MAX];
	struct maps *maps = maps_new(modules, pid, true);
	int error = maps ? maps_read_proc(maps) : -ENOMEM;

	if (!error) {
		(void)proc_read_exe(pid, program, sizeof(program));
		unseen_facts_look(facts, maps, program);
		facts->asks = unseen_facts_asks(pid);
		facts->runtime_by_malloc = unseen_facts_runtime_by_malloc(pid, facts->runtime.kind);
		facts->names_unknown = facts->runtime.kind && !names_functions(pid, maps);
	}
	if (maps)
		maps_free(maps);
	return error;
}
