/* SPDX-License-Identifier: Apache-2.0 */
/* What is put together from a process' memory says the same as the file, as far as it is in memory; and
 * whatever is in memory, no more than is allowed is read of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/maps.h"
#include "sampler/unwind/module.h"
#include "tests/unit/stranger.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { AREA_BYTES = 64 << 20 };

static char folder[] = "/tmp/heaptap-copied.XXXXXX";

/* A library by each way of laying it out that this machine's linkers have. */
static const char *const layouts[] = {
    "",
    "-Wl,-z,noseparate-code",
    "-Wl,--hash-style=sysv",
    "-Wl,--build-id=none",
    "-Wl,-z,max-page-size=65536",
    "-fuse-ld=gold",
    "-fuse-ld=lld",
    "-fuse-ld=mold",
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static const char source[] =
    "#include <stdlib.h>\n"
    "static __attribute__((noinline)) void *hidden(int n) { char *p = malloc(n + 1); if (p) *p = 1; return "
    "p; }\n"
    "__attribute__((noinline)) void *shown(int n) { void *p = hidden(n + 2); __asm__(\"\"); return p; }\n"
    "int value = 3, more[1000] = {1};\n";

static void path_of(char path[128], unsigned layout)
{
	snprintf(path, 128, "%s/lib%u.so", folder, layout);
}

static bool make_library(unsigned layout)
{
	char command[512], path[128];

	path_of(path, layout);
	snprintf(command, sizeof(command), "cc -O1 -shared -fPIC %s -o %s %s/source.c 2>%s/log",
	    layouts[layout], path, folder, folder);
	return system(command) == 0;
}

/* The line of the code of what is open as PATH, in our maps. */
static struct map_range find_code(const char *path, char line[4352])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct map_range range, found = {0};

	assert_non_null(maps);
	while (!found.len && fgets(line, 4352, maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (maps_parse_line(line, &range) && range.prot & PROT_EXEC &&
		    strncmp(range.path, path, strlen(path)) == 0)
			found = range;
	}
	fclose(maps);
	assert_true(found.len > 0);
	return found;
}

static int read_own(void *context, void *to, size_t bytes, uint64_t address)
{
	const int fd = *(const int *)context;

	return pread(fd, to, bytes, (off_t)address) == (ssize_t)bytes ? 0 : -EIO;
}

static struct module_memory_copy gather(const struct map_range *range, uint64_t bytes_max, int *error)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	const struct module_memory memory = {.read = read_own, .context = &fd};
	struct module_memory_copy copy = {
	    .start = range->start, .pgoff = range->pgoff, .area_bytes = AREA_BYTES, .bytes_max = bytes_max};

	copy.area = mmap(
	    NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(copy.area, MAP_FAILED);
	*error = module_memory_gather(&memory, &copy);
	close(fd);
	return copy;
}

/* The vaddr of a function by the file's section of that type; 0: it is not there. */
static uint64_t vaddr_of(int fd, GElf_Word type, const char *name)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;
	uint64_t found = 0;

	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == type)
			for (size_t i = 0; i < header.sh_size / sizeof(Elf64_Sym); i++) {
				assert_non_null(gelf_getsym(elf_getdata(section, NULL), (int)i, &symbol));
				const char *this = elf_strptr(elf, header.sh_link, symbol.st_name);
				assert_non_null(this);
				if (strcmp(this, name) == 0)
					found = symbol.st_value;
			}
	elf_end(elf);
	return found;
}

static bool same_rule(const struct cfi_rule *a, const struct cfi_rule *b)
{
	return a->kind == b->kind && a->cfa_reg == b->cfa_reg && a->cfa_offset == b->cfa_offset &&
	    a->ra_offset == b->ra_offset;
}

/* As a user: root is given the file by the kernel. */
static struct module *get_copied(struct modules *store, const struct map_range *range, pid_t pid)
{
	const struct module_request request = {
	    .pid = pid,
	    .told = true,
	    .start = range->start + 1, /* no name in map_files */
	    .end = range->start + range->len,
	    .pgoff = range->pgoff + 1,
	    .path = range->path,
	    .dev = makedev(range->major, range->minor),
	    .ino = range->ino,
	    .copy_bytes_max = UINT64_MAX,
	};

