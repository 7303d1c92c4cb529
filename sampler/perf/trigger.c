/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/trigger.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* sourceware.org/systemtap/wiki/UserSpaceProbeImplementation: address, base, semaphore, then the strings
 * provider, name and arguments. */
enum {
	NOTE_TYPE = 3,
	PROVIDER_AT = 3 * sizeof(uint64_t),
	INSTRUCTION_BYTES_MAX = 16, /* the bytes that the kernel copies; they may lie in two pages */
};
static const char owner[] = "stapsdt", provider[] = "heaptap";

static int note_offset(Elf *elf, uint64_t *file_offset)
{
	size_t count;
	uint64_t address = 0;
	Elf_Scn *section = NULL;

	while (!address && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		Elf_Data *data = elf_getdata(section, NULL);
		size_t at = 0, name, desc, next;
		GElf_Nhdr note;
		while (data && (next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
			const char *bytes = data->d_buf;

			if (note.n_type == NOTE_TYPE && note.n_namesz == sizeof(owner) &&
			    memcmp(bytes + name, owner, sizeof(owner)) == 0 &&
			    note.n_descsz >= PROVIDER_AT + sizeof(provider) &&
			    memcmp(bytes + desc + PROVIDER_AT, provider, sizeof(provider)) == 0)
				memcpy(&address, bytes + desc, sizeof(address));
			at = next;
		}
	}
	if (!address || elf_getphdrnum(elf, &count) != 0)
		return -ENOENT;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;

		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
		    address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
			*file_offset = address - segment.p_vaddr + segment.p_offset;
			return 0;
		}
	}
	return -ENOENT;
}

int trigger_find(int library_fd, uint64_t *file_offset)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(library_fd, ELF_C_READ, NULL);
	int error = elf ? note_offset(elf, file_offset) : -ENOEXEC;
	elf_end(elf);
	return error;
}

int trigger_hold(int library_fd, uint64_t file_offset, struct trigger_page *page)
{
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1, start = file_offset & ~page_mask;

	*page = (struct trigger_page){.bytes = file_offset + INSTRUCTION_BYTES_MAX - start};
	void *mapped =
	    mmap(NULL, page->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, library_fd, (off_t)start);
	if (mapped == MAP_FAILED)
		return -errno;
	page->start = mapped;
	/* If we may not lock the page, the mapping alone keeps it cached unless memory becomes short. */
	(void)mlock(mapped, page->bytes);
	return 0;
}

void trigger_release(struct trigger_page *page)
{
	if (page->start)
		munmap(page->start, page->bytes);
	*page = (struct trigger_page){0};
}
