/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/cfi_section.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	SECTIONS_MAX = 65536,
	NAMES_BYTES_MAX = 1 << 20,
	SECTION_BYTES_MAX = 16 << 20, /* decompressed; Debian's largest .debug_frame has some 3 MB */
};

/* "ZLIB" and the size, big-endian: what GNU tools wrote before SHF_COMPRESSED. */
enum { OLD_HEADER_BYTES = 12 };

enum { COMPRESSED_BY_ZSTD = 2 }; /* ELFCOMPRESS_ZSTD, which older headers lack */

static void *read_alloc(const struct module_file *file, uint64_t offset, uint64_t n, uint64_t max,
    struct cfi_extract *extract, int *err)
{
	void *bytes = NULL;

	*err = n == 0 ? -ENOEXEC : n > max ? -EFBIG : 0;
	if (offset > file->bytes || n > file->bytes - offset)
		*err = -ENOEXEC;
	if (*err)
		return NULL;
	extract->read_bytes += n;
	bytes = malloc(n);
	*err = bytes ? module_file_read(file, bytes, n, offset) : -ENOMEM;
	if (*err) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

static bool name_is(const char *names, uint64_t names_bytes, uint32_t at, const char *name)
{
	size_t n = strlen(name) + 1;

	return at < names_bytes && n <= names_bytes - at && memcmp(names + at, name, n) == 0;
}

/* The header of section NAME, or of OLD_NAME if there is no section NAME. */
static int find_section(const struct module_file *file, const Elf64_Ehdr *ehdr, const char *name,
    const char *old_name, struct cfi_extract *extract, Elf64_Shdr *found, bool *is_old)
{
	Elf64_Shdr *shdrs, first;
	uint64_t n = ehdr->e_shnum, names_index = ehdr->e_shstrndx, names_bytes;
	char *names = NULL;
	int err;

	if (!ehdr->e_shoff || ehdr->e_shentsize != sizeof(Elf64_Shdr))
		return -ENOENT;
	/* With more than 0xff00 sections the numbers are in the first header. */
	if (ehdr->e_shoff > file->bytes - sizeof(first))
		return -ENOEXEC;
	err = n == 0 || names_index == SHN_XINDEX
	    ? module_file_read(file, &first, sizeof(first), ehdr->e_shoff)
	    : 0;
	if (err)
		return err;
	n = n ? n : first.sh_size;
	names_index = names_index == SHN_XINDEX ? first.sh_link : names_index;
	if (n > SECTIONS_MAX || names_index >= n)
		return -ENOEXEC;
	shdrs =
	    read_alloc(file, ehdr->e_shoff, n * sizeof(*shdrs), SECTIONS_MAX * sizeof(*shdrs), extract, &err);
	if (!shdrs)
		return err;
	names_bytes = shdrs[names_index].sh_size;
	names = read_alloc(file, shdrs[names_index].sh_offset, names_bytes, NAMES_BYTES_MAX, extract, &err);
	for (uint64_t pass = 0; names && pass < 2; pass++) {
		for (uint64_t i = 1; i < n; i++) {
			if (shdrs[i].sh_type == SHT_NOBITS || shdrs[i].sh_size == 0 ||
			    !name_is(names, names_bytes, shdrs[i].sh_name, pass ? old_name : name))
				continue;
			*found = shdrs[i];
			*is_old = pass;
			free(names);
			free(shdrs);
			return 0;
		}
	}
	free(names);
	free(shdrs);
	return err ? err : -ENOENT;
}

/* How many bytes the section has when it is decompressed, and where in the N bytes of RAW its data begins. */
static int plain_size(
    const Elf64_Shdr *shdr, bool is_old, const uint8_t *raw, uint64_t *data, uint64_t *bytes)
{
	*data = 0;
	*bytes = shdr->sh_size;
	if (is_old) {
		if (shdr->sh_size < OLD_HEADER_BYTES || memcmp(raw, "ZLIB", 4) != 0)
			return -ENOEXEC;
		*data = OLD_HEADER_BYTES;
		*bytes = 0;
		for (int i = 4; i < OLD_HEADER_BYTES; i++)
			*bytes = *bytes << 8 | raw[i];
	} else if (shdr->sh_flags & SHF_COMPRESSED) {
		Elf64_Chdr chdr;

		if (shdr->sh_size < sizeof(chdr))
			return -ENOEXEC;
		memcpy(&chdr, raw, sizeof(chdr));
		if (chdr.ch_type != ELFCOMPRESS_ZLIB)
			return chdr.ch_type == COMPRESSED_BY_ZSTD ? -EOPNOTSUPP : -ENOEXEC;
		*data = sizeof(chdr);
		*bytes = chdr.ch_size;
	}
	return *bytes == 0 ? -ENOEXEC : *bytes > SECTION_BYTES_MAX ? -EFBIG : 0;
}

static int copy_plain(uint8_t *to, uint64_t bytes, const uint8_t *raw, uint64_t data, uint64_t raw_bytes)
{
	uLongf inflated = bytes;

	if (!data) {
		memcpy(to, raw, bytes);
		return 0;
	}
	if (uncompress(to, &inflated, raw + data, raw_bytes - data) != Z_OK || inflated != bytes)
		return -ENOEXEC;
	return 0;
}

/* Writes headers around the section's N bytes at EXTRACT->section. */
static void wrap(struct cfi_extract *extract, const Elf64_Ehdr *original, const Elf64_Shdr *section,
    const char *name, size_t names, size_t names_bytes, size_t headers)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)extract->elf;
	Elf64_Shdr *shdrs = (Elf64_Shdr *)(extract->elf + headers);

	memcpy(ehdr->e_ident, original->e_ident, EI_NIDENT);
	ehdr->e_type = original->e_type;
	ehdr->e_machine = original->e_machine;
	ehdr->e_version = EV_CURRENT;
	ehdr->e_ehsize = sizeof(*ehdr);
	ehdr->e_shentsize = sizeof(*shdrs);
	ehdr->e_shoff = headers;
	ehdr->e_shnum = 3;
	ehdr->e_shstrndx = 2;
	strcpy((char *)extract->elf + names + 1, name);
	strcpy((char *)extract->elf + names + 2 + strlen(name), ".shstrtab");
	shdrs[1].sh_name = 1;
	shdrs[1].sh_type = SHT_PROGBITS;
	shdrs[1].sh_flags = section->sh_flags & SHF_ALLOC;
	shdrs[1].sh_addr = section->sh_addr;
	shdrs[1].sh_offset = extract->section;
	shdrs[1].sh_size = extract->section_bytes;
	shdrs[1].sh_addralign = 8;
	shdrs[2].sh_name = (Elf64_Word)(2 + strlen(name));
	shdrs[2].sh_type = SHT_STRTAB;
	shdrs[2].sh_offset = names;
	shdrs[2].sh_size = names_bytes;
	shdrs[2].sh_addralign = 1;
}

