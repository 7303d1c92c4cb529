/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/cfi_section.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	GRANULE = 16 * 1024,         /* unit in which the file is read */
	ENTRY_BYTES_MAX = 256 << 10, /* of one CIE or FDE */
	/* for a section that libdw reads from end to end; cfi_section_extract.c bounds its bytes, too */
	ENTRIES_MAX = 1 << 20,
	/* Estimates of libdw's memory for an entry that it has met, and for a byte of an expression. */
	ENTRY_HEAP_BYTES = 112,
	EXPRESSION_HEAP_BYTES = 40,
	/* Units of work (cfi.h). */
	LOOK_UP_WORK = 256,
	GRANULE_WORK = 2048,
	REMEMBERED_WORK = 64,
	SECTION_WORK = 64 << 10,  /* to look for a section */
	READ_WORK_PART = 8,       /* so many bytes, read at once, are one unit */
	PLAIN_WORK = 2,           /* for a byte that is inflated or copied */
	READ_TWICE_WORK = 2,      /* for a byte that we have read and libdw will read */
	NO_MEMORY_WORK = 4 << 20, /* for a section that was read and is too large for now */
};

static const uint64_t copy_max = UINT64_C(1) << 34;

struct cfi_section {
	Dwarf_CFI *cfi;
	Dwarf *dwarf; /* owns cfi, if not NULL */
	Elf *elf;
	uint8_t *copy;
	size_t copy_bytes;
	bool mapped;                     /* copy is from mmap() and sparse, not from malloc() */
	uint8_t *present;                /* a bit per granule that has been read; sparse copies only */
	size_t copied_bytes, heap_bytes; /* of the file; libdw's, estimated */
	struct cfi_check_cost
	    largest; /* for a section read from end to end: it is unknown which entry libdw runs */
	uint64_t table, entry_count; /* offset in the copy and length of the sorted table */
	uint64_t met;                /* entries that libdw may know by now, at most the whole table */
	uint64_t table_vaddr;        /* of .eh_frame_hdr; the table is relative to it */
	uint64_t eh_frame, eh_frame_vaddr;
};

/* Fills in [offset, offset + n) of a sparse copy. */
static bool need(struct cfi_section *s, struct cfi_reading *reading, uint64_t offset, uint64_t n)
{
	if (offset > s->copy_bytes || n > s->copy_bytes - offset)
		return false;
	if (!n)
		return true;
	for (uint64_t g = offset / GRANULE; g <= (offset + n - 1) / GRANULE; g++) {
		uint64_t start = g * GRANULE;
		size_t len = s->copy_bytes - start < GRANULE ? s->copy_bytes - start : GRANULE;

		if (s->present[g / 8] >> g % 8 & 1)
			continue;
		reading->work += GRANULE_WORK;
		if (module_file_read(reading->file, s->copy + start, len, start) != 0) {
			memset(s->copy + start, 0, len);
			reading->failed = true;
			return false;
		}
		s->present[g / 8] |= (uint8_t)(1 << g % 8);
		s->copied_bytes += len;
	}
	return true;
}

/* How far the copy must reach: over the headers, and over all PT_LOADs that the file has. */
static uint64_t copy_extent(const struct module_file *file, const Elf64_Ehdr *ehdr)
{
	uint64_t extent = ehdr->e_phoff + (uint64_t)ehdr->e_phnum * sizeof(Elf64_Phdr);

	for (uint32_t i = 0; i < file->segment_count; i++) {
		uint64_t end = file->segments[i].offset + file->segments[i].file_bytes;

		if (end > extent)
			extent = end;
	}
	return extent < file->bytes ? extent : file->bytes;
}

