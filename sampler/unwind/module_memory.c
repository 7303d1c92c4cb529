/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/module.h"

#include "sampler/linux/memory_file.h"
#include "sampler/linux/memory_reader.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"
#include "sampler/linux/thread_facts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PHDRS_MAX = 512,
	GAPS = 17,               /* pages by which linkers place code higher than in the file */
	NOTES_MAX = 64 << 10,    /* of one PT_NOTE */
	DYNAMIC_MAX = 1024,      /* entries */
	SYMBOLS_MAX = 1 << 20,   /* of one table */
	BUCKETS_MAX = 1 << 20,   /* of its hash table */
	CHAIN_WORDS = 256,       /* words of a hash table that are read at once */
	AREA_BYTES = 1 << 30,    /* the largest file; these are addresses, not memory */
	EH_FRAME_PTR_AT = 4,     /* in .eh_frame_hdr */
	EH_FRAME_PTR_PCREL = 27, /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
	SECTIONS = 3,            /* none, symbols, strings */
};

struct gathering {
	const struct module_memory *memory;
	struct module_memory_copy *copy;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[PHDRS_MAX];
	uint64_t bias; /* address - bias = ELF vaddr */
	uint64_t page_bytes;
};

/* What the file's dynamic section says of its symbols, as vaddrs; 0 if nothing. */
struct symbol_table {
	uint64_t symbols, strings, string_bytes, sysv_hash, gnu_hash;
};

static int peek(const struct gathering *g, void *to, size_t bytes, uint64_t address)
{
	return g->memory->read(g->memory->context, to, bytes, address);
}

/* The PT_LOAD that holds the N bytes at VADDR, all of them from the file. */
static const Elf64_Phdr *segment_of(const struct gathering *g, uint64_t vaddr, uint64_t n)
{
	for (unsigned i = 0; i < g->ehdr.e_phnum; i++) {
		const Elf64_Phdr *p = &g->phdrs[i];

		if (p->p_type == PT_LOAD && vaddr >= p->p_vaddr && vaddr - p->p_vaddr <= p->p_filesz &&
		    n <= p->p_filesz - (vaddr - p->p_vaddr))
			return p;
	}
	return NULL;
}

/* Where the bytes at OFFSET are in the copied file. NULL if the file would be too large. */
static unsigned char *place(struct gathering *g, uint64_t offset, uint64_t n)
{
	struct module_memory_copy *copy = g->copy;

	if (offset > copy->area_bytes || n > copy->area_bytes - offset || n > copy->bytes_max - copy->bytes)
		return NULL;
	copy->bytes += n;
	if (offset + n > copy->length)
		copy->length = offset + n;
	return copy->area + offset;
}

/* Copies the N bytes at VADDR to their place in the file. */
static int copy_vaddr(struct gathering *g, uint64_t vaddr, uint64_t n)
{
	const Elf64_Phdr *segment = segment_of(g, vaddr, n);
	unsigned char *to;

	if (!segment)
		return -ENOEXEC;
	to = place(g, segment->p_offset + (vaddr - segment->p_vaddr), n);
	return to ? peek(g, to, n, g->bias + vaddr) : -EFBIG;
}

/* ---- where it is */

static bool is_good(const Elf64_Ehdr *ehdr)
{
	return memcmp(ehdr->e_ident, ELFMAG, SELFMAG) == 0 && ehdr->e_ident[EI_CLASS] == ELFCLASS64 &&
	    ehdr->e_ident[EI_DATA] == ELFDATA2LSB && (ehdr->e_type == ET_DYN || ehdr->e_type == ET_EXEC) &&
	    ehdr->e_phentsize == sizeof(Elf64_Phdr) && ehdr->e_phnum > 0 && ehdr->e_phnum <= PHDRS_MAX;
}

/* Does the file whose header is at ADDRESS have the code? */
static bool is_file_at(struct gathering *g, uint64_t address)
{
	const uint64_t pgoff = g->copy->pgoff;

	if (peek(g, &g->ehdr, sizeof(g->ehdr), address) != 0 || !is_good(&g->ehdr) ||
	    peek(g, g->phdrs, g->ehdr.e_phnum * sizeof(Elf64_Phdr), address + g->ehdr.e_phoff) != 0)
		return false;
	for (unsigned i = 0; i < g->ehdr.e_phnum; i++) {
		const Elf64_Phdr *p = &g->phdrs[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || pgoff + g->page_bytes <= p->p_offset ||
		    pgoff >= p->p_offset + p->p_filesz)
			continue;
		g->bias = g->copy->start - (p->p_vaddr + (pgoff - p->p_offset));
		const Elf64_Phdr *head = segment_of(g, address - g->bias, sizeof(g->ehdr));
		if (head && head->p_offset + (address - g->bias - head->p_vaddr) == 0)
			return true;
	}
	return false;
}

