/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/cfi_section.h"

#include <dwarf.h>
#include <string.h>

/* DW_CFA_hi_user, which libdw refuses to run. */
enum { UNUSABLE = 0x3f };

/* Work for all entries together, as a multiple of the section's size: the instructions of a CIE are read for
 * each of its FDEs. */
enum { READS_MAX = 8 };

struct cursor {
	const uint8_t *at, *end;
};

static bool skip(struct cursor *c, uint64_t n)
{
	if (n > (uint64_t)(c->end - c->at))
		return false;
	c->at += n;
	return true;
}

static bool read_uleb(struct cursor *c, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; c->at < c->end && shift < 70; shift += 7) {
		uint8_t byte = *c->at++;

		if (shift < 64)
			*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool skip_leb(struct cursor *c)
{
	uint64_t ignored;

	return read_uleb(c, &ignored);
}

static bool skip_register(struct cursor *c)
{
	uint64_t number;

	return read_uleb(c, &number) && number < CFI_CHECK_REGISTERS;
}

static bool skip_block(struct cursor *c, struct cfi_check_cost *cost)
{
	uint64_t n;

	if (!read_uleb(c, &n) || n > CFI_CHECK_EXPRESSION_BYTES || !skip(c, n))
		return false;
	cost->expression_bytes += n;
	return true;
}

/* A pointer in one of the DW_EH_PE_* formats. */
static bool skip_pointer(struct cursor *c, uint8_t encoding)
{
	if (encoding == DW_EH_PE_omit)
		return true;
	if ((encoding & 0x70) > DW_EH_PE_funcrel)
		return false;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
	case DW_EH_PE_signed:
		return skip(c, 8);
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return skip(c, 4);
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return skip(c, 2);
	case DW_EH_PE_uleb128:
	case DW_EH_PE_sleb128:
		return skip_leb(c);
	default:
		return false;
	}
}

static bool check_extended(struct cursor *c, uint8_t opcode, uint16_t e_machine, uint8_t encoding,
    int *remembered, struct cfi_check_cost *cost)
{
	switch (opcode) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc:
		return skip_pointer(c, encoding);
	case DW_CFA_advance_loc1:
		return skip(c, 1);
	case DW_CFA_advance_loc2:
		return skip(c, 2);
	case DW_CFA_advance_loc4:
		return skip(c, 4);
	case DW_CFA_MIPS_advance_loc8:
		return skip(c, 8);
	case DW_CFA_remember_state:
		cost->remembered++;
		return ++*remembered <= CFI_CHECK_REMEMBERED;
	case DW_CFA_restore_state:
		return --*remembered >= 0;
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_def_cfa_register:
		return skip_register(c);
	case DW_CFA_register:
		return skip_register(c) && skip_register(c);
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_GNU_negative_offset_extended:
		return skip_register(c) && skip_leb(c);
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_GNU_args_size:
		return skip_leb(c);
	case DW_CFA_def_cfa_expression:
		return skip_block(c, cost);
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		return skip_register(c) && skip_block(c, cost);
	case DW_CFA_GNU_window_save:
		/* On aarch64 DW_CFA_AARCH64_negate_ra_state, which libdw skips; we drop authentication codes
		 * by mask. */
		return e_machine == EM_AARCH64;
	default:
		return false;
	}
}

static bool check_instructions(
    struct cursor c, uint16_t e_machine, uint8_t encoding, struct cfi_check_cost *cost)
{
	int remembered = 0;

	if (c.end - c.at > CFI_CHECK_INSTRUCTION_BYTES)
		return false;
	cost->instruction_bytes += (uint64_t)(c.end - c.at);
	while (c.at < c.end) {
		uint8_t opcode = *c.at++;
		bool ok;

		switch (opcode & 0xc0) {
		case DW_CFA_advance_loc:
		case DW_CFA_restore:
			ok = true;
			break;
		case DW_CFA_offset:
			ok = skip_leb(&c);
			break;
		default:
			ok = check_extended(&c, opcode, e_machine, encoding, &remembered, cost);
		}
		if (!ok)
			return false;
	}
	return true;
}

/* What a CIE says about its FDEs. */
struct cie {
	uint8_t encoding;
	bool sized;      /* FDEs have augmentation data with its length in front */
	size_t fde_data; /* bytes of augmentation data without a length */
};

