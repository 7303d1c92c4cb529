/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/extents.h"

#include <gelf.h>

void extents_read(struct extents *extents, Elf *elf)
{
	size_t header_count = 0;

	extents->count = 0;
	if (elf_getphdrnum(elf, &header_count) != 0)
		return;
	for (size_t i = 0; i < header_count && extents->count < EXTENTS_MAX; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(elf, (int)i, &header))
			return;
		if (header.p_type != PT_LOAD || !(header.p_flags & PF_X) || header.p_memsz == 0 ||
		    header.p_vaddr + header.p_memsz < header.p_vaddr)
			continue;
		extents->range[extents->count].start = header.p_vaddr;
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