static bool make_copy(struct cfi_section *s, struct cfi_reading *reading)
{
	const struct module_file *file = reading->file;
	Elf64_Ehdr ehdr, *header;
	uint64_t extent;

	if (module_file_read(file, &ehdr, sizeof(ehdr), 0) != 0) {
		reading->failed = true;
		return false;
	}
	if (ehdr.e_phoff > INT64_MAX)
		return false;
	extent = copy_extent(file, &ehdr);
	if (extent < sizeof(ehdr) || extent > copy_max)
		return false;
	s->copy =
	    mmap(NULL, extent, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->copy == MAP_FAILED) {
		s->copy = NULL;
		reading->failed = true;
		return false;
	}
	s->copy_bytes = extent;
	s->mapped = true;
	s->present = calloc(extent / GRANULE / 8 + 1, 1);
	reading->failed |= !s->present;
	if (!s->present || !need(s, reading, 0, sizeof(ehdr)) ||
	    !need(s, reading, ehdr.e_phoff, (uint64_t)ehdr.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	/* The file may have changed since its header was checked, so it is checked again. */
	header = (Elf64_Ehdr *)s->copy;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != file->e_machine ||
	    header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff != ehdr.e_phoff ||
	    header->e_phnum != ehdr.e_phnum)
		return false;
	header->e_shoff = 0;
	header->e_shnum = 0;
	header->e_shstrndx = 0;
	return true;
}

static bool find_phdr(const struct cfi_section *s, Elf64_Phdr *phdr)
{
	const Elf64_Ehdr *ehdr = (const Elf64_Ehdr *)s->copy;

	for (unsigned i = 0; i < ehdr->e_phnum; i++) {
		memcpy(phdr, s->copy + ehdr->e_phoff + i * sizeof(*phdr), sizeof(*phdr));
		if (phdr->p_type == PT_GNU_EH_FRAME)
			return true;
	}
	return false;
}

/*
 * Reads .eh_frame_hdr: version 1, where .eh_frame is, and a table of pairs (address, address of the entry),
 * sorted, as 32-bit offsets from its own address. That is the one form that linkers write; any other is
 * treated as no table.
 */
static bool find_table(struct cfi_section *s, struct cfi_reading *reading)
{
	struct {
		uint8_t version, eh_frame_format, count_format, table_format;
		int32_t eh_frame;
		uint32_t count;
	} header;
	Elf64_Phdr phdr;

	if (!find_phdr(s, &phdr) || phdr.p_filesz < sizeof(header) ||
	    !need(s, reading, phdr.p_offset, sizeof(header)))
		return false;
	memcpy(&header, s->copy + phdr.p_offset, sizeof(header));
	if (header.version != 1 || header.eh_frame_format != (DW_EH_PE_pcrel | DW_EH_PE_sdata4) ||
	    header.count_format != DW_EH_PE_udata4 ||
	    header.table_format != (DW_EH_PE_datarel | DW_EH_PE_sdata4) || header.count == 0 ||
	    header.count > (phdr.p_filesz - sizeof(header)) / 8)
		return false;
	s->table = phdr.p_offset + sizeof(header);
	s->table_vaddr = phdr.p_vaddr;
	s->entry_count = header.count;
	s->eh_frame_vaddr = phdr.p_vaddr + 4 + (uint64_t)(int64_t)header.eh_frame;
	s->eh_frame = s->eh_frame_vaddr - phdr.p_vaddr + phdr.p_offset;
	return s->table + s->entry_count * 8 <= s->copy_bytes && s->eh_frame < s->copy_bytes &&
	    need(s, reading, s->eh_frame, 1);
}

struct cfi_section *cfi_section_open_table(struct cfi_reading *reading)
{
	struct cfi_section *s = calloc(1, sizeof(*s));

	reading->failed |= !s;
	if (!s || !make_copy(s, reading) || !find_table(s, reading))
		goto fail;
	s->elf = elf_memory((char *)s->copy, s->copy_bytes);
	s->cfi = s->elf ? dwarf_getcfi_elf(s->elf) : NULL;
	if (s->cfi)
		return s;
fail:
	cfi_section_close(s);
	return NULL;
}

/* An ELF file in memory with this one section, all of whose entries were checked. */
static struct cfi_section *open_extract(struct cfi_reading *reading, const char *name)
{
	const struct module_file *file = reading->file;
	struct cfi_section *s = calloc(1, sizeof(*s));
	struct cfi_extract extract = {0};
	bool eh = strcmp(name, ".eh_frame") == 0;
	int err = s ? cfi_extract_section(file, name, reading->bytes_max, &extract) : -ENOMEM;
	struct cfi_check_summary summary;

	reading->work += err == -ENOMEM ? NO_MEMORY_WORK : SECTION_WORK;
	/* A section costs this even if it turns out to be wrong, at its last byte for example. */
	reading->work += extract.read_bytes / READ_WORK_PART + PLAIN_WORK * extract.plain_bytes;
	const bool unread = err == -EFBIG || err == -EOPNOTSUPP;
	reading->unread |= unread;
	reading->failed |= err && err != -ENOENT && err != -ENOEXEC && !unread;
	if (err) {
		free(s);
		return NULL;
	}
	reading->work += READ_TWICE_WORK * extract.section_bytes;
	s->copy = extract.elf;
	s->copy_bytes = s->copied_bytes = extract.elf_bytes;
	Elf_Data data = {.d_buf = s->copy + extract.section,
	    .d_size = extract.section_bytes,
	    .d_type = ELF_T_BYTE,
	    .d_version = EV_CURRENT};
	const bool good = cfi_check_all(s->copy, file->e_machine, &data, eh, ENTRIES_MAX, &summary);
	reading->unread |= summary.entries > ENTRIES_MAX;
	if (!good)
		goto fail;
	s->heap_bytes = summary.entries * ENTRY_HEAP_BYTES;
	if (s->copied_bytes + s->heap_bytes > reading->bytes_max) {
		reading->failed = true;
		reading->work += NO_MEMORY_WORK;
		goto fail;
	}
	s->largest = summary.largest;
	s->elf = elf_memory((char *)s->copy, s->copy_bytes);
	if (!s->elf)
		goto fail;
	if (eh) {
		s->cfi = dwarf_getcfi_elf(s->elf);
	} else {
		s->dwarf = dwarf_begin_elf(s->elf, DWARF_C_READ, NULL);
		s->cfi = s->dwarf ? dwarf_getcfi(s->dwarf) : NULL;
	}
	if (s->cfi)
		return s;
fail:
	cfi_section_close(s);
	return NULL;
}

struct cfi_section *cfi_section_open_eh_frame(struct cfi_reading *reading)
{
	return open_extract(reading, ".eh_frame");
}

struct cfi_section *cfi_section_open_debug_frame(struct cfi_reading *reading)
{
	return open_extract(reading, ".debug_frame");
}

void cfi_section_close(struct cfi_section *s)
{
	if (!s)
		return;
	if (s->dwarf)
		dwarf_end(s->dwarf);
	else if (s->cfi)
		dwarf_cfi_end(s->cfi);
	if (s->elf)
		elf_end(s->elf);
	if (s->mapped)
		munmap(s->copy, s->copy_bytes);
	else
		free(s->copy);
	free(s->present);
	free(s);
}

static bool table_entry(
    struct cfi_section *s, struct cfi_reading *reading, uint64_t index, uint64_t *start, uint64_t *entry)
{
	int32_t pair[2];
	uint64_t at = s->table + index * sizeof(pair);

	if (!need(s, reading, at, sizeof(pair)))
		return false;
	memcpy(pair, s->copy + at, sizeof(pair));
	*start = s->table_vaddr + (uint64_t)(int64_t)pair[0];
	*entry = s->table_vaddr + (uint64_t)(int64_t)pair[1];
	return true;
}

/*
 * Finds the entry that may cover VADDR. Probes the table in libdw's order, so that all bytes that libdw will
 * read are present.
 */
static bool search_table(struct cfi_section *s, struct cfi_reading *reading, uint64_t vaddr, uint64_t *found)
{
	uint64_t low = 0, high = s->entry_count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2, start, entry, next = UINT64_MAX, ignored;

		if (!table_entry(s, reading, middle, &start, &entry))
			return false;
		if (middle + 1 < s->entry_count && !table_entry(s, reading, middle + 1, &next, &ignored))
			return false;
		if (vaddr < start) {
			high = middle;
		} else if (vaddr >= next) {
			low = middle + 1;
		} else {
			*found = entry - s->eh_frame_vaddr;
			return true;
		}
	}
	return false;
}