/* ENTRY's encoding of addresses, from its augmentation. False if the augmentation has an unknown form. */
static bool parse_augmentation(const Dwarf_CIE *entry, struct cie *cie)
{
	const char *augmentation = entry->augmentation;
	struct cursor c = {entry->augmentation_data, entry->initial_instructions};

	memset(cie, 0, sizeof(*cie));
	cie->encoding = DW_EH_PE_absptr;
	if (augmentation[0] == 0)
		return true;
	if (augmentation[0] != 'z' || !entry->augmentation_data)
		return false;
	cie->sized = true;
	c.end = c.at + entry->augmentation_data_size;
	if (c.end > entry->initial_instructions)
		return false;
	for (const char *p = augmentation + 1; *p; p++) {
		uint8_t byte = c.at < c.end ? *c.at : 0;

		if (*p == 'S' || *p == 'B')
			continue;
		if (c.at == c.end)
			return false;
		c.at++;
		if (*p == 'R')
			cie->encoding = byte;
		else if (*p == 'P' ? !skip_pointer(&c, byte) : *p != 'L')
			return false;
	}
	return true;
}

static bool check_cie(
    uint16_t e_machine, const Dwarf_CIE *entry, struct cie *cie, struct cfi_check_cost *cost)
{
	struct cursor c = {entry->initial_instructions, entry->initial_instructions_end};

	return parse_augmentation(entry, cie) && entry->return_address_register < CFI_CHECK_REGISTERS &&
	    check_instructions(c, e_machine, cie->encoding, cost);
}

static bool check_fde(
    uint16_t e_machine, const Dwarf_FDE *entry, const struct cie *cie, struct cfi_check_cost *cost)
{
	struct cursor c = {entry->start, entry->end};
	uint64_t n = 0;

	/* The range has the format of the address, but is never relative. */
	return skip_pointer(&c, cie->encoding) && skip_pointer(&c, cie->encoding & 0x0f) &&
	    (!cie->sized || read_uleb(&c, &n)) && skip(&c, n) &&
	    check_instructions(c, e_machine, cie->encoding, cost);
}

bool cfi_check_entry(const unsigned char *e_ident, uint16_t e_machine, Elf_Data *data, bool eh,
    uint64_t offset, struct cfi_check_cost *cost)
{
	Dwarf_CFI_Entry entry, parent;
	Dwarf_Off next;
	struct cie cie;

	if (offset >= data->d_size || dwarf_next_cfi(e_ident, data, eh, offset, &next, &entry) != 0)
		return false;
	if (dwarf_cfi_cie_p(&entry))
		return check_cie(e_machine, &entry.cie, &cie, cost);
	if (entry.fde.CIE_pointer >= data->d_size ||
	    dwarf_next_cfi(e_ident, data, eh, entry.fde.CIE_pointer, &next, &parent) != 0 ||
	    !dwarf_cfi_cie_p(&parent))
		return false;
	return check_cie(e_machine, &parent.cie, &cie, cost) && check_fde(e_machine, &entry.fde, &cie, cost);
}

static void spoil(Elf_Data *data, const Dwarf_CFI_Entry *entry)
{
	const uint8_t *start = dwarf_cfi_cie_p(entry) ? entry->cie.initial_instructions : entry->fde.start;
	const uint8_t *end = dwarf_cfi_cie_p(entry) ? entry->cie.initial_instructions_end : entry->fde.end;

	memset(
	    (uint8_t *)data->d_buf + (start - (const uint8_t *)data->d_buf), UNUSABLE, (size_t)(end - start));
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool cfi_check_all(const unsigned char *e_ident, uint16_t e_machine, Elf_Data *data, bool eh,
    size_t entries_max, struct cfi_check_summary *summary)
{
	struct cfi_check_cost *largest = &summary->largest;
	Dwarf_Off offset = 0, next;
	uint64_t read_bytes = 0;

	*summary = (struct cfi_check_summary){0};
	while (offset < data->d_size) {
		struct cfi_check_cost cost = {0};
		Dwarf_CFI_Entry entry;

		next = offset;
		int result = dwarf_next_cfi(e_ident, data, eh, offset, &next, &entry);
		if (result > 0)
			break;
		/* libdw too skips an unreadable entry if it knows the entry's length. */
		if (result < 0 && next <= offset)
			return false;
		if (++summary->entries > entries_max || read_bytes / READS_MAX > data->d_size)
			return false;
		if (result == 0 && !cfi_check_entry(e_ident, e_machine, data, eh, offset, &cost))
			spoil(data, &entry);
		read_bytes += cost.instruction_bytes;
		largest->instruction_bytes = larger(largest->instruction_bytes, cost.instruction_bytes);
		largest->remembered = larger(largest->remembered, cost.remembered);
		largest->expression_bytes = larger(largest->expression_bytes, cost.expression_bytes);
		if (next <= offset)
			return false;
		offset = next;
	}
	return true;
}
