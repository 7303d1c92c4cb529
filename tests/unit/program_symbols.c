/* SPDX-License-Identifier: Apache-2.0 */
/* What the symbol tables of real files tell, and of files cut short. */
#include "sampler/inject/program_symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct file {
	uint8_t *bytes;
	size_t length;
};

static int read_bytes(void *context, void *to, size_t bytes, uint64_t offset)
{
	const struct file *file = context;

	if (offset > file->length || bytes > file->length - offset)
		return -EIO;
	memcpy(to, file->bytes + offset, bytes);
	return 0;
}

/* ---- a file of one table of names and one of symbols */

enum { NAMES_AT = 0x400, NAMES_MAX = 0x20000, SYMBOLS_AT = NAMES_AT + NAMES_MAX, SYMBOLS_MAX = 64 };

struct made {
	struct file file;
	Elf64_Ehdr *header;
	Elf64_Shdr *sections; /* none, names, symbols */
	Elf64_Sym *symbols;
};

static struct made make(uint32_t type)
{
	struct made made = {.file.length = SYMBOLS_AT + SYMBOLS_MAX * sizeof(Elf64_Sym)};

	made.file.bytes = calloc(1, made.file.length);
	assert_non_null(made.file.bytes);
	made.header = (Elf64_Ehdr *)made.file.bytes;
	made.sections = (Elf64_Shdr *)(made.file.bytes + sizeof(Elf64_Ehdr));
	made.symbols = (Elf64_Sym *)(made.file.bytes + SYMBOLS_AT);
	*made.header = (Elf64_Ehdr){
	    .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_shoff = sizeof(Elf64_Ehdr),
	    .e_shentsize = sizeof(Elf64_Shdr),
	    .e_shnum = 3,
	};
	made.sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = NAMES_MAX};
	made.sections[2] = (Elf64_Shdr){.sh_type = type, .sh_offset = SYMBOLS_AT, .sh_link = 1};
	return made;
}

static void put(struct made *made, uint32_t name_at, const char *name, uint8_t bind, uint16_t section)
{
	Elf64_Shdr *table = &made->sections[2];

	memcpy(made->file.bytes + NAMES_AT + name_at, name, strlen(name));
	made->symbols[table->sh_size / sizeof(Elf64_Sym)] = (Elf64_Sym){.st_name = name_at,
	    .st_info = ELF64_ST_INFO(bind, STT_FUNC),
	    .st_shndx = section,
	    .st_value = 0x1000,
	    .st_size = 0x20};
	table->sh_size += sizeof(Elf64_Sym);
}

static struct program_symbols read_made(struct made *made)
{
	struct program_symbols symbols;

	assert_int_equal(program_symbols_read(&symbols, read_bytes, &made->file), 0);
	return symbols;
}

/* Also where two pieces of the table meet, and where names share their ends. */
static void names_are_found_anywhere(void **unused)
{
	for (uint32_t at = 32768 - 20; at < 32768 + 4; at++) {
		struct made made = make(SHT_SYMTAB);

		put(&made, 7, "unlike_malloc", STB_LOCAL, 1);
		put(&made, at, "x_rjem_malloc", STB_GLOBAL, 1);
		made.symbols[1].st_name = at + 1;
		struct program_symbols symbols = read_made(&made);
		assert_true(symbols.table && symbols.whole);
		assert_string_equal(symbols.allocator, "_rjem_malloc");
		assert_false(symbols.own_malloc || symbols.exports_allocator);
		free(made.file.bytes);
	}
}

static void what_a_file_asks_for_is_not_inside(void **unused)
{
	struct made made = make(SHT_DYNSYM);

	put(&made, 1, "_rjem_malloc", STB_GLOBAL, SHN_UNDEF);
	put(&made, 100, "malloc", STB_LOCAL, 1);
	struct program_symbols symbols = read_made(&made);
	assert_false(symbols.table || symbols.own_malloc || symbols.allocator[0]);
	put(&made, 200, "malloc", STB_WEAK, 1);
	put(&made, 300, "mallocx", STB_GLOBAL, 1);
	symbols = read_made(&made);
	assert_true(symbols.own_malloc && symbols.exports_allocator);
	assert_string_equal(symbols.allocator, "mallocx");
	free(made.file.bytes);
}

