/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files whose rows are made to cost as much as they can: memory, time, and what other processes have of the
 * same file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/text/throttle.h"
#include "sampler/unwind/cfi.h"
#include "sampler/unwind/cfi_section.h"
#include "sampler/unwind/unwind.h"

#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum {
	KIB = 1024,
	MIB = 1024 * KIB,
	TABLE = 0x1000,      /* .eh_frame_hdr */
	CODE = 0x80000,      /* what the entries cover */
	EH_FRAME = 0x100000, /* a CIE, and CIE_BYTES after it the first FDE */
	CIE_BYTES = 22,
	FDE_HEAD_BYTES = 17, /* length, CIE, address, range, no augmentation data */
};

/* A file of nothing but rows: COUNT entries, each with its own instructions, for RANGE bytes of code. */
struct made {
	uint32_t count, range;
	uint32_t instruction_bytes; /* holes of the file (DW_CFA_nop) if `instructions` writes fewer */
	size_t (*instructions)(uint32_t i, uint8_t *to, size_t bytes);
};

struct opened {
	int fd;
	char path[48];
	struct module_file file;
	struct cfi *cfi;
};

static void write_at(int fd, uint64_t at, const void *from, size_t bytes)
{
	assert_int_equal(pwrite(fd, from, bytes, (off_t)at), bytes);
}

static void write_headers(int fd, const struct made *made, uint64_t file_bytes)
{
	Elf64_Ehdr ehdr = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_type = ET_DYN,
	    .e_machine = EM_X86_64,
	    .e_version = EV_CURRENT,
	    .e_phoff = sizeof(ehdr),
	    .e_ehsize = sizeof(ehdr),
	    .e_phentsize = sizeof(Elf64_Phdr),
	    .e_phnum = 2};
	Elf64_Phdr phdrs[] = {
	    {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = file_bytes, .p_memsz = file_bytes},
	    {.p_type = PT_GNU_EH_FRAME, .p_offset = TABLE, .p_vaddr = TABLE, .p_filesz = CODE - TABLE}};

	const struct {
		uint8_t formats[4];
		int32_t eh_frame;
		uint32_t count;
	} table = {{1, 0x1b, 0x03, 0x3b}, EH_FRAME - TABLE - 4, made->count};

	write_at(fd, 0, &ehdr, sizeof(ehdr));
	write_at(fd, sizeof(ehdr), phdrs, sizeof(phdrs));
	write_at(fd, TABLE, &table, sizeof(table));
}

/* CFA = rsp + 8, the return address at CFA - 8. */
static void write_cie(int fd)
{
	static const uint8_t cie[CIE_BYTES] = {CIE_BYTES - 4, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78,
	    16, 1, 0x1b, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};

	write_at(fd, EH_FRAME, cie, sizeof(cie));
}

static void write_fde(int fd, const struct made *made, uint32_t i)
{
	uint32_t stride = FDE_HEAD_BYTES + made->instruction_bytes;
	uint32_t at = EH_FRAME + CIE_BYTES + i * stride, start = CODE + i * made->range;
	const uint32_t head[] = {stride - 4, at + 4 - EH_FRAME, start - at - 8, made->range};
	const int32_t pair[] = {(int32_t)(start - TABLE), (int32_t)(at - TABLE)};
	uint8_t *code = malloc(made->instruction_bytes);

	write_at(fd, TABLE + 12 + i * sizeof(pair), pair, sizeof(pair));
	write_at(fd, at, head, sizeof(head));
	size_t n = made->instructions ? made->instructions(i, code, made->instruction_bytes) : 0;
	write_at(fd, at + FDE_HEAD_BYTES, code, n);
	free(code);
}

static void open_cfi(struct opened *opened, struct cfi_memory *memory)
{
	snprintf(opened->path, sizeof(opened->path), "/proc/self/fd/%d", opened->fd);
	assert_int_equal(module_file_open(&(struct module_request){.path = opened->path}, &opened->file), 0);
	opened->cfi = cfi_new(opened->file.e_machine, memory);
	assert_non_null(opened->cfi);
}