/* Reads the entry at OFFSET of .eh_frame, and yields the offset of its CIE. The CIE of a CIE is the entry
 * itself. */
static bool need_entry(struct cfi_section *s, struct cfi_reading *reading, uint64_t offset, uint64_t *cie)
{
	uint64_t at = s->eh_frame + offset, len, header = 4;
	uint32_t word;
	uint64_t id;

	if (offset >= s->copy_bytes - s->eh_frame || !need(s, reading, at, 20))
		return false;
	memcpy(&word, s->copy + at, 4);
	len = word;
	memcpy(&word, s->copy + at + 4, 4);
	id = word;
	if (len == UINT32_MAX) {
		header = 12;
		memcpy(&len, s->copy + at + 4, 8);
		memcpy(&id, s->copy + at + 12, 8);
	}
	if (len == 0 || len > ENTRY_BYTES_MAX || !need(s, reading, at, header + len))
		return false;
	/* In an FDE this field is the distance back from itself to the CIE. */
	if (id > offset + header)
		return false;
	*cie = id ? offset + header - id : offset;
	return true;
}

/* Reads all bytes that libdw needs for VADDR. True if they pass the checks, so that libdw may run them. */
static bool prepare(
    struct cfi_section *s, struct cfi_reading *reading, uint64_t vaddr, struct cfi_check_cost *cost)
{
	Elf_Data data = {.d_buf = s->copy + s->eh_frame,
	    .d_size = s->copy_bytes - s->eh_frame,
	    .d_type = ELF_T_BYTE,
	    .d_version = EV_CURRENT};
	uint64_t fde, cie, ignored;

	return search_table(s, reading, vaddr, &fde) && need_entry(s, reading, fde, &cie) && cie != fde &&
	    need_entry(s, reading, cie, &ignored) && ignored == cie &&
	    cfi_check_entry(s->copy, reading->file->e_machine, &data, true, fde, cost);
}

Dwarf_Frame *cfi_section_frame(struct cfi_section *s, struct cfi_reading *reading, uint64_t vaddr)
{
	struct cfi_check_cost cost = s->largest;
	Dwarf_Frame *frame;
	bool fit = !s->present || prepare(s, reading, vaddr, &cost);

	reading->work += LOOK_UP_WORK + cost.instruction_bytes + REMEMBERED_WORK * cost.remembered;
	if (s->present && s->met < s->entry_count) {
		s->met++;
		s->heap_bytes += ENTRY_HEAP_BYTES + ENTRY_HEAP_BYTES; /* and a CIE */
	}
	s->heap_bytes += EXPRESSION_HEAP_BYTES * cost.expression_bytes;
	if (!fit)
		return NULL;
	return dwarf_cfi_addrframe(s->cfi, vaddr, &frame) == 0 ? frame : NULL;
}

size_t cfi_section_bytes(const struct cfi_section *s)
{
	return s->copied_bytes + s->heap_bytes;
}