	return module_get(store, &request);
}

static void it_says_what_the_file_says(void **state)
{
	char path[128], line[4352];
	unsigned compared = 0;
	int error;

	(void)state;
	for (unsigned i = 0; i < LAYOUTS; i++) {
		struct modules *store = modules_new(0), *other_store = modules_new(0);

		if (!make_library(i)) {
			modules_free(store);
			modules_free(other_store);
			continue;
		}
		path_of(path, i);
		int file = open(path, O_RDONLY | O_CLOEXEC);
		void *library = dlopen(path, RTLD_NOW);
		assert_non_null(library);
		const struct module_request whole = {.path = path};
		struct module *true_one = module_get(store, &whole);
		assert_int_equal(unlink(path), 0);
		const struct map_range range = find_code(path, line);
		struct module *copied = get_copied(other_store, &range, getpid());
		assert_true(copied->readable);
		assert_ptr_not_equal(copied, true_one);
		assert_true(
		    copied->file.copied.bytes > 0 && copied->file.copied.bytes < true_one->file.bytes);
		assert_true(module_file_resembles(&copied->file, &true_one->file));
		assert_int_equal(copied->file.build_id_len, true_one->file.build_id_len);
		assert_memory_equal(
		    copied->file.build_id, true_one->file.build_id, copied->file.build_id_len);
		const uint64_t shown = vaddr_of(file, SHT_DYNSYM, "shown");
		assert_true(shown != 0);
		assert_int_equal(vaddr_of(module_fd(copied), SHT_DYNSYM, "shown"), shown);
		assert_int_equal(vaddr_of(module_fd(copied), SHT_SYMTAB, "hidden"), 0);
		const uint64_t hidden = vaddr_of(file, SHT_SYMTAB, "hidden");
		for (uint64_t at = 0; at < 32; at++) {
			assert_true(
			    same_rule(module_rule(true_one, shown + at), module_rule(copied, shown + at)));
			assert_true(
			    same_rule(module_rule(true_one, hidden + at), module_rule(copied, hidden + at)));
		}
		/* Never more than it may. */
		const uint64_t bytes = copied->file.copied.bytes;
		for (uint64_t most = 0; most < bytes; most += bytes / 7) {
			struct module_memory_copy less = gather(&range, most, &error);

			assert_int_equal(error, -EFBIG);
			assert_true(less.bytes <= most);
			munmap(less.area, AREA_BYTES);
		}
		module_unref(copied);
		module_unref(true_one);
		dlclose(library);
		close(file);
		modules_free(store);
		modules_free(other_store);
		compared++;
	}
	assert_true(compared >= 5);
}

/* As long as it is used; and it is no other process'. */
static void a_copy_is_of_one_process(void **state)
{
	char path[128], line[4352];
	struct modules *store = modules_new(0);

	(void)state;
	assert_true(make_library(0));
	path_of(path, 0);
	void *library = dlopen(path, RTLD_NOW);
	assert_int_equal(unlink(path), 0);
	const struct map_range range = find_code(path, line);
	struct stranger child = stranger_start(NULL, NULL);
	struct module *ours = get_copied(store, &range, getpid());
	struct module *again = get_copied(store, &range, getpid());
	struct module *others = get_copied(store, &range, child.pid);
	assert_true(ours->readable && others->readable);
	assert_ptr_equal(ours, again);
	assert_ptr_not_equal(ours, others);
	assert_int_equal(modules_counters(store)->copies, 2);
	module_unref(ours);
	module_unref(again);
	module_unref(others);
	/* Nobody else could use it. */
	assert_int_equal(modules_count(store), 0);
	assert_int_equal(modules_open_fds(store), 0);
	stranger_end(&child);
	dlclose(library);
	modules_free(store);
}

