/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/extents.h"

#include <gelf.h>

/* How far the ELF and program headers reach into the file. */
static uint64_t headers_end(Elf *elf, size_t header_count)
{
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header))
		return 0;
	if (header.e_phoff > header.e_ehsize)
		return header.e_ehsize;
	return header.e_phoff + header_count * header.e_phentsize;
}

void extents_read(struct extents *extents, Elf *elf)
{
	size_t header_count = 0;
	uint64_t headers_bytes;

	extents->count = 0;
	if (elf_getphdrnum(elf, &header_count) != 0)
		return;
	headers_bytes = headers_end(elf, header_count);
	for (size_t i = 0; i < header_count && extents->count < EXTENTS_MAX; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(elf, (int)i, &header))
			return;
		if (header.p_type != PT_LOAD || !(header.p_flags & PF_X) || header.p_memsz == 0 ||
		    header.p_vaddr + header.p_memsz < header.p_vaddr)
			continue;
		extents->range[extents->count].start = header.p_vaddr;
		/* If headers are mapped together with the code (gold does that), address 0 is still not
		 * code. */
		if (header.p_offset < headers_bytes && header.p_filesz > headers_bytes - header.p_offset)
			extents->range[extents->count].start += headers_bytes - header.p_offset;
		extents->range[extents->count].end = header.p_vaddr + header.p_memsz;
		extents->count++;
	}
}

uint64_t extents_end(const struct extents *extents, uint64_t vaddr)
{
	if (extents->count == 0)
		return UINT64_MAX;
	for (unsigned i = 0; i < extents->count; i++)
		if (vaddr >= extents->range[i].start && vaddr < extents->range[i].end)
			return extents->range[i].end;
	return 0;
}
