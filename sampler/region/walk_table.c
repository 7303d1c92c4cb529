/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/region/walk_table.h"

#include <string.h>

/* Not kept: region_abandoned() may map the region at another address. */
static struct walk_area *area_of(const struct walk_table *table)
{
	return region_walk(table->region);
}

static struct walk_row *rows_of(const struct walk_table *table, bool later, size_t *entries)
{
	*entries = later ? WALK_LATER_ROWS : WALK_ROWS;
	return later ? area_of(table)->later : area_of(table)->rows;
}

bool walk_table_add_row(struct walk_table *table, bool later, uint64_t pc, struct walk_rule rule)
{
	size_t entries, n;
	struct walk_row *rows = rows_of(table, later, &entries);
	size_t at = walk_place_of(pc, entries);
	uint64_t word;
	memcpy(&word, &rule, sizeof(word));
	for (n = 0; n < WALK_PROBES; n++, at = (at + 1) & (entries - 1)) {
		uint64_t there = atomic_load_explicit(&rows[at].pc, memory_order_relaxed);
		if (there == pc)
			return true;
		if (there)
			continue;
		atomic_store_explicit(&rows[at].rule, word, memory_order_relaxed);
		atomic_store_explicit(&rows[at].pc, pc, memory_order_release);
		return true;
	}
	table->refused++;
	return false;
}

uint32_t walk_table_add_stack(struct walk_table *table, uint64_t hash)
{
	struct walk_stack *stacks = area_of(table)->stacks;
	size_t at = walk_place_of(hash, WALK_STACK_ENTRIES);
	for (size_t n = 0; n < WALK_PROBES; n++, at = (at + 1) & (WALK_STACK_ENTRIES - 1)) {
		uint64_t there = atomic_load_explicit(&stacks[at].hash, memory_order_relaxed);
		uint64_t number = atomic_load_explicit(&stacks[at].number, memory_order_relaxed);
		if (there == hash)
			return number >= 1 && number <= table->stack_count ? (uint32_t)number : 0;
		if (there || table->stack_count + 1 >= WALK_STACKS)
			continue;
		atomic_store_explicit(&stacks[at].number, ++table->stack_count, memory_order_relaxed);
		atomic_store_explicit(&area_of(table)->stack_count, table->stack_count, memory_order_relaxed);
		atomic_store_explicit(&stacks[at].hash, hash, memory_order_release);
		return table->stack_count;
	}
	table->refused++;
	return 0;
}

static void clear_rows(struct walk_row *rows, size_t entries)
{
	for (size_t i = 0; i < entries; i++)
		if (atomic_load_explicit(&rows[i].pc, memory_order_relaxed))
			atomic_store_explicit(&rows[i].pc, 0, memory_order_release);
}

void walk_table_clear(struct walk_table *table)
{
	clear_rows(area_of(table)->rows, WALK_ROWS);
	walk_table_clear_later(table);
}

void walk_table_clear_later(struct walk_table *table)
{
	clear_rows(area_of(table)->later, WALK_LATER_ROWS);
}

void walk_table_open(struct walk_table *table, const struct region *region)
{
	struct walk_area *area = region_walk(region);
	uint64_t given_out = atomic_load_explicit(&area->stack_count, memory_order_relaxed);
	*table = (struct walk_table){.region = region};
	table->generation = atomic_load_explicit(&area->later_generation, memory_order_relaxed);
	if (!given_out)
		return;
	table->stack_count = given_out < WALK_STACKS ? (uint32_t)given_out : WALK_STACKS;
	walk_table_clear(table);
	for (size_t i = 0; i < WALK_STACK_ENTRIES; i++)
		atomic_store_explicit(&area->stacks[i].hash, 0, memory_order_release);
}

bool walk_table_is_stale(const struct walk_table *table, uint64_t *generation)
{
	*generation = atomic_load_explicit(&area_of(table)->generation, memory_order_acquire);
	return *generation != table->generation &&
	    atomic_load_explicit(&area_of(table)->unmapping, memory_order_acquire) == 0;
}

void walk_table_renew(struct walk_table *table, uint64_t generation)
{
	table->generation = generation;
	atomic_store_explicit(&area_of(table)->later_generation, generation, memory_order_release);
}

bool walk_table_takes_later(const struct walk_table *table)
{
	return atomic_load_explicit(&area_of(table)->generation, memory_order_acquire) == table->generation;
}

void walk_table_drain(const struct walk_table *table, uint32_t place,
    void (*changed)(void *context, uint32_t stack, struct tally count), void *context)
{
	struct walk_counts *counts = &area_of(table)->counts[place];
	for (uint32_t word = 0; word <= table->stack_count / 64; word++) {
		uint64_t bits = atomic_load_explicit(&counts->changed[word], memory_order_relaxed);
		if (!bits)
			continue;
		/* The bits first: what is added after this sets them again. */
		bits = atomic_exchange_explicit(&counts->changed[word], 0, memory_order_acq_rel);
		for (; bits; bits &= bits - 1) {
			uint32_t stack = word * 64 + (uint32_t)__builtin_ctzll(bits);
			const struct walk_count *count = &counts->count[stack];
			const struct tally now = {
			    .samples = atomic_load_explicit(&count->samples, memory_order_acquire),
			    .bytes_q8 = atomic_load_explicit(&count->bytes_q8, memory_order_relaxed),
			    .objects_q16 = atomic_load_explicit(&count->objects_q16, memory_order_relaxed),
			};
			if (stack >= 1 && stack <= table->stack_count)
				changed(context, stack, now);
		}
	}
}