/* What was open already is the same file still, for whoever maps it. */
static void an_open_file_is_found_by_its_inode(void **state)
{
	char path[128], line[4352];
	struct modules *store = modules_new(0);

	(void)state;
	assert_true(make_library(3));
	path_of(path, 3);
	void *library = dlopen(path, RTLD_NOW);
	const struct module_request whole = {.path = path};
	struct module *true_one = module_get(store, &whole);
	assert_int_equal(unlink(path), 0);
	struct map_range range = find_code(path, line);
	if (makedev(range.major, range.minor) != true_one->file.dev)
		skip(); /* on a file system whose device is another in maps */
	struct module *found = get_copied(store, &range, getpid());
	assert_ptr_equal(found, true_one);
	assert_int_equal(modules_counters(store)->copies, 0);
	/* Another inode, or another device, is another file. */
	range.ino++;
	struct module *other = get_copied(store, &range, getpid());
	assert_ptr_not_equal(other, true_one);
	module_unref(other);
	module_unref(found);
	module_unref(true_one);
	dlclose(library);
	modules_free(store);
}

/* Addresses and lengths that are no such thing, one at a time and at random. */
struct memory {
	const unsigned char *bytes;
	uint64_t start, length;
	uint64_t read;
};

static int read_memory(void *context, void *to, size_t bytes, uint64_t address)
{
	struct memory *m = context;

	m->read += bytes;
	if (address < m->start || address - m->start > m->length || bytes > m->length - (address - m->start))
		return -EIO;
	memcpy(to, m->bytes + (address - m->start), bytes);
	return 0;
}

static void hostile_memory_is_bounded(void **state)
{
	enum { BYTES = 16384, MOST = 1 << 20 };
	static const uint64_t words[] = {0, 1, 7, 0xfff, 0x1000, INT64_MAX, UINT64_MAX, UINT64_MAX - 4095};
	char path[128];
	unsigned char *whole = calloc(1, BYTES), *changed = malloc(BYTES);

	(void)state;
	assert_true(make_library(0));
	path_of(path, 0);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(pread(file, whole, BYTES, 0) > 0);
	close(file);
	assert_int_equal(unlink(path), 0);
	unsigned char *area = mmap(
	    NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t random = 88172645463325252u;
	unsigned good = 0;
	for (unsigned round = 0; round < 20000; round++) {
		memcpy(changed, whole, BYTES);
		/* As the loader has it: the vaddrs of this file are its offsets but for the data. */
		for (unsigned i = 0; round && i < 1 + round % 5; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			const uint64_t at = (random >> 8) % (random & 1 ? 0x400 : BYTES - 8);
			const uint64_t word = random & 2 ? words[random >> 2 & 7] : random;
			memcpy(changed + at, &word, 1u << (random >> 5 & 3));
		}
		struct memory m = {.bytes = changed, .start = 0x7f0000000000, .length = BYTES};
		const struct module_memory memory = {.read = read_memory, .context = &m};
		struct module_memory_copy copy = {.start = m.start + 0x1000,
		    .pgoff = 0x1000,
		    .area = area,
		    .area_bytes = AREA_BYTES,
		    .bytes_max = MOST};
		int error = module_memory_gather(&memory, &copy);
		good += error == 0;
		assert_true(round > 0 || error == 0);
		assert_true(copy.bytes <= MOST && copy.length <= AREA_BYTES);
		assert_true(m.read <= 64 << 20);
	}
	assert_true(good > 1000 && good < 20000);
	munmap(area, AREA_BYTES);
	free(whole);
	free(changed);
}

static int make_folder(void **state)
{
	char path[128];

	(void)state;
	elf_version(EV_CURRENT);
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/source.c", folder);
	FILE *file = fopen(path, "we");
	return file && fputs(source, file) >= 0 && fclose(file) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_says_what_the_file_says),
	    cmocka_unit_test(a_copy_is_of_one_process),
	    cmocka_unit_test(an_open_file_is_found_by_its_inode),
	    cmocka_unit_test(hostile_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