/* The header is in front of the code: at the same distance as in the file, or some pages more. */
static bool find_file(struct gathering *g)
{
	const uint64_t start = g->copy->start - g->copy->pgoff;

	for (uint64_t gap = 0; gap < GAPS; gap++)
		if (is_file_at(g, start - gap * g->page_bytes))
			return true;
	return false;
}

/* ---- its parts */

static int copy_headers(struct gathering *g)
{
	const uint64_t n = g->ehdr.e_phnum * sizeof(Elf64_Phdr);
	unsigned char *to = place(g, 0, sizeof(g->ehdr));

	if (!to)
		return -EFBIG;
	g->ehdr.e_shoff = 0; /* until there are sections */
	g->ehdr.e_shnum = 0;
	g->ehdr.e_shstrndx = 0;
	memcpy(to, &g->ehdr, sizeof(g->ehdr));
	to = place(g, g->ehdr.e_phoff, n);
	if (!to)
		return -EFBIG;
	memcpy(to, g->phdrs, n);
	return 0;
}

/* No header tells the length of .eh_frame here. It ends at the end of its segment at the latest. */
static int copy_unwind_tables(struct gathering *g, const Elf64_Phdr *header)
{
	unsigned char start[EH_FRAME_PTR_AT + sizeof(int32_t)];
	const Elf64_Phdr *segment;
	int32_t relative;
	uint64_t vaddr;
	int error = copy_vaddr(g, header->p_vaddr, header->p_filesz);

	if (error || header->p_filesz < sizeof(start))
		return error;
	error = peek(g, start, sizeof(start), g->bias + header->p_vaddr);
	if (error || start[0] != 1 || start[1] != EH_FRAME_PTR_PCREL)
		return error;
	memcpy(&relative, start + EH_FRAME_PTR_AT, sizeof(relative));
	vaddr = header->p_vaddr + EH_FRAME_PTR_AT + (uint64_t)(int64_t)relative;
	segment = segment_of(g, vaddr, 1);
	return segment ? copy_vaddr(g, vaddr, segment->p_filesz - (vaddr - segment->p_vaddr)) : 0;
}

/* The loader may or may not have replaced the vaddrs in the dynamic section by addresses. */
static uint64_t vaddr_of(const struct gathering *g, uint64_t value)
{
	return segment_of(g, value - g->bias, 1) ? value - g->bias : value;
}

static void read_dynamic(struct gathering *g, const Elf64_Phdr *dynamic, struct symbol_table *table)
{
	for (uint64_t i = 0; i < dynamic->p_filesz / sizeof(Elf64_Dyn) && i < DYNAMIC_MAX; i++) {
		Elf64_Dyn entry;
		const uint64_t at = dynamic->p_vaddr + i * sizeof(entry);

		if (!segment_of(g, at, sizeof(entry)) || peek(g, &entry, sizeof(entry), g->bias + at) != 0 ||
		    entry.d_tag == DT_NULL)
			return;
		if (entry.d_tag == DT_SYMTAB)
			table->symbols = vaddr_of(g, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_STRTAB)
			table->strings = vaddr_of(g, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_STRSZ)
			table->string_bytes = entry.d_un.d_val;
		else if (entry.d_tag == DT_HASH)
			table->sysv_hash = vaddr_of(g, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_GNU_HASH)
			table->gnu_hash = vaddr_of(g, entry.d_un.d_ptr);
	}
}

static bool read_words(struct gathering *g, uint32_t *words, size_t count, uint64_t vaddr)
{
	return segment_of(g, vaddr, count * sizeof(*words)) &&
	    peek(g, words, count * sizeof(*words), g->bias + vaddr) == 0;
}

/* The largest of COUNT words. */
static bool find_largest(struct gathering *g, uint64_t vaddr, uint32_t count, uint32_t *largest)
{
	uint32_t words[CHAIN_WORDS];

	*largest = 0;
	for (uint32_t at = 0; at < count; at += CHAIN_WORDS) {
		const uint32_t n = count - at < CHAIN_WORDS ? count - at : CHAIN_WORDS;

		if (!read_words(g, words, n, vaddr + at * sizeof(*words)))
			return false;
		for (uint32_t i = 0; i < n; i++)
			if (words[i] > *largest)
				*largest = words[i];
	}
	return true;
}

