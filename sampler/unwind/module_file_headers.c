/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/module_file.h"

#include "sampler/linux/regs.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	PHDRS_MAX = 512,
	NOTES_MAX = 64 * 1024, /* bytes that are read of one PT_NOTE */
};

static uint64_t align_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/* Looks for the GNU build id among N bytes of notes whose parts are padded to ALIGN. */
static bool parse_notes(const uint8_t *notes, size_t n, uint64_t align, struct module_file *file)
{
	size_t at = 0;

	while (n - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;

		memcpy(&note, notes + at, sizeof(note));
		uint64_t name = at + sizeof(note);
		uint64_t desc = align_up(name + note.n_namesz, align);
		uint64_t next = align_up(desc + note.n_descsz, align);
		if (desc > n || note.n_descsz > n - desc)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
		    note.n_descsz <= MODULE_BUILD_ID_BYTES) {
			file->build_id_len = (uint8_t)note.n_descsz;
			memcpy(file->build_id, notes + desc, note.n_descsz);
			return true;
		}
		if (next > n)
			return false;
		at = next;
	}
	return false;
}

static void read_notes(struct module_file *file, const Elf64_Phdr *phdr)
{
	size_t n = phdr->p_filesz < NOTES_MAX ? phdr->p_filesz : NOTES_MAX;
	uint8_t *notes = n ? malloc(n) : NULL;

	if (notes && module_file_read(file, notes, n, phdr->p_offset) == 0)
		parse_notes(notes, n, phdr->p_align == 8 ? 8 : 4, file);
	free(notes);
}

static int add_segment(const Elf64_Phdr *phdr, struct module_file *file)
{
	struct module_segment *segment;

	if (file->segment_count == MODULE_SEGMENTS_MAX || phdr->p_filesz > phdr->p_memsz ||
	    phdr->p_offset > INT64_MAX || phdr->p_filesz > INT64_MAX ||
	    phdr->p_vaddr + phdr->p_memsz < phdr->p_vaddr)
		return -ENOEXEC;
	if (phdr->p_filesz == 0)
		return 0;
	if (!file->segments) {
		file->segments = calloc(MODULE_SEGMENTS_MAX, sizeof(*file->segments));
		if (!file->segments)
			return -ENOMEM;
	}
	segment = &file->segments[file->segment_count++];
	segment->vaddr = phdr->p_vaddr;
	segment->offset = phdr->p_offset;
	segment->file_bytes = phdr->p_filesz;
	segment->memory_bytes = phdr->p_memsz;
	segment->executable = phdr->p_flags & PF_X;
	return 0;
}

static int compare_segments(const void *a, const void *b)
{
	const struct module_segment *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int read_segments(struct module_file *file, const Elf64_Ehdr *ehdr)
{
	size_t bytes = ehdr->e_phnum * sizeof(Elf64_Phdr);
	Elf64_Phdr *phdrs = malloc(bytes);
	int err = phdrs ? 0 : -ENOMEM;

	if (!err && module_file_read(file, phdrs, bytes, ehdr->e_phoff) != 0)
		err = -ENOEXEC;
	for (unsigned i = 0; !err && i < ehdr->e_phnum; i++) {
		if (phdrs[i].p_type == PT_LOAD)
			err = add_segment(&phdrs[i], file);
		else if (phdrs[i].p_type == PT_NOTE && !file->build_id_len)
			read_notes(file, &phdrs[i]);
	}
	free(phdrs);
	if (err || !file->segment_count)
		return err ? err : -ENOEXEC;
	qsort(file->segments, file->segment_count, sizeof(*file->segments), compare_segments);
	struct module_segment *fitting =
	    realloc(file->segments, file->segment_count * sizeof(*file->segments));
	if (fitting)
		file->segments = fitting;
	return 0;
}

int module_file_read_headers(struct module_file *file)
{
	Elf64_Ehdr ehdr;

	if (module_file_read(file, &ehdr, sizeof(ehdr), 0) != 0 ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB || (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN) ||
	    !regs_arch_find(ehdr.e_machine) || ehdr.e_phentsize != sizeof(Elf64_Phdr) || ehdr.e_phnum == 0 ||
	    ehdr.e_phnum > PHDRS_MAX)
		return -ENOEXEC;
	file->e_machine = ehdr.e_machine;
	file->e_type = ehdr.e_type;
	file->entry = ehdr.e_entry;
	return read_segments(file, &ehdr);
}
