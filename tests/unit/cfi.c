/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/*
 * Compiled rows against libdw's own reading of the untouched file, row by row; rows written by hand for what
 * compilers seldom emit; files that lie, and files that change under us.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/linux/regs.h"
#include "sampler/unwind/cfi.h"
#include "sampler/unwind/cfi_odd.h"
#include "sampler/unwind/cfi_section.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct cfi_memory memory = {.max_bytes = 1 << 30};

/* A file and its rows, for as long as the program runs or until shut(). */
struct opened {
	struct module_file file;
	struct cfi *cfi;
};

static bool open_at(const char *path, struct opened *opened)
{
	char *full = realpath(path, NULL);
	int err = full ? module_file_open(&(struct module_request){.path = full}, &opened->file) : -1;

	free(full);
	if (err)
		return false;
	opened->cfi = cfi_new(opened->file.e_machine, &memory);
	assert_non_null(opened->cfi);
	return true;
}

static void shut(struct opened *opened)
{
	cfi_free(opened->cfi);
	module_file_close(&opened->file);
}

#ifdef __x86_64__

/* Functions that are never run: only their rows count. Labels name the addresses to ask for. */
__asm__(".pushsection .text\n"
        "row_function: .cfi_startproc\n"
        "row_entry: nop\n"
        ".cfi_def_cfa_offset 48; .cfi_offset rbx, -16; .cfi_offset r15, -40\n"
        "row_saved: nop\n"
        ".cfi_def_cfa rbp, 100000\n"
        "row_far: nop\n"
        ".cfi_register rip, rcx\n"
        "row_in_register: nop\n"
        ".cfi_undefined rip\n"
        "row_end: nop\n"
        ".cfi_endproc\n"
        "row_expression_function: .cfi_startproc; .cfi_signal_frame\n"
        /* CFA = *(rsp + 16) + 8 */
        ".cfi_escape 0x0f, 5, 0x77, 16, 0x06, 0x23, 8\n"
        /* r12 at *(CFA - 24); r13 is rsp + 5 */
        ".cfi_escape 0x10, 12, 3, 0x09, 0xe8, 0x22\n"
        ".cfi_escape 0x16, 13, 2, 0x77, 5\n"
        "row_expression: nop\n"
        ".cfi_endproc\n"
        "row_none: nop\n"
        ".popsection\n");

extern const char row_entry[], row_saved[], row_far[], row_in_register[], row_end[], row_expression[],
    row_none[];

static const struct cfi_rule *rule_of(const void *address)
{
	static struct opened self;
	Dl_info info;

	if (!self.cfi)
		assert_true(open_at("/proc/self/exe", &self));
	/* This program is linked as PIE: vaddr 0 is where it begins. */
	assert_true(dladdr(address, &info));
	uint64_t vaddr = (uintptr_t)address - (uintptr_t)info.dli_fbase;
	const struct cfi_rule *rule = cfi_find(self.cfi, &self.file, vaddr, NULL);
	assert_ptr_equal(rule, cfi_find(self.cfi, &self.file, vaddr, NULL));
	assert_ptr_equal(rule, cfi_known(self.cfi, vaddr));
	return rule;
}

static void rows_written_by_hand(void **state)
{
	const struct cfi_rule *rule = rule_of(row_entry);

	assert_int_equal(rule->kind, CFI_SIMPLE);
	assert_true(rule->cfa_reg == 7 && rule->cfa_offset == 8 && rule->ra_offset == -8 && rule->saved == 0);
	rule = rule_of(row_saved);
	assert_int_equal(rule->kind, CFI_SIMPLE);
	assert_true(rule->cfa_reg == 7 && rule->cfa_offset == 48 && !rule->signal_frame);
	/* tracked: rbx rbp r12 r13 r14 r15 */
	assert_int_equal(rule->saved, 1 << 0 | 1 << 5);
	assert_true(rule->offset[0] == -16 && rule->offset[5] == -40 && rule->compact_bytes == 40);
	rule = rule_of(row_far);
	assert_true(rule->kind == CFI_SIMPLE && rule->cfa_reg == 6 && rule->cfa_offset == 100000);
	rule = rule_of(row_in_register);
	assert_int_equal(rule->kind, CFI_ODD);
	assert_true(rule->odd->ra.how == CFI_ODD_REGISTER && rule->odd->ra.offset == 2);
	assert_int_equal(rule_of(row_end)->kind, CFI_END);
	assert_int_equal(rule_of(row_none)->kind, CFI_NONE);
}

