/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/debuginfo.h"

#include <dwarf.h>
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
#include <ucontext.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "sampler/linux/confinement.h"
#include "sampler/linux/regular_file.h"
#include "sampler/symbol/debuginfod.h"

enum { BUILD_ID_MIN = 3, BUILD_ID_MAX = 64 };
#define CHECKSUM_BYTES_MAX (4ull << 30)

static bool has_build_id(int fd, const uint8_t *build_id, size_t build_id_bytes)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	const void *found = NULL;
	ssize_t found_bytes = elf ? dwelf_elf_gnu_build_id(elf, &found) : -1;
	bool same = found_bytes == (ssize_t)build_id_bytes && memcmp(found, build_id, build_id_bytes) == 0;

	elf_end(elf);
	return same;
}

static bool has_checksum(int fd, off_t size_bytes, uint32_t checksum)
{
	uint8_t buffer[64 * 1024];
	uLong sum = crc32(0, NULL, 0);
	off_t offset = 0;

	if (size_bytes < 0 || (uint64_t)size_bytes > CHECKSUM_BYTES_MAX)
		return false;
	while (offset < size_bytes) {
		ssize_t got = pread(fd, buffer, sizeof(buffer), offset);

		if (got <= 0)
			return false;
		sum = crc32(sum, buffer, (uInt)got);
		offset += got;
	}
	return sum == checksum;
}

static int open_here(void *context, const char *path)
{
	struct stat status;

	return regular_file_open(AT_FDCWD, path, 0, &status);
}

static int fetch_here(void *context, const uint8_t *build_id, size_t build_id_bytes)
{
	return debuginfod_open(build_id, build_id_bytes);
}

static const struct debuginfo_files here = {open_here, fetch_here, NULL};

/* Opens a candidate and verifies it: by build id if there is one, else by checksum. */
static int open_verified(const struct debuginfo_files *files, const char *path, const uint8_t *build_id,
    size_t build_id_bytes, uint32_t checksum)
{
	struct stat status;
	int fd = files->open(files->context, path);

	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &status) != 0)
		status.st_size = -1;
	if (build_id_bytes > 0 ? has_build_id(fd, build_id, build_id_bytes)
	                       : has_checksum(fd, status.st_size, checksum))
		return fd;
	close(fd);
	return -ENOENT;
}

static int open_by_build_id(
    const struct debuginfo_files *files, const char *root, const uint8_t *build_id, size_t build_id_bytes)
{
	char path[PATH_MAX];
	int length;

	if (build_id_bytes < BUILD_ID_MIN || build_id_bytes > BUILD_ID_MAX)
		return -ENOENT;
	length = snprintf(path, sizeof(path), "%s/.build-id/%02x/", root, build_id[0]);
	if (length < 0 || length + 2 * build_id_bytes + sizeof(".debug") > sizeof(path))
		return -ENOENT;
	for (size_t i = 1; i < build_id_bytes; i++)
		length += sprintf(path + length, "%02x", build_id[i]);
	strcpy(path + length, ".debug");
	return open_verified(files, path, build_id, build_id_bytes, 0);
}

static int open_by_link(const struct debuginfo_files *files, const struct debuginfo_query *query)
{
	const char *const places[][2] = {{"", ""}, {"", "/.debug"}, {query->root, ""}};
	GElf_Word checksum;
	const char *name = dwelf_elf_gnu_debuglink(query->elf, &checksum);
	const char *slash = strrchr(query->path, '/');

	if (!name || name[0] == '\0' || strchr(name, '/') || query->path[0] != '/')
		return -ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX];
		int fd = -ENOENT;
		int length = snprintf(path, sizeof(path), "%s%.*s%s/%s", places[i][0],
		    (int)(slash - query->path), query->path, places[i][1], name);

		if (length > 0 && length < (int)sizeof(path))
			fd = open_verified(files, path, query->build_id, query->build_id_bytes, checksum);
		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}

/* What a server sent is verified too. */
static int open_by_debuginfod(
    const struct debuginfo_files *files, const uint8_t *build_id, size_t build_id_bytes)
{
	int fd = files->fetch(files->context, build_id, build_id_bytes);

	if (fd >= 0 && !has_build_id(fd, build_id, build_id_bytes)) {
		close(fd);
		return -ENOENT;
	}
	return fd < 0 ? -ENOENT : fd;
}

int debuginfo_open(const struct debuginfo_query *query)
{
	const struct debuginfo_files *files = query->files ? query->files : &here;
	int fd = open_by_build_id(files, query->root, query->build_id, query->build_id_bytes);

	if (fd < 0)
		fd = open_by_link(files, query);
	if (fd < 0 && query->debuginfod && query->build_id_bytes >= BUILD_ID_MIN)
		fd = open_by_debuginfod(files, query->build_id, query->build_id_bytes);
	return fd;
}

/* The smallest ELF file that libdw accepts as DWARF: one .debug_info section of one byte. */
static const struct {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char strings[24];
	char info[8];
} empty_image = {
    .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64,
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_version = EV_CURRENT,
        .e_shoff = sizeof(Elf64_Ehdr),
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 3,
        .e_shstrndx = 1},
    .sections = {{0},
        {.sh_name = 1,
            .sh_type = SHT_STRTAB,
            .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr),
            .sh_size = 24,
            .sh_addralign = 1},
        {.sh_name = 11,
            .sh_type = SHT_PROGBITS,
            .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) + 24,
            .sh_size = 1,
            .sh_addralign = 1}},
    .strings = "\0.shstrtab\0.debug_info",
};