static void interpreters_are_known(void **unused)
{
	struct made made = make(SHT_DYNSYM);

	put(&made, 1, "_PyEval_EvalFrameDefault", STB_GLOBAL, 1);
	struct program_symbols symbols = read_made(&made);
	assert_int_equal(symbols.runtime.kind, RUNTIME_PYTHON);
	assert_false(symbols.runtime.python_names);
	assert_int_equal(symbols.runtime.entry_start, 0x1000);
	assert_int_equal(symbols.runtime.entry_end, 0x1020);
	put(&made, 100, "PyUnstable_PerfMapState_Init", STB_GLOBAL, 1);
	assert_true(read_made(&made).runtime.python_names);
	made.sections[2].sh_type = SHT_SYMTAB; /* not exported */
	assert_int_equal(read_made(&made).runtime.kind, RUNTIME_NONE);
	free(made.file.bytes);
}

static void more_interpreters(void **unused)
{
	static const struct {
		const char *name;
		enum runtime_kind kind;
		bool entry;
	} known[] = {{"_zend_mm_alloc", RUNTIME_PHP, false}, {"execute_ex", RUNTIME_PHP, true},
	    {"erts_alloc_init", RUNTIME_ERLANG, false}, {"rb_vm_exec", RUNTIME_RUBY, true},
	    {"Perl_runops_standard", RUNTIME_PERL, true}, {"lua_pcallk", RUNTIME_LUA, true},
	    {"TclNRRunCallbacks", RUNTIME_TCL, true}};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct made made = make(SHT_DYNSYM);

		put(&made, 1, known[i].name, STB_GLOBAL, 1);
		const struct program_symbols symbols = read_made(&made);
		assert_int_equal(symbols.runtime.kind, known[i].kind);
		assert_int_equal(symbols.runtime.entry_end, known[i].entry ? 0x1020 : 0);
		free(made.file.bytes);
	}
}

/* By a section, which a stripped program has too. */
static void go_is_known(void **unused)
{
	struct made made = make(SHT_DYNSYM);
	Elf64_Shdr *section = &made.sections[3];

	strcpy((char *)made.file.bytes + NAMES_AT + 50, ".go.buildinfo");
	*section = (Elf64_Shdr){.sh_name = 50, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_WRITE};
	made.header->e_shnum = 4;
	made.header->e_shstrndx = 1;
	assert_int_equal(read_made(&made).runtime.kind, RUNTIME_GO);
	section->sh_name = 51;
	assert_int_equal(read_made(&made).runtime.kind, RUNTIME_NONE);
	section->sh_name = UINT32_MAX;
	assert_int_equal(read_made(&made).runtime.kind, RUNTIME_NONE);
	free(made.file.bytes);
}

/* Any table too large, cut short or of the wrong kind: what is not read is not taken for nothing. */
static void odd_files(void **unused)
{
	struct made made = make(SHT_SYMTAB);

	put(&made, 1, "_rjem_malloc", STB_GLOBAL, 1);
	made.sections[1].sh_size = (64 << 20) + 1;
	assert_false(read_made(&made).whole);
	made.sections[1].sh_size = NAMES_MAX;
	made.sections[2].sh_size = 1ull << 40;
	assert_false(read_made(&made).whole);
	made.sections[2].sh_size = sizeof(Elf64_Sym);
	made.sections[2].sh_link = 3;
	assert_false(read_made(&made).whole);
	made.sections[2].sh_link = 1;
	assert_true(read_made(&made).whole);
	const size_t length = made.file.length;
	struct program_symbols symbols;
	for (made.file.length = 0; made.file.length < length; made.file.length += 61)
		(void)program_symbols_read(&symbols, read_bytes, &made.file);
	made.file.length = 3;
	assert_int_equal(program_symbols_read(&symbols, read_bytes, &made.file), -ENOEXEC);
	free(made.file.bytes);
}

/* More names than are kept: then not all of it is known. */
static void too_many_names(void **unused)
{
	struct made made = make(SHT_SYMTAB);

	for (uint32_t at = 1; at + 8 < NAMES_MAX; at += 8)
		memcpy(made.file.bytes + NAMES_AT + at, "amalloc", 8);
	assert_false(read_made(&made).whole);
	free(made.file.bytes);
}

static void a_real_file(void **unused)
{
	struct program_symbols symbols;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(program_symbols_read_file(&symbols, fd), 0);
	assert_true(symbols.table && symbols.whole);
	assert_string_equal(symbols.allocator, "");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_are_found_anywhere),
	    cmocka_unit_test(what_a_file_asks_for_is_not_inside),
	    cmocka_unit_test(interpreters_are_known),
	    cmocka_unit_test(more_interpreters),
	    cmocka_unit_test(go_is_known),
	    cmocka_unit_test(odd_files),
	    cmocka_unit_test(too_many_names),
	    cmocka_unit_test(a_real_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