static bool read_words(void *context, uint64_t address, unsigned n, uint64_t *value)
{
	const uint64_t *words = context;

	if (address < 0x1000 || address >= 0x1000 + 32 * 8 || n != 8)
		return false;
	*value = words[(address - 0x1000) / 8];
	return true;
}

static void expressions(void **state)
{
	const struct cfi_rule *rule = rule_of(row_expression);
	uint64_t words[32], cfa, missing;
	struct regs regs = {.known = UINT64_C(0x1ffff)}, start;

	assert_int_equal(rule->kind, CFI_ODD);
	assert_true(rule->signal_frame);
	for (uint64_t i = 0; i < 32; i++)
		words[i] = 0x7000 + i;
	words[2] = 0x1078; /* *(rsp + 16): CFA is 0x1080 */
	regs.r[7] = 0x1000;
	regs.r[12] = 1;
	regs.r[13] = 2;
	start = regs;
	assert_true(cfi_odd_step(rule->odd, &regs_x86_64, &regs, read_words, words, &cfa, &missing));
	assert_true(cfa == 0x1080);
	assert_true(regs.pc == 0x7000 + (0x1078 - 0x1000) / 8 || regs.pc == 0x1078);
	assert_true(regs.r[12] == 0x7000 + (0x1068 - 0x1000) / 8);
	assert_true(regs.r[13] == 0x1005);
	assert_true(regs.r[7] == 0x1080);
	/* What the row needs is not there. */
	regs = start;
	regs.r[7] = 0x2000;
	assert_false(cfi_odd_step(rule->odd, &regs_x86_64, &regs, read_words, words, &cfa, &missing));
	assert_true(missing == 0x2010);
	regs = start;
	regs.known &= ~(UINT64_C(1) << 7);
	assert_false(cfi_odd_step(rule->odd, &regs_x86_64, &regs, read_words, words, &cfa, &missing));
	assert_true(missing == 0);
}

#endif

/* One rule must say what libdw says; counts what it could compare. */
static void compare_rule(
    const struct cfi_rule *rule, const struct regs_arch *arch, Dwarf_Frame *frame, uint64_t vaddr)
{
	Dwarf_Op scratch[3], *ops;
	Dwarf_Addr start, end;
	bool signal_frame;
	size_t n;
	int ra = dwarf_frame_info(frame, &start, &end, &signal_frame);

	assert_int_equal(dwarf_frame_register(frame, ra, scratch, &ops, &n), 0);
	if (n == 0 && ops == scratch) {
		assert_int_equal(rule->kind, CFI_END);
		return;
	}
	if (rule->kind != CFI_SIMPLE && rule->kind != CFI_ODD)
		fail_msg("%lx: kind %d", vaddr, rule->kind);
	assert_int_equal(rule->signal_frame, signal_frame);
	if (rule->kind == CFI_ODD)
		return;
	assert_int_equal(rule->ra_in_register, n == 0);
	assert_true(n == 0 || (n == 2 && (int32_t)ops[1].number == rule->ra_offset));
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	assert_true(n == 1 && ops[0].number == rule->cfa_reg && (int64_t)ops[0].number2 == rule->cfa_offset);
	for (unsigned i = 0; i < arch->tracked_count; i++) {
		assert_int_equal(dwarf_frame_register(frame, arch->tracked[i], scratch, &ops, &n), 0);
		bool saved = n > 0;
		assert_int_equal(rule->saved >> i & 1, saved);
		if (saved &&
		    (ops[0].atom != DW_OP_call_frame_cfa || (int32_t)ops[1].number != rule->offset[i]))
			fail_msg("%lx: register %d", vaddr, arch->tracked[i]);
	}
}