static void make(const struct made *made, struct cfi_memory *memory, struct opened *opened)
{
	uint64_t bytes =
	    EH_FRAME + CIE_BYTES + (uint64_t)made->count * (FDE_HEAD_BYTES + made->instruction_bytes) + 4;

	opened->fd = memfd_create("rows", MFD_CLOEXEC);
	assert_true(opened->fd >= 0);
	assert_int_equal(ftruncate(opened->fd, (off_t)bytes), 0);
	write_headers(opened->fd, made, bytes);
	write_cie(opened->fd);
	for (uint32_t i = 0; i < made->count; i++)
		write_fde(opened->fd, made, i);
	open_cfi(opened, memory);
}

static void shut(struct opened *opened)
{
	cfi_free(opened->cfi);
	module_file_close(&opened->file);
	close(opened->fd);
}

static const struct cfi_rule *find(struct opened *opened, uint32_t offset, struct throttle *budget)
{
	return cfi_find(opened->cfi, &opened->file, CODE + offset, budget);
}

/* ---- memory */

/* Each look-up needs 120 KiB of the file: together 60 MiB. No row is lost, for the file can be read again. */
static void copies_of_a_file_are_given_back(void **state)
{
	const struct made made = {.count = 512, .range = 16, .instruction_bytes = 120 * KIB};
	struct cfi_memory memory = {.max_bytes = 8 * MIB};
	struct opened opened;

	make(&made, &memory, &opened);
	for (uint32_t i = 0; i < made.count; i++) {
		assert_int_equal(find(&opened, 16 * i, NULL)->kind, CFI_SIMPLE);
		assert_true(memory.held_bytes <= memory.max_bytes);
	}
	struct cfi_usage usage;
	cfi_measure(opened.cfi, &usage);
	assert_true(usage.addresses == made.count && usage.copied_bytes < memory.max_bytes);
	shut(&opened);
	assert_int_equal(memory.held_bytes, 0);
}

/* DW_CFA_def_cfa_offset, another one in each entry: each row is a rule of its own. */
static size_t another_offset(uint32_t i, uint8_t *to, size_t bytes)
{
	assert_true(bytes >= 4);
	to[0] = DW_CFA_def_cfa_offset;
	to[1] = 0x80 | (i & 0x7f);
	to[2] = 0x80 | (i >> 7 & 0x7f);
	to[3] = i >> 14 & 0x7f;
	return 4;
}

static void rules_of_one_file_leave_room_for_others(void **state)
{
	const struct made made = {
	    .count = 16384, .range = 16, .instruction_bytes = 4, .instructions = another_offset};
	const struct made few = {.count = 1, .range = 16, .instruction_bytes = 4};
	struct cfi_memory memory = {.max_bytes = 768 * KIB};
	struct opened hog, other;
	uint32_t refused = 0;

	make(&made, &memory, &hog);
	for (uint32_t i = 0; i < made.count; i++) {
		const struct cfi_rule *rule = find(&hog, 16 * i, NULL);

		refused += rule == &cfi_unread_rule;
		assert_true(rule->kind == CFI_SIMPLE || rule == &cfi_unread_rule);
		assert_true(memory.held_bytes < memory.max_bytes);
	}
	assert_true(refused > 0);
	make(&few, &memory, &other);
	assert_int_equal(find(&other, 0, NULL)->kind, CFI_SIMPLE);
	/* Not remembered as missing: there is room again. */
	memory.max_bytes = 64 * MIB;
	assert_int_equal(find(&hog, 16 * (made.count - 1), NULL)->kind, CFI_SIMPLE);
	shut(&hog);
	shut(&other);
}

/* What compress(3) makes of so many zeros; the last byte is of their checksum. */
static uint8_t *pack(size_t bytes, uLongf *packed_bytes)
{
	*packed_bytes = compressBound(bytes);
	uint8_t *plain = calloc(1, bytes), *packed = malloc(*packed_bytes);
	assert_int_equal(compress(packed, packed_bytes, plain, bytes), Z_OK);
	free(plain);
	return packed;
}