int cfi_extract_section(
    const struct module_file *file, const char *name, uint64_t bytes_max, struct cfi_extract *extract)
{
	const char *old_name = strcmp(name, ".debug_frame") == 0 ? ".zdebug_frame" : name;
	size_t names_bytes = 2 + strlen(name) + sizeof(".shstrtab"), names, headers;
	uint64_t data, bytes;
	Elf64_Ehdr ehdr;
	Elf64_Shdr shdr = {0};
	uint8_t *raw;
	bool is_old = false;
	int err;

	*extract = (struct cfi_extract){0};
	err = module_file_read(file, &ehdr, sizeof(ehdr), 0);
	if (!err &&
	    (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	        ehdr.e_ident[EI_DATA] != ELFDATA2LSB || ehdr.e_machine != file->e_machine))
		err = -ENOEXEC;
	if (!err)
		err = find_section(file, &ehdr, name, old_name, extract, &shdr, &is_old);
	if (err)
		return err;
	raw = read_alloc(file, shdr.sh_offset, shdr.sh_size, SECTION_BYTES_MAX, extract, &err);
	if (!raw)
		return err;
	err = plain_size(&shdr, is_old, raw, &data, &bytes);
	if (!err && bytes > bytes_max)
		err = -ENOMEM;
	if (!err) {
		extract->section = sizeof(Elf64_Ehdr);
		extract->section_bytes = bytes;
		names = extract->section + bytes;
		headers = (names + names_bytes + 7) & ~(size_t)7;
		extract->elf_bytes = headers + 3 * sizeof(Elf64_Shdr);
		extract->elf = calloc(1, extract->elf_bytes);
		extract->plain_bytes = extract->elf ? bytes : 0;
		err = extract->elf
		    ? copy_plain(extract->elf + extract->section, bytes, raw, data, shdr.sh_size)
		    : -ENOMEM;
		if (!err)
			wrap(extract, &ehdr, &shdr, name, names, names_bytes, headers);
		else
			free(extract->elf);
	}
	free(raw);
	return err;
}
