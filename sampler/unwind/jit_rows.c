/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/jit_rows.h"

#include "pprof/table/array.h"
#include "pprof/text/throttle.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAGIC = 0x4a695444, /* "JiTD", as a machine of our byte order writes it */
	VERSION = 1,
	HEADER_BYTES_MAX = 4096,
	CODE_LOAD = 0,
	CODE_MOVE = 1,
	UNWINDING_INFO = 4,
	/* Units of work (cfi.h): for a system call, and for bytes that are moved. */
	READ_WORK = 512,
	MOVED_WORK_PART = 16,
};

/* In the file's byte order, which is ours. */
struct file_header {
	uint32_t magic, version, header_bytes, machine, padding, pid;
	uint64_t timestamp, flags;
};

struct record {
	uint32_t id, bytes;
	uint64_t timestamp;
	union {
		struct {
			uint32_t pid, tid;
			uint64_t vma, start, bytes, index; /* name and code follow */
		} load;
		struct {
			uint32_t pid, tid;
			uint64_t vma, old_start, start, bytes, index;
		} move;
		struct {
			uint64_t bytes, header_bytes, mapped_bytes; /* .eh_frame and its header follow */
		} unwinding;
	};
};

enum { PREFIX_BYTES = offsetof(struct record, load) };

/* An .eh_frame in the file; bytes 0: none. */
struct section {
	uint64_t at;
	uint32_t bytes;
};

struct piece {
	uint64_t start;
	uint32_t bytes;         /* of the code */
	uint32_t number;        /* of the code's record */
	uint32_t section_code;  /* bytes of the code that the section was made for */
	struct section section; /* never none */
};

struct jit_rows {
	unsigned references;
	uint16_t e_machine;
	struct module_file file;
	uint64_t at; /* of the next record; 0: not even the header was read */
	bool broken; /* it is no jitdump, or not any more */
	uint32_t records;
	uint64_t version;
	struct section next;  /* of the code in the next record */
	struct piece *pieces; /* by address, none overlapping */
	size_t count, capacity;
	struct cfi_memory memory;
	struct cfi *cfi;
};

struct jit_rows *jit_rows_new(struct module_file *file, uint16_t e_machine)
{
	struct jit_rows *r = calloc(1, sizeof(*r));

	if (!r) {
		module_file_close(file);
		return NULL;
	}
	r->references = 1;
	r->e_machine = e_machine;
	r->file = (struct module_file){.fd = file->fd, .memory = file->memory, .bytes = file->bytes};
	r->memory.max_bytes = JIT_ROWS_MEMORY_MAX;
	r->cfi = cfi_new(e_machine, &r->memory);
	if (r->cfi)
		return r;
	jit_rows_unref(r);
	return NULL;
}

struct jit_rows *jit_rows_ref(struct jit_rows *r)
{
	r->references++;
	return r;
}

void jit_rows_unref(struct jit_rows *r)
{
	if (!r || --r->references > 0)
		return;
	cfi_free(r->cfi);
	module_file_close(&r->file);
	free(r->pieces);
	free(r);
}

size_t jit_rows_bytes(const struct jit_rows *r)
{
	return r ? sizeof(*r) + r->capacity * sizeof(*r->pieces) + (size_t)r->memory.held_bytes : 0;
}

uint64_t jit_rows_version(const struct jit_rows *r)
{
	return r->version;
}

/* ---- records */

/* The piece at ADDRESS or above. */
static size_t first_above(const struct jit_rows *r, uint64_t address)
{
	const size_t i = ARRAY_LOWER_BOUND(r->pieces, r->count, start, address);

	return i && address - r->pieces[i - 1].start < r->pieces[i - 1].bytes ? i - 1 : i;
}

/* FRESH replaces every piece that it overlaps, wholly, even if FRESH has no rows. */
static void put(struct jit_rows *r, const struct piece *fresh, struct throttle *budget)
{
	const size_t first = first_above(r, fresh->start);
	size_t last = first;

	while (last < r->count && r->pieces[last].start < fresh->start + fresh->bytes)
		last++;
	const bool has_room = fresh->section.bytes && r->count - (last - first) < JIT_ROWS_MAX &&
	    array_reserve(&r->pieces, &r->capacity, r->count + 1, sizeof(*r->pieces)) == 0;
	if (!has_room && first == last)
		return;
	throttle_spend(budget, (r->count - last) * sizeof(*r->pieces) / MOVED_WORK_PART);
	memmove(r->pieces + first + has_room, r->pieces + last, (r->count - last) * sizeof(*r->pieces));
	r->count = r->count - (last - first) + has_room;
	if (has_room)
		r->pieces[first] = *fresh;
	r->version++;
}

static bool is_code(uint64_t start, uint64_t bytes)
{
	return bytes && bytes <= JIT_ROWS_CODE_BYTES_MAX && start <= UINT64_MAX - bytes;
}

static void take_move(struct jit_rows *r, const struct record *record, struct throttle *budget)
{
	const uint64_t bytes = record->move.bytes, from = record->move.old_start;

	if (!is_code(record->move.start, bytes))
		return;
	struct piece fresh = {.start = record->move.start, .bytes = (uint32_t)bytes, .number = r->records};
	const size_t i = first_above(r, from);
	if (i < r->count && r->pieces[i].start == from && r->pieces[i].bytes == bytes) {
		fresh.section = r->pieces[i].section;
		fresh.section_code = r->pieces[i].section_code;
	}
	put(r, &fresh, budget);
}