/* A file with .debug_frame alone, compressed. */
static void make_section(const Elf64_Chdr *chdr, const uint8_t *packed, size_t packed_bytes,
    struct cfi_memory *memory, struct opened *opened)
{
	static const char names[] = "\0.debug_frame\0.shstrtab";
	enum { NAMES = 0x200, HEADERS = 0x300, DATA = 0x1000 };
	const Elf64_Shdr shdrs[] = {{0},
	    {.sh_name = 1,
	        .sh_type = SHT_PROGBITS,
	        .sh_flags = SHF_COMPRESSED,
	        .sh_offset = DATA,
	        .sh_size = sizeof(*chdr) + packed_bytes},
	    {.sh_name = 14, .sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = sizeof(names)}};
	const Elf64_Phdr phdr = {
	    .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = CODE, .p_memsz = 2 * CODE};
	const Elf64_Ehdr ehdr = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_type = ET_DYN,
	    .e_machine = EM_X86_64,
	    .e_version = EV_CURRENT,
	    .e_phoff = sizeof(ehdr),
	    .e_shoff = HEADERS,
	    .e_ehsize = sizeof(ehdr),
	    .e_phentsize = sizeof(phdr),
	    .e_phnum = 1,
	    .e_shentsize = sizeof(shdrs[0]),
	    .e_shnum = 3,
	    .e_shstrndx = 2};

	opened->fd = memfd_create("debug_frame", MFD_CLOEXEC);
	write_at(opened->fd, 0, &ehdr, sizeof(ehdr));
	write_at(opened->fd, sizeof(ehdr), &phdr, sizeof(phdr));
	write_at(opened->fd, NAMES, names, sizeof(names));
	write_at(opened->fd, HEADERS, shdrs, sizeof(shdrs));
	write_at(opened->fd, DATA, chdr, sizeof(*chdr));
	write_at(opened->fd, DATA + sizeof(*chdr), packed, packed_bytes);
	open_cfi(opened, memory);
}

/* BYTES zeros. */
static void make_compressed(size_t bytes, struct cfi_memory *memory, struct opened *opened)
{
	const Elf64_Chdr chdr = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = bytes, .ch_addralign = 1};
	uLongf packed_bytes;
	uint8_t *packed = pack(bytes, &packed_bytes);

	make_section(&chdr, packed, packed_bytes, memory, opened);
	free(packed);
}

static void small_files_do_not_unpack_to_large_sections(void **state)
{
	struct cfi_memory memory = {.max_bytes = 256 * MIB};
	struct opened opened;

	/* More than any file has. */
	make_compressed(17 * MIB, &memory, &opened);
	assert_ptr_equal(find(&opened, 0, NULL), &cfi_unread_rule); /* there may be rows */
	assert_true(memory.held_bytes < 64 * KIB);
	shut(&opened);
	/* More than is left. */
	memory.max_bytes = 4 * MIB;
	make_compressed(6 * MIB, &memory, &opened);
	assert_ptr_equal(find(&opened, 0, NULL), &cfi_unread_rule);
	assert_true(memory.held_bytes < 64 * KIB);
	shut(&opened);
}

/* ---- work */

static size_t remember_and_restore(uint32_t i, uint8_t *to, size_t bytes)
{
	/* A rule for the last register that is allowed makes each state as large as one can be. */
	static const uint8_t last[] = {DW_CFA_undefined, 0xff, 1};

	memcpy(to, last, sizeof(last));
	for (size_t at = sizeof(last); at + 2 <= bytes; at += 2) {
		to[at] = DW_CFA_remember_state;
		to[at + 1] = DW_CFA_restore_state;
	}
	return bytes;
}

static const struct made laborious = {
    .count = 1, .range = 64 * KIB, .instruction_bytes = 120 * KIB + 1, .instructions = remember_and_restore};

/* A budget that time does not fill: not a full one, whose time begins with the first look. */
static const struct throttle standing = {.left = CFI_WORK_BURST - 1, .filled_ns = UINT64_MAX};