static int open_alternate(const struct debuginfo_files *files, const char *name, const uint8_t *build_id,
    size_t build_id_bytes, const char *path, const char *root)
{
	const char *slash = strrchr(path, '/');
	char joined[PATH_MAX];
	int fd = open_by_build_id(files, root, build_id, build_id_bytes);
	int length;

	if (fd >= 0 || build_id_bytes == 0)
		return fd;
	if (name[0] == '/')
		return open_verified(files, name, build_id, build_id_bytes, 0);
	length = snprintf(joined, sizeof(joined), "%.*s/%s", slash ? (int)(slash - path) : 0, path, name);
	if (length < 0 || length >= (int)sizeof(joined))
		return -ENOENT;
	return open_verified(files, joined, build_id, build_id_bytes, 0);
}

void debuginfo_alternate_init(struct debuginfo_alternate *alternate, Dwarf *dwarf, const char *path,
    const char *root, const struct debuginfo_files *files)
{
	const char *name;
	const void *build_id;
	ssize_t build_id_bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id);

	*alternate = (struct debuginfo_alternate){.fd = -1};
	if (build_id_bytes > 0)
		alternate->fd =
		    open_alternate(files ? files : &here, name, build_id, (size_t)build_id_bytes, path, root);
	if (alternate->fd >= 0) {
		alternate->elf = elf_begin(alternate->fd, ELF_C_READ_MMAP_PRIVATE, NULL);
		alternate->dwarf =
		    alternate->elf ? dwarf_begin_elf(alternate->elf, DWARF_C_READ, NULL) : NULL;
	}
	if (!alternate->dwarf) {
		elf_end(alternate->elf);
		alternate->elf = elf_memory((char *)&empty_image, sizeof(empty_image));
		alternate->dwarf =
		    alternate->elf ? dwarf_begin_elf(alternate->elf, DWARF_C_READ, NULL) : NULL;
	}
	if (alternate->dwarf)
		dwarf_setalt(dwarf, alternate->dwarf);
}

void debuginfo_alternate_fini(struct debuginfo_alternate *alternate)
{
	dwarf_end(alternate->dwarf);
	elf_end(alternate->elf);
	if (alternate->fd >= 0)
		close(alternate->fd);
}

void debuginfo_hide_unused(Elf *elf)
{
	static const char *const unused[] = {".debug_loc", ".debug_loclists", ".debug_macro",
	    ".debug_macinfo", ".debug_frame", ".debug_pubnames", ".debug_pubtypes", ".debug_gnu_pubnames",
	    ".debug_gnu_pubtypes"};
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *own =
		    gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		for (size_t i = 0; own && i < sizeof(unused) / sizeof(unused[0]); i++) {
			if (strcmp(own, unused[i]) == 0) {
				/* Makes the section look stripped, in memory only. */
				header.sh_type = SHT_NOBITS;
				gelf_update_shdr(section, &header);
			}
		}
	}
}

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

static struct {
	const struct debuginfo_files *files; /* NULL: nothing is opened */
	const char *path;
	unsigned asked;
	bool prepared;
} split;

static int open_beside(const char *name)
{
	const char *slash = strrchr(split.path, '/');
	char path[PATH_MAX];

	if (!slash ||
	    snprintf(path, sizeof(path), "%.*s%s", (int)(slash + 1 - split.path), split.path, name) >=
	        (int)sizeof(path))
		return -ENOENT;
	return split.files->open(split.files->context, path);
}

/* The path is that of the machine on which the program was built. libdw asks for absolute paths alone. */
static int open_split(const char *path)
{
	int fd;

	if (!split.files || path[0] != '/' || split.asked++ >= SPLIT_FILES_MAX)
		return -EPERM;
	fd = split.files->open(split.files->context, path);
	return fd < 0 ? open_beside(strrchr(path, '/') + 1) : fd;
}

/* Runs inside of openat(2): the path is libdw's string. */
static void on_open(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	const int saved = errno;

	(void)signal;
	(void)info;
#ifdef __x86_64__
	const char *path = (const char *)interrupted->uc_mcontext.gregs[REG_RSI];
	interrupted->uc_mcontext.gregs[REG_RAX] = open_split(path);
#else
	const char *path = (const char *)interrupted->uc_mcontext.regs[1];
	interrupted->uc_mcontext.regs[0] = (unsigned long long)(long long)open_split(path);
#endif
	errno = saved;
}

void split_files_prepare(void)
{
	const struct sigaction action = {.sa_sigaction = on_open, .sa_flags = SA_SIGINFO | SA_NODEFER};

	split.prepared = sigaction(SIGSYS, &action, NULL) == 0 && confinement_trap_opens();
}

void split_files_begin(const struct debuginfo_files *files, const char *path)
{
	split.files = split.prepared ? files : NULL;
	split.path = path;
}

bool split_files_find(Dwarf_Die *unit, Dwarf_Die *found)
{
	uint8_t type;

	return split.files && dwarf_cu_info(unit->cu, NULL, &type, NULL, found, NULL, NULL, NULL) == 0 &&
	    found->addr;
}