/* Every STEPth byte of the code of the file at PATH. */
static size_t compare_file(const char *path, uint64_t step)
{
	struct opened opened;
	const struct module_file *file = &opened.file;
	size_t compared = 0, addresses = 0, odd = 0;

	if (!open_at(path, &opened)) {
		print_message("SKIPPED: %s is not here\n", path);
		return 0;
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct module_segment *s = &file->segments[i];

		for (uint64_t vaddr = s->vaddr; s->executable && vaddr < s->vaddr + s->file_bytes;
		     vaddr += step) {
			Dwarf_Frame *frame = NULL;
			const struct cfi_rule *rule = cfi_find(opened.cfi, file, vaddr, NULL);
			/* Code to which signal handlers return, or its bytes among constants: libdw knows
			 * nothing of it. */
			bool known_by_code = rule->kind == CFI_ODD && rule->odd->returned_to;
			if (dwarf_cfi_addrframe(cfi, vaddr, &frame) != 0)
				assert_true(rule->kind == CFI_NONE || known_by_code);
			else if (!known_by_code)
				compare_rule(rule, regs_arch_find(file->e_machine), frame, vaddr);
			compared += frame != NULL;
			odd += rule->kind == CFI_ODD;
			addresses++;
			free(frame);
		}
	}
	struct cfi_usage usage;
	cfi_measure(opened.cfi, &usage);
	print_message(
	    "%s: %zu addresses, %zu with rows, %zu odd; %zu rules, own %zu KiB, file pages %zu KiB\n", path,
	    addresses, compared, odd, usage.rules, usage.own_bytes / 1024, usage.copied_bytes / 1024);
	assert_true(odd * 10 < addresses);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	close(fd);
	shut(&opened);
	return compared;
}

static void rows_are_what_libdw_says(void **state)
{
	assert_true(compare_file("/proc/self/exe", 1) > 10000);
	compare_file("/lib/x86_64-linux-gnu/libc.so.6", 7);
	compare_file("/lib64/ld-linux-x86-64.so.2", 3);
	compare_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 97);
	/* By lld, .eh_frame_hdr behind .eh_frame in the section table. */
	compare_file("/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", 29989);
	assert_true(compare_file("tests/unit/stacks/aarch64-gcc.elf", 4) > 100);
}

/* A lookup must not read a large file from end to end: a few pages for a few addresses. */
static void little_is_read_of_large_files(void **state)
{
	struct opened opened;
	const struct module_file *file = &opened.file;
	struct cfi_usage usage;

	if (!open_at("/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", &opened)) {
		print_message("SKIPPED: no libLLVM-14 here\n");
		return;
	}
	const struct module_segment *s = &file->segments[0];
	for (uint32_t i = 0; i < file->segment_count; i++)
		if (file->segments[i].executable)
			s = &file->segments[i];
	for (uint64_t i = 1; i < 5; i++)
		cfi_find(opened.cfi, file, s->vaddr + s->file_bytes * i / 5, NULL);
	cfi_measure(opened.cfi, &usage);
	assert_true(usage.copied_bytes < 2 << 20 && usage.own_bytes < 64 << 10);
	shut(&opened);
}

static char *read_file(const char *path, size_t *n)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	char *bytes = malloc((size_t)st.st_size);
	*n = (size_t)read(fd, bytes, (size_t)st.st_size);
	close(fd);
	return bytes;
}

/* A copy in memory; the file is opened if it is one. */
static bool from_memory(const char *bytes, size_t n, int *fd, struct opened *opened)
{
	char path[48];

	*fd = memfd_create("cfi", MFD_CLOEXEC);
	assert_true(write(*fd, bytes, n) == (ssize_t)n);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	if (module_file_open(&(struct module_request){.path = path}, &opened->file) != 0)
		return false;
	opened->cfi = cfi_new(opened->file.e_machine, &memory);
	assert_non_null(opened->cfi);
	return true;
}

static void ask_everything(struct opened *opened)
{
	const struct module_file *file = &opened->file;

	for (uint32_t i = 0; i < file->segment_count; i++)
		for (uint64_t k = 0; k < 0x2000; k += 3)
			assert_non_null(cfi_find(opened->cfi, file, file->segments[i].vaddr + k, NULL));
}

/* No SIGBUS when the file is cut short, before or between lookups. */
static void truncated_files(void **state)
{
	static const size_t cuts[] = {0, 64, 300, 2000, 4500};
	size_t n;
	char *bytes = read_file("tests/unit/stacks/x86_64-gcc.elf", &n);

	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		for (int used = 0; used < 2; used++) {
			struct opened opened;
			int fd;

			assert_true(from_memory(bytes, n, &fd, &opened));
			if (used)
				cfi_find(opened.cfi, &opened.file, 0x400300, NULL);
			assert_int_equal(ftruncate(fd, (off_t)cuts[i]), 0);
			ask_everything(&opened);
			shut(&opened);
			close(fd);
		}
	}
	free(bytes);
}

