/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/resident.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	READ_BYTES = 16384,
	PAGE_BYTES = 4096,
	PAGE_COST_NS = 80, /* measured */
	/* The most bytes above a thread's descriptor: on some machines its thread-local variables are there.
	 * A mapping that goes on for longer is more than a stack. */
	ABOVE_DESCRIPTOR_BYTES = 1 << 20,
	/* The .bss of our library is smaller (28 KiB). A longer mapping there is the program's: the kernel
	 * has merged our .bss with it. */
	OWN_BSS_BYTES_MOST = 64 << 10,
};

static const struct {
	const char *word, *name;
} kinds[RESIDENT_KINDS] = {
    [RESIDENT_HEAP] = {"heap_mappings", "the allocator's mappings"},
    [RESIDENT_ANONYMOUS] = {"anonymous", "other anonymous memory"},
    [RESIDENT_CODE] = {"code", "program and libraries"},
    [RESIDENT_FILES] = {"files", "other files"},
    [RESIDENT_SHARED] = {"shared", "shared memory"},
    [RESIDENT_STACKS] = {"stacks", "stacks"},
    [RESIDENT_OURS] = {"heaptap", "heaptap's own"},
    [RESIDENT_KERNEL] = {"kernel", "the kernel's ([vdso] and the like)"},
};

const char *resident_kind_name(enum resident_kind kind)
{
	return kinds[kind].name;
}

const char *resident_kind_word(enum resident_kind kind)
{
	return kinds[kind].word;
}

/* ---- one mapping */

static bool starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The number of stacks in a mapping. Without guard pages between them a mapping may have several. */
static size_t stacks_in(const struct resident_facts *facts, uint64_t start, uint64_t end)
{
	size_t from = array_lower_bound(
	    facts->descriptors, facts->descriptor_count, sizeof(*facts->descriptors), 0, start);
	size_t to = array_lower_bound(
	    facts->descriptors, facts->descriptor_count, sizeof(*facts->descriptors), 0, end);

	return to > from && end - facts->descriptors[to - 1] <= ABOVE_DESCRIPTOR_BYTES ? to - from : 0;
}

/* Whether it is private anonymous memory to which the kernel gives no name. */
static enum resident_kind anonymous_kind(struct resident_reader *reader, const struct smaps_mapping *mapping)
{
	const struct resident_facts *facts = reader->facts;
	const char *name = mapping->range.path;
	uint64_t start = mapping->range.start, end = start + mapping->range.len;

	/* the names that glibc gives with the tunable glibc.mem.decorate_maps */
	if (starts(name, "[anon: glibc: malloc"))
		return RESIDENT_HEAP;
	/* else it was merged with others */
	if ((start >= facts->own_start && end <= facts->own_end) ||
	    (start >= facts->grown_start && end <= facts->grown_end))
		return RESIDENT_OURS;
	size_t stacks = stacks_in(facts, start, end);
	if (stacks || starts(name, "[anon: glibc: pthread")) {
		reader->resident->threads += stacks;
		return RESIDENT_STACKS;
	}
	return RESIDENT_ANONYMOUS;
}

static bool is_named(const char *path, const char *name)
{
	static const char memory[] = "memfd:";
	const char *slash = strrchr(path, '/');

	if (slash && strncmp(slash + 1, memory, strlen(memory)) == 0)
		slash += strlen(memory);
	return slash && name && strcmp(slash + 1, name) == 0;
}

/* RESIDENT_FILES stands for every file: the mappings around it tell more. */
static enum resident_kind kind_of(struct resident_reader *reader, const struct smaps_mapping *mapping)
{
	const char *name = mapping->range.path;

	if (starts(name, "/memfd:heaptap")) {
		reader->resident->has_region = reader->resident->has_region ||
		    (reader->facts->region_ino && mapping->range.ino == reader->facts->region_ino);
		return RESIDENT_OURS;
	}
	if (starts(name, "[heap]"))
		return RESIDENT_HEAP;
	if (starts(name, "[stack")) {
		reader->resident->threads++;
		return RESIDENT_STACKS;
	}
	if (starts(name, "[anon_shmem") ||
	    (starts(name, "/memfd:") && !is_named(name, reader->facts->library)) ||
	    starts(name, "/dev/shm/") || starts(name, "/SYSV") ||
	    (starts(name, "/dev/zero") && mapping->shared))
		return RESIDENT_SHARED;
	if (!*name || starts(name, "[anon") || starts(name, "/dev/zero"))
		return anonymous_kind(reader, mapping);
	return *name == '/' ? RESIDENT_FILES : RESIDENT_KERNEL;
}

