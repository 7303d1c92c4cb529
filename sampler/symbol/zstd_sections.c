/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/zstd_sections.h"

#include <elf.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { COMPRESSED_BY_ZSTD = 2 }; /* ELFCOMPRESS_ZSTD, which older headers lack */

static const size_t section_bytes_max = (size_t)2 << 30;

/* The section's content, to be freed. NULL: it is not compressed by zstd, is damaged, or takes too much. */
static void *decompress(const Elf_Data *packed, size_t *bytes)
{
	Elf64_Chdr header;
	void *plain;

	if (!packed || !packed->d_buf || packed->d_size < sizeof(header))
		return NULL;
	memcpy(&header, packed->d_buf, sizeof(header));
	if (header.ch_type != COMPRESSED_BY_ZSTD || !header.ch_size || header.ch_size > section_bytes_max)
		return NULL;
	plain = malloc(header.ch_size);
	*bytes = header.ch_size;
	if (plain &&
	    ZSTD_decompress(plain, header.ch_size, (const char *)packed->d_buf + sizeof(header),
	        packed->d_size - sizeof(header)) == header.ch_size)
		return plain;
	free(plain);
	return NULL;
}

/* libdw looks into a section's header for whether it is compressed, and takes its data or its raw bytes,
 * which libelf keeps apart. */
static void open_section(struct zstd_sections *sections, Elf_Scn *section, GElf_Shdr *header)
{
	Elf_Data *raw = elf_rawdata(section, NULL), *data = elf_getdata(section, NULL);
	size_t bytes = 0;
	void *plain = data ? decompress(raw, &bytes) : NULL;

	if (!plain)
		return;
	header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	header->sh_size = bytes;
	if (!gelf_update_shdr(section, header)) {
		free(plain);
		return;
	}
	raw->d_buf = data->d_buf = plain;
	raw->d_size = data->d_size = bytes;
	raw->d_type = data->d_type = ELF_T_BYTE;
	sections->plain[sections->count++] = plain;
}

void zstd_sections_open(struct zstd_sections *sections, Elf *elf)
{
	Elf_Scn *section = NULL;

	if (gelf_getclass(elf) != ELFCLASS64)
		return;
	while (sections->count < ZSTD_SECTIONS_MAX && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type != SHT_NOBITS &&
		    header.sh_flags & SHF_COMPRESSED)
			open_section(sections, section, &header);
	}
}

void zstd_sections_close(struct zstd_sections *sections)
{
	while (sections->count)
		free(sections->plain[--sections->count]);
}