static void damaged_files(void **state)
{
	static const char *const files[] = {"tests/unit/stacks/x86_64-gcc.elf",
	    "tests/unit/stacks/x86_64-clang.elf", "tests/unit/stacks/x86_64-debug_frame.elf",
	    "tests/unit/stacks/aarch64-pac.elf"};

	srand(3);
	for (size_t f = 0; f < 4; f++) {
		size_t n;
		char *bytes = read_file(files[f], &n), *damaged = malloc(n);

		for (int round = 0; round < 60; round++) {
			struct opened opened;
			int fd, times = 1 + rand() % 20;

			memcpy(damaged, bytes, n);
			while (times--)
				damaged[(size_t)rand() % (rand() % 2 ? n : 0x800)] = (char)rand();
			if (from_memory(damaged, n, &fd, &opened)) {
				ask_everything(&opened);
				shut(&opened);
			}
			close(fd);
		}
		free(bytes);
		free(damaged);
	}
}

/* ---- entries libdw must never see */

static const struct {
	const char *name;
	bool fit;
	uint8_t code[16];
	size_t n;
	unsigned times; /* repeated */
} instructions[] = {
    {"none", true, {0}, 1, 1},
    {"usual ones", true, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x0b, 0x2e, 8, 0xc6}, 13, 1},
    {"expression", true, {0x0f, 3, 0x77, 8, 0x06, 0x10, 6, 2, 0x76, 0}, 10, 1},
    {"a register near 2^31", false, {0x05, 0xff, 0xff, 0xff, 0xff, 0x07, 1}, 7, 1},
    {"undefined register 300", false, {0x07, 0xac, 2}, 3, 1},
    {"states remembered without end", false, {0x0a}, 1, 100},
    {"state restored that was not remembered", false, {0x0b}, 1, 1},
    {"expression longer than the entry", false, {0x0f, 0x7f, 0}, 3, 1},
    {"operand missing", false, {0x0e}, 1, 1},
    {"unknown instruction", false, {0x3c}, 1, 1},
    {"number without end", false,
        {0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, 14, 1},
    {"SPARC's register window", false, {0x2d}, 1, 1},
};

static void entries_are_checked(void **state)
{
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		/* A CIE: version 1, "zR", code 1, data -8, return address 16, one byte of augmentation: pcrel
		 * sdata4. */
		uint8_t entries[512] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b};
		unsigned char e_ident[EI_NIDENT] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
		uint32_t cie_bytes = 17, fde_at, back;
		struct cfi_check_cost cost = {0};
		struct cfi_check_summary summary;

		fde_at = cie_bytes;
		entries[0] = (uint8_t)(cie_bytes - 4);
		back = fde_at + 4;
		memcpy(entries + fde_at + 4, &back, 4);
		/* Address, range, no augmentation data. */
		size_t at = fde_at + 8 + 9;
		for (unsigned k = 0; k < instructions[i].times; k++, at += instructions[i].n)
			memcpy(entries + at, instructions[i].code, instructions[i].n);
		uint32_t fde_bytes = (uint32_t)(at - fde_at - 4);
		memcpy(entries + fde_at, &fde_bytes, 4);
		Elf_Data data = {
		    .d_buf = entries, .d_size = at, .d_type = ELF_T_BYTE, .d_version = EV_CURRENT};
		if (cfi_check_entry(e_ident, EM_X86_64, &data, true, fde_at, &cost) != instructions[i].fit)
			fail_msg("%s", instructions[i].name);
		assert_true(cfi_check_entry(e_ident, EM_X86_64, &data, true, 0, &cost));
		assert_true(cfi_check_all(e_ident, EM_X86_64, &data, true, 10, &summary));
		assert_false(cfi_check_all(e_ident, EM_X86_64, &data, true, 1, &summary));
		/* What cfi_check_all() refused is made unusable. */
		assert_int_equal(
		    cfi_check_entry(e_ident, EM_X86_64, &data, true, fde_at, &cost), instructions[i].fit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
	    cmocka_unit_test(rows_written_by_hand),
	    cmocka_unit_test(expressions),
#endif
	    cmocka_unit_test(rows_are_what_libdw_says),
	    cmocka_unit_test(little_is_read_of_large_files),
	    cmocka_unit_test(truncated_files),
	    cmocka_unit_test(damaged_files),
	    cmocka_unit_test(entries_are_checked),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