/* ---- files */

static void close_file(struct resident_reader *reader)
{
	struct resident *resident = reader->resident;

	if (!reader->file.open)
		return;
	reader->file.open = false;
	resident->bytes[reader->file.ours ? RESIDENT_OURS
	        : reader->file.code       ? RESIDENT_CODE
	                                  : RESIDENT_FILES] += reader->file.rss_bytes;
	resident->bytes[reader->file.ours ? RESIDENT_OURS
	        : reader->file.code       ? RESIDENT_CODE
	                                  : RESIDENT_ANONYMOUS] += reader->file.bss_bytes;
}

static void add_file(struct resident_reader *reader, const struct smaps_mapping *mapping)
{
	const struct map_range *range = &mapping->range;

	if (!reader->file.open || reader->file.ino != range->ino || reader->file.major != range->major ||
	    reader->file.minor != range->minor) {
		close_file(reader);
		memset(&reader->file, 0, sizeof(reader->file));
		reader->file.open = true;
		reader->file.ino = range->ino;
		reader->file.major = range->major;
		reader->file.minor = range->minor;
		reader->file.ours = is_named(range->path, reader->facts->library);
	}
	reader->file.code = reader->file.code || range->prot & PROT_EXEC;
	reader->file.data = range->prot & PROT_WRITE && !mapping->shared;
	reader->file.end = range->start + range->len;
	reader->file.rss_bytes += mapping->rss_bytes;
}

/* The loader puts the zeroed rest of a program's data behind the part that is in the file. */
static bool is_bss(const struct resident_reader *reader, const struct smaps_mapping *mapping)
{
	return reader->file.open && reader->file.data && mapping->range.start == reader->file.end &&
	    !*mapping->range.path && mapping->range.prot & PROT_WRITE &&
	    (!reader->file.ours || mapping->range.len <= OWN_BSS_BYTES_MOST);
}

static void add_area(struct resident_reader *reader, const struct smaps_mapping *mapping)
{
	const struct resident_area area = {
	    .start = mapping->range.start,
	    .end = mapping->range.start + mapping->range.len,
	    .rss_bytes = mapping->rss_bytes,
	};

	if (!mapping->rss_bytes)
		return;
	if (array_reserve(&reader->areas, &reader->area_room, reader->area_count + 1, sizeof(area)) != 0)
		reader->no_memory = true;
	else
		reader->areas[reader->area_count++] = area;
}

static void add_mapping(void *context, const struct smaps_mapping *mapping)
{
	struct resident_reader *reader = context;
	enum resident_kind kind = kind_of(reader, mapping);

	reader->resident->mappings++;
	reader->resident->total_bytes += mapping->rss_bytes;
	reader->resident->swap_bytes += mapping->shared ? 0 : mapping->swap_bytes;
	if (kind == RESIDENT_FILES) {
		add_file(reader, mapping);
	} else if (kind == RESIDENT_ANONYMOUS && is_bss(reader, mapping)) {
		reader->file.bss_bytes = mapping->rss_bytes;
		close_file(reader);
	} else {
		close_file(reader);
		reader->resident->bytes[kind] += mapping->rss_bytes;
		if (kind == RESIDENT_ANONYMOUS) {
			reader->resident->alone_bytes += mapping->alone_bytes;
			add_area(reader, mapping);
		}
	}
}

/* ---- the text */

void resident_begin(
    struct resident_reader *reader, const struct resident_facts *facts, struct resident *resident)
{
	memset(&reader->file, 0, sizeof(reader->file));
	memset(resident, 0, sizeof(*resident));
	reader->areas = NULL;
	reader->area_count = reader->area_room = reader->area_last = 0;
	reader->no_memory = false;
	reader->facts = facts;
	reader->resident = resident;
	smaps_begin(&reader->smaps, add_mapping, reader);
}

void resident_feed(struct resident_reader *reader, const char *bytes, size_t count)
{
	smaps_feed(&reader->smaps, bytes, count);
}

/* Finds the memory that the blocks show to be the allocator's. */
static void take_from_area(struct resident *resident, const struct resident_area *area)
{
	uint64_t bytes = area->rss_bytes;

	if (!area->small && area->large_bytes < (double)bytes)
		bytes = (uint64_t)area->large_bytes;
	resident->bytes[RESIDENT_ANONYMOUS] -= bytes;
	resident->bytes[RESIDENT_HEAP] += bytes;
}