static void a_process_has_a_budget_for_new_rows(void **state)
{
	struct cfi_memory memory = {.max_bytes = 256 * MIB};
	struct throttle first = standing, second = standing;
	struct opened opened;
	uint32_t n = 0;

	make(&laborious, &memory, &opened);
	while (n < laborious.range && find(&opened, n, &first)->kind == CFI_SIMPLE)
		n++;
	assert_in_range(n, 1, 1000);
	assert_ptr_equal(find(&opened, n, &first), &cfi_unread_rule);
	/* What is known costs nothing, and another process pays for itself. */
	assert_int_equal(find(&opened, 0, &first)->kind, CFI_SIMPLE);
	assert_null(cfi_known(opened.cfi, CODE + n));
	assert_int_equal(find(&opened, n, &second)->kind, CFI_SIMPLE);
	shut(&opened);
}

static void time_fills_the_budget(void **state)
{
	struct throttle budget = {0};

	assert_true(cfi_work_allows(&budget));
	assert_int_equal(budget.left, CFI_WORK_BURST);
	throttle_spend(&budget, CFI_WORK_BURST + 1);
	assert_int_equal(budget.left, -1);
	/* A second ago. */
	budget.filled_ns -= 1000000000;
	assert_true(cfi_work_allows(&budget));
	assert_in_range(budget.left, 1000000 * CFI_WORK_PER_US - 1, CFI_WORK_BURST);
}

/* A stack of 4,096 return addresses, each another one. */
static void one_stack_takes_no_longer_than_its_budget(void **state)
{
	static uint64_t words[4096];
	static struct unwind_frame frames[8192];
	struct cfi_memory memory = {.max_bytes = 256 * MIB};
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, true);
	struct opened opened;
	struct regs regs = {.pc = CODE};
	size_t n;

	make(&laborious, &memory, &opened);
	struct map_range range = {.len = EH_FRAME, .prot = PROT_READ | PROT_EXEC, .path = opened.path};
	range.start = 0x400000;
	assert_int_equal(maps_add(maps, &range), 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = range.start + CODE + 2 + 8 * i;
	regs.pc += range.start;
	regs.r[regs_x86_64.sp] = 0x7000;
	regs.known = UINT64_C(1) << regs_x86_64.sp;
	*maps_cfi_work(maps) = standing;
	const struct unwind_input in = {.arch = &regs_x86_64,
	    .regs = &regs,
	    .maps = maps,
	    .stack_address = 0x7000,
	    .stack = words,
	    .stack_bytes = sizeof(words),
	    .stack_want = sizeof(words)};
	assert_int_equal(unwind_stack(&in, frames, 8192, &n), UNWIND_UNREAD_CFI);
	assert_in_range(n, 2, 1000);
	maps_free(maps);
	modules_free(store);
	shut(&opened);
}

/* One look-up, and what it costs the process. */
static int64_t cost_of_nothing(struct opened *opened)
{
	struct throttle budget = standing;

	assert_ptr_equal(find(opened, 0, &budget), &cfi_no_rule);
	return standing.left - budget.left;
}

/* A file of 16 KiB whose section is wrong, which its last byte shows: inflated as one that is right. */
static void what_is_inflated_in_vain_is_paid_for(void **state)
{
	const Elf64_Chdr chdr = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 16 * MIB, .ch_addralign = 1};
	struct cfi_memory memory = {.max_bytes = 256 * MIB};
	struct opened opened;
	uLongf packed_bytes;
	uint8_t *packed = pack(chdr.ch_size, &packed_bytes);

	packed[packed_bytes - 1] ^= 1;
	make_section(&chdr, packed, packed_bytes, &memory, &opened);
	assert_true(cost_of_nothing(&opened) >= 16 * MIB);
	shut(&opened);
	free(packed);
}

/* Or compressed in a way that is not known. */
static void what_is_read_in_vain_is_paid_for(void **state)
{
	const Elf64_Chdr chdr = {.ch_type = ELFCOMPRESS_LOPROC, .ch_size = 1, .ch_addralign = 1};
	const size_t bytes = 16 * MIB - sizeof(chdr);
	struct cfi_memory memory = {.max_bytes = 256 * MIB};
	struct opened opened;
	uint8_t *zeros = calloc(1, bytes);

	make_section(&chdr, zeros, bytes, &memory, &opened);
	assert_true(cost_of_nothing(&opened) >= 16 * MIB / 8);
	shut(&opened);
	free(zeros);
}

