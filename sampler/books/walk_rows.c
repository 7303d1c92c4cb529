/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/walk_rows.h"

#include "sampler/unwind/go_switch.h"

#include <string.h>

void walk_rows_open(struct walk_rows *rows, const struct region *region)
{
	const struct region_header *header = region_header(region);
	uint32_t count = *(const volatile uint32_t *)&header->start_files;

	walk_table_open(&rows->table, region);
	rows->start_count = count < REGION_START_FILES ? count : REGION_START_FILES;
	memcpy(rows->start_files, header->start_file, sizeof(rows->start_files));
	rows->no_later_files = header->attached_after_ns != 0;
}

void walk_rows_close(struct walk_rows *rows)
{
	for (size_t i = 0; i < rows->banned_count; i++)
		module_unref(rows->banned[i]);
}

static bool is_start_file(const struct walk_rows *rows, uint64_t pc)
{
	for (uint32_t i = 0; i < rows->start_count; i++)
		if (pc >= rows->start_files[i].start && pc < rows->start_files[i].end)
			return true;
	return false;
}

/* The libc unmaps its character set converters itself, not by the dlclose that has a hook. */
static bool is_banned(const struct walk_rows *rows, const struct module *module)
{
	if (strstr(module->path, "/gconv/"))
		return true;
	for (size_t i = 0; i < rows->banned_count; i++)
		if (rows->banned[i] == module)
			return true;
	return false;
}

static bool in_words(int32_t bytes, int32_t least, int32_t most)
{
	return bytes % (int32_t)sizeof(uint64_t) == 0 && bytes / (int32_t)sizeof(uint64_t) >= least &&
	    bytes / (int32_t)sizeof(uint64_t) <= most;
}

/* Writes libdw's rule in the terms of the table. False if it does not fit. */
static bool rule_of(const struct cfi_rule *rule, struct walk_rule *out)
{
	const struct regs_arch *arch = regs_arch_native();

	*out = (struct walk_rule){.ra_words = 0};
	if (rule->kind == CFI_END)
		return true;
	if (rule->kind != CFI_SIMPLE || rule->signal_frame || rule->ra_in_register ||
	    (rule->cfa_reg != arch->sp && rule->cfa_reg != arch->fp) ||
	    !in_words(rule->cfa_offset, INT32_MIN, INT32_MAX) || !in_words(rule->ra_offset, INT16_MIN, -1))
		return false;
	out->cfa_words = rule->cfa_offset / (int32_t)sizeof(uint64_t);
	out->from_fp = rule->cfa_reg == arch->fp;
	out->ra_words = (int16_t)(rule->ra_offset / (int32_t)sizeof(uint64_t));
	for (unsigned i = 0; i < arch->tracked_count; i++)
		if (arch->tracked[i] == arch->fp && rule->saved >> i & 1) {
			if (!in_words(rule->offset[i], INT16_MIN, -1))
				return false;
			out->fp_words = (int16_t)(rule->offset[i] / (int32_t)sizeof(uint64_t));
		}
	return true;
}

static const struct cfi_rule *frame_rule(struct maps *maps, const struct unwind_frame *frame)
{
	if (frame->module)
		return module_rule(frame->module, frame->vaddr);
	const struct map *map = maps_find(maps, frame->pc);
	return map ? maps_generated_rule(maps, map, frame->pc, regs_arch_native()->e_machine) : &cfi_no_rule;
}

static bool publish(struct walk_rows *rows, const struct unwind_frame *frame, struct walk_rule rule,
    bool may_be_later, bool *later)
{
	const bool of_later = !is_start_file(rows, frame->pc);

	*later |= of_later;
	return (may_be_later || !of_later) && walk_table_add_row(&rows->table, of_later, frame->pc + 1, rule);
}

/*
 * Publishes the row of a frame that a call is to return to. False: it cannot be published, or is a later
 * file's and must not. Code made at run time counts as a later file's. No dlclose ends it: where other code
 * has taken its place, the hook's walk by the old row leads to no return address with a row, or to a stack
 * that no dump confirms.
 */
static bool publish_row(struct walk_rows *rows, struct maps *maps, const struct unwind_frame *frame,
    bool may_be_later, bool *later)
{
	struct walk_rule rule;

	if (frame->activation || frame->step != UNWIND_STEP_CFI ||
	    (frame->module && is_banned(rows, frame->module)) || !rule_of(frame_rule(maps, frame), &rule))
		return false;
	return publish(rows, frame, rule, may_be_later, later);
}

static bool publish_switch(struct walk_rows *rows, struct maps *maps, const struct unwind_frame *frame,
    bool may_be_later, bool *later)
{
	struct go_switch found;

	return !is_banned(rows, frame->module) && go_switch_at(maps, frame->pc + 1, &found) &&
	    publish(rows, frame,
	        walk_go_rule(found.depth_word, found.has_record ? WALK_GO_RECORD : WALK_GO_RETURN_ADDRESS),
	        may_be_later, later);
}

/* The frames of a goroutine need no rows: the hook finds them by frame pointers. */
static bool publish_frame(
    struct walk_rows *rows, const struct walk_result *walk, size_t i, bool may_be_later, bool *later)
{
	const struct unwind_frame *frame = &walk->frames[i];

	if (!walk->go_switch || i < walk->go_switch)
		return publish_row(rows, walk->maps, frame, may_be_later, later);
	return i > walk->go_switch || publish_switch(rows, walk->maps, frame, may_be_later, later);
}

struct walk_rows_stack walk_rows_publish(
    struct walk_rows *rows, const struct walk_result *walk, bool may_be_later)
{
	struct walk_rows_stack published = {.later = false};
	uint64_t hash = WALK_HASH_BEGIN;

	const bool whole = walk->outcome == UNWIND_COMPLETE;

	if ((!whole && !walk->go_switch) || walk->count < 2 || walk->count > WALK_FRAMES_MAX)
		return published;
	for (size_t i = 1; i < walk->count; i++) {
		const struct unwind_frame *frame = &walk->frames[i];

		if (!publish_frame(rows, walk, i, may_be_later, &published.later))
			return published;
		if (frame->module != walk->frames[0].module)
			hash = walk_hash_step(hash, frame->pc + 1);
	}
	if (whole)
		published.hash = walk_hash_end(hash, published.later ? rows->table.generation + 1 : 0);
	return published;
}

void walk_rows_ban(struct walk_rows *rows, const struct region *region, struct module *module)
{
	walk_table_clear(&rows->table);
	if (module && rows->banned_count < WALK_ROWS_BANNED)
		rows->banned[rows->banned_count++] = module_ref(module);
	else
		atomic_store(&region_header(region)->walk, 0);
}