int resident_end(struct resident_reader *reader, int error)
{
	int text_error = smaps_end(&reader->smaps);

	close_file(reader);
	error = error ? error : text_error;
	if (!error && reader->no_memory)
		error = -ENOMEM;
	if (!error && reader->facts->each_block)
		reader->facts->each_block(reader->facts->context, reader);
	for (size_t i = 0; i < reader->area_count; i++)
		take_from_area(reader->resident, &reader->areas[i]);
	free(reader->areas);
	reader->areas = NULL;
	reader->area_count = 0;
	return error;
}

void resident_block(
    struct resident_reader *reader, uint64_t address, uint64_t size_bytes, double weight_bytes)
{
	size_t at = reader->area_last;

	if (at >= reader->area_count || address < reader->areas[at].start || address >= reader->areas[at].end)
		at = ARRAY_UPPER_BOUND(reader->areas, reader->area_count, end, address);
	if (at >= reader->area_count || address < reader->areas[at].start)
		return;
	struct resident_area *area = &reader->areas[at];
	reader->area_last = at;
	if (size_bytes < RESIDENT_LARGE_BYTES)
		area->small = true;
	else
		area->large_bytes += weight_bytes;
}

static int read_text(struct resident_reader *reader, pid_t pid, uint64_t most_ns)
{
	uint64_t until_ns = most_ns ? clock_thread_cpu_ns() + most_ns : UINT64_MAX;
	char path[PROC_PATH_BYTES], text[READ_BYTES];
	int fd = open(proc_path(path, pid, "smaps"), O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(fd, text, sizeof(text))) > 0 && clock_thread_cpu_ns() < until_ns)
		resident_feed(reader, text, (size_t)got);
	int error = got < 0 ? -errno : got > 0 ? -ETIME : 0;
	/* When the process gives up its address space during the reading, the text just ends. The text is
	 * whole if it still has a beginning afterwards. */
	if (!error && pread(fd, text, 1, 0) <= 0)
		error = -ESRCH;
	close(fd);
	return error;
}

/* ---- the kernel's counters */

bool resident_parse_status(struct resident *resident, const char *text)
{
	static const struct {
		enum resident_kind kind;
		const char *label;
	} counters[] = {{RESIDENT_ANONYMOUS, "\nRssAnon:"}, {RESIDENT_FILES, "\nRssFile:"},
	    {RESIDENT_SHARED, "\nRssShmem:"}};

	memset(resident, 0, sizeof(*resident));
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		unsigned long long kib = proc_status_number(text, counters[i].label, 10, ULLONG_MAX);
		if (kib > UINT64_MAX >> 12)
			return false; /* a kernel thread, a zombie */
		resident->bytes[counters[i].kind] = (uint64_t)kib << 10;
		resident->total_bytes += (uint64_t)kib << 10;
	}
	unsigned long long swap_kib = proc_status_number(text, "\nVmSwap:", 10, 0);
	resident->swap_bytes = swap_kib > UINT64_MAX >> 12 ? 0 : (uint64_t)swap_kib << 10;
	resident->counters = true;
	return true;
}

/* ---- all */

static int read_mappings(
    struct resident *resident, pid_t pid, const struct resident_facts *facts, uint64_t most_ns)
{
	struct resident_reader reader;
	struct thread_descriptors descriptors = {0};
	struct resident_facts all = *facts;

	if (!all.descriptors && thread_facts_descriptors_read(&descriptors, pid) == 0) {
		all.descriptors = descriptors.addresses;
		all.descriptor_count = descriptors.count;
	}
	resident_begin(&reader, &all, resident);
	int error = resident_end(&reader, read_text(&reader, pid, most_ns));
	thread_facts_descriptors_fini(&descriptors);
	if (error)
		return error;
	return resident->mappings && (resident->has_region || !facts->region_ino) ? 0 : -ESRCH;
}

int resident_read(struct resident *resident, pid_t pid, const struct resident_facts *facts, uint64_t most_ns)
{
	char text[PROC_STATUS_BYTES];
	ssize_t got = proc_read(pid, "status", text, sizeof(text));

	if (got < 0)
		return (int)got;
	if (!resident_parse_status(resident, text))
		return -ESRCH;
	if (most_ns && resident->total_bytes / PAGE_BYTES * PAGE_COST_NS > most_ns)
		return 0;
	const struct resident counters = *resident;
	int error = read_mappings(resident, pid, facts, most_ns);
	if (error == -ETIME) {
		*resident = counters;
		error = 0;
	}
	return error;
}
