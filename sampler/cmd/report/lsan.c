/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/lsan.h"

#include "pprof/text/log_line.h"
#include "sampler/linux/confinement.h"
#include "sampler/linux/regular_file.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CODE_BYTES = 32,
	TEXT_MAX_BYTES = 1 << 16,
	SECTION_MAX_BYTES = 256 << 20, /* a symbol table, or its names */
	MEMORY_BYTES = 1 << 30,        /* of the child */
	CPU_SECONDS = 10,              /* of the child */
};

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

static Elf_Data *section_data(Elf_Scn *section)
{
	GElf_Shdr header;
	Elf_Data *data = section && gelf_getshdr(section, &header) && header.sh_size <= SECTION_MAX_BYTES
	    ? elf_getdata(section, NULL)
	    : NULL;

	return data && data->d_buf && data->d_size ? data : NULL;
}

static bool symbol_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint64_t *address)
{
	const Elf_Data *names = section_data(elf_getscn(elf, header->sh_link));
	const char *text = names ? names->d_buf : NULL;
	const size_t symbol_bytes = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	Elf_Data *data = section_data(section);

	/* elf_strptr() would look for the end of each name in the whole section. */
	if (!data || !text || text[names->d_size - 1] || !symbol_bytes)
		return false;
	for (size_t i = 0; i < data->d_size / symbol_bytes && i <= INT_MAX; i++) {
		GElf_Sym symbol;

		if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    !symbol.st_value || symbol.st_name >= names->d_size)
			continue;
		if (strcmp(text + symbol.st_name, "__lsan_default_suppressions") == 0) {
			*address = symbol.st_value;
			return true;
		}
	}
	return false;
}

/* Looks into the first table of each type; the dynamic one is small. 0 if there is none. */
static uint64_t find_function(Elf *elf)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	uint64_t address = 0;

	for (size_t i = 0; i < sizeof(types) / sizeof(*types) && !address; i++) {
		Elf_Scn *section = NULL;
		GElf_Shdr header;

		while ((section = elf_nextscn(elf, section)))
			if (gelf_getshdr(section, &header) && header.sh_type == types[i])
				break;
		if (section)
			symbol_in(elf, section, &header, &address);
	}
	return address;
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

/* ---- in the child */

/* Reads an ELF file. build_id: lowercase hex that it must have; "": any. The caller frees the text. NULL if
 * there is none. */
static char *read_file(int fd, const char *build_id)
{
	uint64_t function;
	char *text = NULL;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && build_id_fits(elf, build_id)) {
		function = find_function(elf);
		if (function)
			text = read_text(elf, fd, function);
	}
	elf_end(elf);
	return text;
}

/* Beside what the fork has of the command's memory. */
static int limit_memory(void)
{
	FILE *file = fopen("/proc/self/statm", "re");

	unsigned long long pages = 0;
	int fields = file ? fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) : 0;
	const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_BYTES;
	const struct rlimit memory = {bytes, bytes};

	if (file)
		fclose(file);
	return fields == 1 && setrlimit(RLIMIT_DATA, &memory) == 0 ? 0 : -EIO;
}

static __attribute__((noreturn)) void run_child(int out, int fd, const char *build_id)
{
	char *text;
	size_t length;

	prctl(PR_SET_NAME, "heaptap-symbols");
	if (limit_memory() || confinement_enter(out, fd, CPU_SECONDS))
		_exit(1);
	text = read_file(fd, build_id);
	length = text ? strlen(text) : 0;
	for (size_t done = 0; done < length;) {
		ssize_t n = write(out, text + done, length - done);

		if (n <= 0)
			_exit(1);
		done += (size_t)n;
	}
	_exit(0);
}

/* ---- in the command */

/* Reads what the child writes, until it ends. NULL if it writes nothing. */
static char *receive(int fd)
{
	char *text = malloc(TEXT_MAX_BYTES);
	size_t length = 0;
	ssize_t n = 1;

	while (text && n && length < TEXT_MAX_BYTES - 1) {
		n = read(fd, text + length, TEXT_MAX_BYTES - 1 - length);
		if (n < 0 && errno != EINTR)
			break;
		length += n > 0 ? (size_t)n : 0;
	}
	if (text && length) {
		text[length] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

/* The profile may name any file: a child without privileges parses it, within bounds. */
static char *ask_child(int fd, const char *path, const char *build_id)
{
	int ends[2], status = 0;
	char *text;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	pid = fork();
	if (pid == 0)
		run_child(ends[1], fd, build_id);
	close(ends[1]);
	text = pid > 0 ? receive(ends[0]) : NULL;
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || status)
		log_line("%s cannot be read: the program's own suppressions are not known", path);
	return text;
}

char *lsan_suppressions(const struct traces *traces, const struct origin *origin)
{
	struct stat status;
	char *text;
	int fd;

	if (!*origin->path || traces->options.anonymize)
		return NULL;
	fd = regular_file_open(AT_FDCWD, origin->path, 0, &status);
	if (fd < 0)
		return NULL;
	text = ask_child(fd, origin->path, origin->build_id);
	close(fd);
	return text;
}