static void take_record(struct jit_rows *r, const struct record *record, struct throttle *budget)
{
	const uint64_t payload = record->bytes - PREFIX_BYTES;

	if (record->id == UNWINDING_INFO) {
		const uint64_t all = record->unwinding.bytes, header = record->unwinding.header_bytes;
		const uint64_t before = sizeof(record->unwinding);

		r->next.bytes = 0;
		if (payload < before || all > payload - before || header > all ||
		    all - header > JIT_ROWS_SECTION_BYTES_MAX)
			return;
		r->next = (struct section){r->at + PREFIX_BYTES + before, (uint32_t)(all - header)};
	} else if (record->id == CODE_LOAD) {
		if (payload >= sizeof(record->load) && is_code(record->load.start, record->load.bytes))
			put(r,
			    &(struct piece){.start = record->load.start,
			        .bytes = (uint32_t)record->load.bytes,
			        .number = r->records,
			        .section_code = (uint32_t)record->load.bytes,
			        .section = r->next},
			    budget);
		r->next.bytes = 0;
	} else if (record->id == CODE_MOVE && payload >= sizeof(record->move)) {
		take_move(r, record, budget);
	}
}

static bool read_header(struct jit_rows *r, uint64_t file_bytes)
{
	struct file_header header;

	if (file_bytes < sizeof(header))
		return false; /* it may not be written yet */
	r->broken = module_file_read(&r->file, &header, sizeof(header), 0) != 0 || header.magic != MAGIC ||
	    header.version != VERSION || header.header_bytes < sizeof(header) ||
	    header.header_bytes > HEADER_BYTES_MAX;
	r->at = r->broken ? 0 : header.header_bytes;
	return !r->broken;
}

bool jit_rows_read(struct jit_rows *r, uint64_t file_bytes, struct throttle *budget)
{
	const uint64_t version = r->version;

	if (r->broken || (!r->at && !read_header(r, file_bytes)))
		return false;
	while (r->at < file_bytes && file_bytes - r->at >= PREFIX_BYTES && cfi_work_allows(budget)) {
		const uint64_t left = file_bytes - r->at;
		struct record record = {0};

		throttle_spend(budget, READ_WORK);
		if (module_file_read(
		        &r->file, &record, left < sizeof(record) ? (size_t)left : sizeof(record), r->at) != 0)
			break;
		r->broken = record.bytes < PREFIX_BYTES || r->records == UINT32_MAX;
		if (r->broken || record.bytes > left)
			break;
		r->records++;
		take_record(r, &record, budget);
		r->at += record.bytes;
	}
	return r->version != version;
}

/* ---- rows */

/* A file with a section alone; names as ELF has them. */
struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3]; /* none, the section, names */
	char names[24];
	uint8_t section[];
};

static const char image_names[24] = "\0.eh_frame\0.shstrtab";

/* From malloc(). NULL if it cannot be read now. */
static struct image *make_image(const struct jit_rows *r, const struct piece *piece, uint64_t vaddr)
{
	const struct section *section = &piece->section;
	struct image *image = calloc(1, sizeof(*image) + section->bytes);

	if (!image || module_file_read(&r->file, image->section, section->bytes, section->at) != 0) {
		free(image);
		return NULL;
	}
	image->header =
	    (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	        .e_type = ET_DYN,
	        .e_machine = r->e_machine,
	        .e_version = EV_CURRENT,
	        .e_ehsize = sizeof(Elf64_Ehdr),
	        .e_shentsize = sizeof(Elf64_Shdr),
	        .e_shoff = offsetof(struct image, sections),
	        .e_shnum = 3,
	        .e_shstrndx = 2};
	memcpy(image->names, image_names, sizeof(image_names));
	image->sections[1] = (Elf64_Shdr){.sh_name = 1,
	    .sh_type = SHT_PROGBITS,
	    .sh_flags = SHF_ALLOC,
	    .sh_addr = vaddr + ((piece->section_code + UINT64_C(7)) & ~UINT64_C(7)),
	    .sh_offset = offsetof(struct image, section),
	    .sh_size = section->bytes,
	    .sh_addralign = 8};
	image->sections[2] = (Elf64_Shdr){.sh_name = 11,
	    .sh_type = SHT_STRTAB,
	    .sh_offset = offsetof(struct image, names),
	    .sh_size = sizeof(image_names),
	    .sh_addralign = 1};
	return image;
}

const struct cfi_rule *jit_rows_rule(
    struct jit_rows *r, uint64_t address, uint16_t e_machine, struct throttle *budget)
{
	const size_t i = first_above(r, address);

	if (e_machine != r->e_machine || i == r->count || r->pieces[i].start > address)
		return &cfi_no_rule;
	const struct piece *piece = &r->pieces[i];
	const uint64_t base = (uint64_t)piece->number << 32, vaddr = base + address - piece->start;
	const struct cfi_rule *rule = cfi_known(r->cfi, vaddr);
	if (rule)
		return rule;
	if (!cfi_work_allows(budget))
		return &cfi_unread_rule;
	struct image *image = make_image(r, piece, base);
	if (!image) {
		throttle_spend(budget, READ_WORK);
		return &cfi_unread_rule;
	}
	const struct module_file file = {.fd = -1,
	    .memory = image,
	    .bytes = sizeof(*image) + piece->section.bytes,
	    .e_machine = r->e_machine,
	    .e_type = ET_DYN};
	rule = cfi_find(r->cfi, &file, vaddr, budget);
	cfi_leave(r->cfi);
	free(image);
	return rule;
}