/* The chains are sorted: the last symbol is at the end of the chain that begins last. */
static uint32_t count_by_gnu_hash(struct gathering *g, uint64_t vaddr)
{
	uint32_t head[4], last, word; /* buckets, first symbol in a chain, 64-bit words of the filter */

	if (!read_words(g, head, 4, vaddr) || head[0] > BUCKETS_MAX || head[2] > BUCKETS_MAX)
		return 0;
	const uint64_t buckets = vaddr + sizeof(head) + head[2] * sizeof(uint64_t);
	const uint64_t chains = buckets + head[0] * sizeof(uint32_t);
	if (!find_largest(g, buckets, head[0], &last))
		return 0;
	if (last < head[1])
		return head[1] <= SYMBOLS_MAX ? head[1] : 0; /* all chains are empty */
	for (uint32_t i = last; i < SYMBOLS_MAX; i++) {
		if (!read_words(g, &word, 1, chains + (uint64_t)(i - head[1]) * sizeof(word)))
			return 0;
		if (word & 1)
			return i + 1;
	}
	return 0;
}

static uint32_t count_symbols(struct gathering *g, const struct symbol_table *table)
{
	uint32_t head[2]; /* buckets, symbols */

	if (table->sysv_hash && read_words(g, head, 2, table->sysv_hash))
		return head[1] <= SYMBOLS_MAX ? head[1] : 0;
	return table->gnu_hash ? count_by_gnu_hash(g, table->gnu_hash) : 0;
}

static uint64_t offset_of(const struct gathering *g, uint64_t vaddr)
{
	const Elf64_Phdr *segment = segment_of(g, vaddr, 1);

	return segment ? segment->p_offset + (vaddr - segment->p_vaddr) : 0;
}

/* The file's own section headers, at its end, are not in memory. Headers for the symbols take their place, so
 * that the file has its old length. */
static int add_sections(struct gathering *g, const struct symbol_table *table, uint32_t count, uint64_t at)
{
	const Elf64_Shdr sections[SECTIONS] = {
	    [1] = {.sh_type = SHT_DYNSYM,
	        .sh_flags = SHF_ALLOC,
	        .sh_addr = table->symbols,
	        .sh_offset = offset_of(g, table->symbols),
	        .sh_size = count * sizeof(Elf64_Sym),
	        .sh_link = 2,
	        .sh_info = 1,
	        .sh_entsize = sizeof(Elf64_Sym)},
	    [2] = {.sh_type = SHT_STRTAB,
	        .sh_flags = SHF_ALLOC,
	        .sh_addr = table->strings,
	        .sh_offset = offset_of(g, table->strings),
	        .sh_size = table->string_bytes},
	};
	unsigned char *to = place(g, at, sizeof(sections));

	if (!to)
		return -EFBIG;
	memcpy(to, sections, sizeof(sections));
	g->ehdr.e_shoff = at;
	g->ehdr.e_shnum = SECTIONS;
	g->ehdr.e_shstrndx = 2;
	g->ehdr.e_shentsize = sizeof(Elf64_Shdr);
	memcpy(g->copy->area, &g->ehdr, sizeof(g->ehdr));
	return 0;
}

static int copy_symbols(struct gathering *g, const Elf64_Phdr *dynamic, uint64_t sections_at)
{
	struct symbol_table table = {0};
	uint32_t count;
	int error;

	read_dynamic(g, dynamic, &table);
	count = table.symbols && table.strings ? count_symbols(g, &table) : 0;
	if (!count)
		return 0;
	error = copy_vaddr(g, table.symbols, count * sizeof(Elf64_Sym));
	if (!error)
		error = copy_vaddr(g, table.strings, table.string_bytes);
	return error ? error : add_sections(g, &table, count, sections_at);
}

/* The place of the section headers in the file: behind all that is loaded, and at their old place if the
 * header does not lie. */
static uint64_t find_sections(const struct gathering *g, const Elf64_Ehdr *original, uint64_t *end)
{
	uint64_t at = g->copy->length;

	for (unsigned i = 0; i < g->ehdr.e_phnum; i++) {
		const Elf64_Phdr *p = &g->phdrs[i];

		if (p->p_type == PT_LOAD && p->p_offset + p->p_filesz > at)
			at = p->p_offset + p->p_filesz;
	}
	at = (at + 7) & ~UINT64_C(7);
	*end = original->e_shoff + original->e_shnum * sizeof(Elf64_Shdr);
	if (original->e_shoff >= at && original->e_shoff % 8 == 0 && original->e_shnum >= SECTIONS &&
	    *end <= g->copy->area_bytes)
		return original->e_shoff;
	*end = 0;
	return at;
}

