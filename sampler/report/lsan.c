/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/lsan.h"

#include "sampler/linux/regular_file.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CODE_BYTES = 32, TEXT_MAX_BYTES = 1 << 16 };

/* Reads the bytes at a virtual address, as far as they are in the file. */
static size_t read_at(Elf *elf, int fd, uint64_t address, void *buffer, size_t bytes)
{
	size_t count = 0;

	if (elf_getphdrnum(elf, &count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		uint64_t left;
		ssize_t n;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
		    address < header.p_vaddr || address - header.p_vaddr >= header.p_filesz)
			continue;
		left = header.p_filesz - (address - header.p_vaddr);
		n = pread(fd, buffer, left < bytes ? (size_t)left : bytes,
		    (off_t)(header.p_offset + (address - header.p_vaddr)));
		return n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static bool symbol_in(Elf_Scn *section, Elf *elf, uint64_t *address)
{
	GElf_Shdr header;
	Elf_Data *data = gelf_getshdr(section, &header) ? elf_getdata(section, NULL) : NULL;

	if (!data || (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) || !header.sh_entsize)
		return false;
	for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    !symbol.st_value)
			continue;
		name = elf_strptr(elf, header.sh_link, symbol.st_name);
		if (name && strcmp(name, "__lsan_default_suppressions") == 0) {
			*address = symbol.st_value;
			return true;
		}
	}
	return false;
}

/* x86-64: [endbr64] [push %rbp; mov %rsp,%rbp] then lea disp32(%rip),%rax, mov $imm32,%eax or movabs
 * $imm64,%rax. */
static bool decode_x86_64(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *text)
{
	static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}, frame[] = {0x55, 0x48, 0x89, 0xe5};
	size_t at = 0;
	int32_t offset;
	uint32_t absolute;

	if (bytes >= at + sizeof(landing) && memcmp(code + at, landing, sizeof(landing)) == 0)
		at += sizeof(landing);
	if (bytes >= at + sizeof(frame) && memcmp(code + at, frame, sizeof(frame)) == 0)
		at += sizeof(frame);
	if (bytes >= at + 7 && code[at] == 0x48 && code[at + 1] == 0x8d && code[at + 2] == 0x05) {
		memcpy(&offset, code + at + 3, sizeof(offset));
		*text = address + at + 7 + (uint64_t)(int64_t)offset;
		return true;
	}
	if (bytes >= at + 10 && code[at] == 0x48 && code[at + 1] == 0xb8) {
		memcpy(text, code + at + 2, sizeof(*text));
		return true;
	}
	if (bytes >= at + 5 && code[at] == 0xb8) {
		memcpy(&absolute, code + at + 1, sizeof(absolute));
		*text = absolute;
		return true;
	}
	return false;
}

/* aarch64: [bti c] then adrp x0, page; add x0, x0, #offset. */
static bool decode_aarch64(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *text)
{
	uint32_t words[3];
	size_t at = 0;
	int64_t pages;

	if (bytes < sizeof(words))
		return false;
	memcpy(words, code, sizeof(words));
	if (words[0] == 0xd503245f)
		at = 1;
	if ((words[at] & 0x9f00001f) != 0x90000000 || (words[at + 1] & 0xffc003ff) != 0x91000000)
		return false;
	pages = (int64_t)((words[at] >> 29 & 3) | (words[at] >> 5 & 0x7ffff) << 2);
	if (pages & 0x100000)
		pages -= 0x200000;
	*text = ((address + 4 * at) & ~UINT64_C(0xfff)) + (uint64_t)(pages * 4096) +
	    (words[at + 1] >> 10 & 0xfff);
	return true;
}

static char *read_text(Elf *elf, int fd, uint64_t function)
{
	GElf_Ehdr header;
	uint8_t code[CODE_BYTES];
	size_t bytes = read_at(elf, fd, function, code, sizeof(code)), length;
	uint64_t address = 0;
	bool known = false;
	char *text;

	if (gelf_getehdr(elf, &header) && header.e_machine == EM_X86_64)
		known = decode_x86_64(code, bytes, function, &address);
	else if (gelf_getehdr(elf, &header) && header.e_machine == EM_AARCH64)
		known = decode_aarch64(code, bytes, function, &address);
	text = known ? malloc(TEXT_MAX_BYTES) : NULL;
	if (!text)
		return NULL;
	bytes = read_at(elf, fd, address, text, TEXT_MAX_BYTES);
	length = strnlen(text, bytes);
	if (length < bytes)
		return text;
	free(text);
	return NULL;
}

static bool build_id_fits(Elf *elf, const char *wanted)
{
	const void *id;
	ssize_t length = *wanted ? dwelf_elf_gnu_build_id(elf, &id) : 0;

	if (!*wanted)
		return true;
	if (length <= 0 || strlen(wanted) != (size_t)length * 2)
		return false;
	for (ssize_t i = 0; i < length; i++) {
		char hex[3];

		snprintf(hex, sizeof(hex), "%02x", ((const uint8_t *)id)[i]);
		if (memcmp(hex, wanted + i * 2, 2) != 0)
			return false;
	}
	return true;
}

/* From an ELF file. build_id: lowercase hex that it must have; "" any. The caller frees it; NULL: none. */
static char *read_file(const char *path, const char *build_id)
{
	struct stat status;
	int fd = regular_file_open(AT_FDCWD, path, 0, &status);
	Elf_Scn *section = NULL;
	uint64_t function = 0;
	char *text = NULL;
	Elf *elf;

	if (fd < 0)
		return NULL;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && build_id_fits(elf, build_id)) {
		while (!function && (section = elf_nextscn(elf, section)))
			symbol_in(section, elf, &function);
		if (function)
			text = read_text(elf, fd, function);
	}
	elf_end(elf);
	close(fd);
	return text;
}

char *lsan_suppressions(const struct traces *traces, const struct origin *origin)
{
	return *origin->path && !traces->options.anonymize ? read_file(origin->path, origin->build_id) : NULL;
}