/* The instructions of a CIE are run for each of its FDEs. */
static void shared_instructions_are_not_walked_without_end(void **state)
{
	enum { LONG_CIE = 64 * KIB, FDES = 4096, FDE = 20 };
	static uint8_t entries[LONG_CIE + FDES * FDE] = {
	    0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b};
	const unsigned char e_ident[EI_NIDENT] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
	uint32_t word = LONG_CIE - 4;
	struct cfi_check_summary summary;
	Elf_Data data = {
	    .d_buf = entries, .d_size = sizeof(entries), .d_type = ELF_T_BYTE, .d_version = EV_CURRENT};

	memcpy(entries, &word, 4);
	for (uint32_t at = LONG_CIE; at < sizeof(entries); at += FDE) {
		const uint32_t head[] = {FDE - 4, at + 4, 0, 1};

		memcpy(entries + at, head, sizeof(head));
	}
	assert_false(cfi_check_all(e_ident, EM_X86_64, &data, true, FDES + 1, &summary));
	assert_true(summary.entries < FDES);
}

/* ---- what stays */

/* CFA = *(rsp + 16) + 8 */
static size_t expression(uint32_t i, uint8_t *to, size_t bytes)
{
	static const uint8_t code[] = {
	    DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 16, DW_OP_deref, DW_OP_plus_uconst, 8};

	memcpy(to, code, sizeof(code));
	return sizeof(code);
}

/* Else an address that is forgotten and met again would take a place each time, until no row that is not
 * plain has one. */
static void odd_rules_are_kept_once(void **state)
{
	const struct made made = {
	    .count = 2, .range = 4096, .instruction_bytes = 8, .instructions = expression};
	struct cfi_memory memory = {.max_bytes = 256 * MIB};
	struct opened opened;
	struct cfi_usage usage;

	make(&made, &memory, &opened);
	for (uint32_t i = 0; i < 2 * made.range; i++)
		assert_int_equal(find(&opened, i, NULL)->kind, CFI_ODD);
	cfi_measure(opened.cfi, &usage);
	assert_int_equal(usage.addresses, 2 * made.range);
	assert_int_equal(usage.odd, 1);
	shut(&opened);
}

static void what_cannot_be_read_is_not_remembered(void **state)
{
	const struct made made = {.count = 1, .range = 16, .instruction_bytes = 4};
	struct cfi_memory memory = {.max_bytes = 256 * MIB};
	struct opened opened;

	make(&made, &memory, &opened);
	struct module_file closed = opened.file;
	closed.fd = -1;
	assert_ptr_equal(cfi_find(opened.cfi, &closed, CODE, NULL), &cfi_unread_rule);
	assert_int_equal(find(&opened, 0, NULL)->kind, CFI_SIMPLE);
	/* What has been copied needs no file. */
	assert_int_equal(cfi_find(opened.cfi, &closed, CODE + 1, NULL)->kind, CFI_SIMPLE);
	assert_ptr_equal(find(&opened, 16, NULL), &cfi_no_rule);
	shut(&opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(copies_of_a_file_are_given_back),
	    cmocka_unit_test(rules_of_one_file_leave_room_for_others),
	    cmocka_unit_test(small_files_do_not_unpack_to_large_sections),
	    cmocka_unit_test(a_process_has_a_budget_for_new_rows),
	    cmocka_unit_test(time_fills_the_budget),
	    cmocka_unit_test(one_stack_takes_no_longer_than_its_budget),
	    cmocka_unit_test(what_is_inflated_in_vain_is_paid_for),
	    cmocka_unit_test(what_is_read_in_vain_is_paid_for),
	    cmocka_unit_test(shared_instructions_are_not_walked_without_end),
	    cmocka_unit_test(odd_rules_are_kept_once),
	    cmocka_unit_test(what_cannot_be_read_is_not_remembered),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