static int copy_parts(struct gathering *g)
{
	const Elf64_Ehdr original = g->ehdr;
	const Elf64_Phdr *dynamic = NULL;
	uint64_t sections, end;
	int error = copy_headers(g);

	for (unsigned i = 0; !error && i < g->ehdr.e_phnum; i++) {
		const Elf64_Phdr *p = &g->phdrs[i];

		if (p->p_type == PT_NOTE)
			error = copy_vaddr(g, p->p_vaddr, p->p_filesz < NOTES_MAX ? p->p_filesz : NOTES_MAX);
		else if (p->p_type == PT_GNU_EH_FRAME)
			error = copy_unwind_tables(g, p);
		else if (p->p_type == PT_DYNAMIC)
			dynamic = p;
	}
	if (error)
		return error;
	sections = find_sections(g, &original, &end);
	error = dynamic ? copy_symbols(g, dynamic, sections) : 0;
	if (g->copy->length < end)
		g->copy->length = end;
	return error;
}

int module_memory_gather(const struct module_memory *memory, struct module_memory_copy *copy)
{
	struct gathering *g = calloc(1, sizeof(*g));
	int error;

	if (!g)
		return -ENOMEM;
	g->memory = memory;
	g->copy = copy;
	g->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	copy->bytes = copy->length = 0;
	error = find_file(g) ? copy_parts(g) : -ENOEXEC;
	free(g);
	return error;
}

/* ---- of a process */

struct process_copy {
	struct module_memory_copy copy;
	int error;
};

static int read_memory(void *context, void *to, size_t bytes, uint64_t address)
{
	return regular_file_read(*(const int *)context, to, bytes, address);
}

static int open_memory(pid_t pid)
{
	char path[PROC_PATH_BYTES];
	int fd = open(proc_path(path, pid, "mem"), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Runs in a child, with which the area is shared; the rest of the answer is small. */
static void gather_process(pid_t pid, void *result)
{
	struct process_copy *p = result;
	int fd = open_memory(pid);
	const struct module_memory memory = {.read = read_memory, .context = &fd};

	p->error = fd < 0 ? fd : module_memory_gather(&memory, &p->copy);
}

static int gather(const struct module_request *request, int file, uint64_t *bytes)
{
	struct process_copy p = {.copy = {.start = request->start,
	                             .pgoff = request->pgoff,
	                             .area_bytes = AREA_BYTES,
	                             .bytes_max = request->copy_bytes_max}};
	int error = open_memory(request->pid);

	if (error < 0)
		return error;
	close(error);
	if (p.copy.bytes_max > MODULE_MEMORY_BYTES_MAX)
		p.copy.bytes_max = MODULE_MEMORY_BYTES_MAX;
	if (ftruncate(file, AREA_BYTES) != 0)
		return -errno;
	p.copy.area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
	if (p.copy.area == MAP_FAILED)
		return -errno;
	error = memory_reader_run(gather_process, request->pid, &p, sizeof(p));
	(void)munmap(p.copy.area, AREA_BYTES);
	if (!error)
		error = p.error;
	*bytes = p.copy.bytes;
	return !error && ftruncate(file, (off_t)p.copy.length) != 0 ? -errno : error;
}

/* The file that is now at the path may be the same one. It then has more than the memory. */
static void take_equal(const struct module_request *request, struct module_file *file)
{
	char *path = file->build_id_len ? module_file_path(request->path) : NULL;
	struct module_request equal = *request;
	struct module_file other;

	equal.path = path;
	equal.build_id = file->build_id;
	equal.build_id_len = file->build_id_len;
	if (path && module_file_open(&equal, &other) == 0) {
		if (module_file_resembles(&other, file)) {
			module_file_close(file);
			*file = other;
		} else {
			module_file_close(&other);
		}
	}
	free(path);
}

int module_memory_open(const struct module_request *request, struct module_file *file)
{
	const struct thread_birth birth = thread_facts_birth(request->pid);
	struct stat status;
	uint64_t bytes = 0;
	int fd = memory_file_create("heaptap-copy");
	int error = fd < 0 ? fd : gather(request, fd, &bytes);

	if (!error && fstat(fd, &status) != 0)
		error = -errno;
	if (error) {
		if (fd >= 0)
			close(fd);
		return error;
	}
	status.st_dev = request->dev;
	status.st_ino = request->ino;
	status.st_uid = thread_facts_read(request->pid).user;
	status.st_mtim = status.st_ctim = (struct timespec){0};
	error = module_file_take(request, fd, "", true, &status, file);
	if (error)
		return error;
	file->copied = (struct module_copied){
	    .pid = request->pid, .birth = birth.ticks, .start = request->start, .bytes = bytes};
	take_equal(request, file);
	return 0;
}
