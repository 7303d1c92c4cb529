/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/walk_table.h"

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
		atomic_store_explicit(&rows[at].rule, word, memory_order_release);
		atomic_store_explicit(&rows[at].pc, pc, memory_order_release);
		return true;
	}
	return false;
}

static struct walk_numbers *numbers_of(const struct walk_table *table)
{
	return &area_of(table)->numbers;
}

bool walk_table_is_ours(const struct walk_table *table, uint32_t number)
{
	return number > table->first && number <= walk_numbers_given(numbers_of(table));
}

uint32_t walk_table_number(struct walk_table *table, uint64_t hash)
{
	uint32_t number = walk_number_take(numbers_of(table), hash);

	return walk_table_is_ours(table, number) ? number : 0;
}

uint64_t walk_table_hash(const struct walk_table *table, uint32_t number)
{
	return atomic_load_explicit(&numbers_of(table)->of[number].hash, memory_order_relaxed);
}

void walk_table_tell(struct walk_table *table, uint32_t number, enum walk_number_state state)
{
	atomic_store_explicit(&numbers_of(table)->of[number].state, (uint32_t)state, memory_order_relaxed);
}

void walk_table_ask_again(struct walk_table *table, uint32_t number)
{
	walk_number_ask_again(numbers_of(table), number);
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

	*table = (struct walk_table){.region = region};
	table->generation = atomic_load_explicit(&area->later_generation, memory_order_relaxed);
	table->first = walk_numbers_given(&area->numbers);
	if (!table->first)
		return;
	walk_table_clear(table);
	for (size_t i = 0; i < WALK_STACK_ENTRIES; i++)
		atomic_store_explicit(&area->numbers.entry[i], 0, memory_order_release);
	/* For threads that have found one already. */
	for (uint32_t number = 1; number <= table->first; number++)
		walk_table_tell(table, number, WALK_NUMBER_UNUSED);
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

static struct tally read_count(const struct walk_count *count)
{
	/* The hook adds this last, and looks at the bit then. */
	const uint64_t objects_q16 = atomic_load(&count->objects_q16);

	return (struct tally){
	    .samples = atomic_load_explicit(&count->samples, memory_order_relaxed),
	    .bytes_q8 = atomic_load_explicit(&count->bytes_q8, memory_order_relaxed),
	    .objects_q16 = objects_q16,
	};
}

bool walk_table_drain(struct walk_table *table, const struct walk_drain *drain)
{
	struct walk_counts *counts = &area_of(table)->counts[drain->place];
	const uint32_t words = walk_numbers_given(numbers_of(table)) / 64;
	bool left = false;

	for (uint32_t word = 0; word <= words; word++) {
		uint64_t bits = drain->left[word];

		/* The bits first: what is added after this sets them again. */
		if (atomic_load_explicit(&counts->changed[word], memory_order_relaxed))
			bits |= atomic_exchange(&counts->changed[word], 0);
		drain->left[word] = 0;
		/* Only now: a number is drawn before its bit is set, perhaps a moment ago. */
		const uint32_t given = bits ? walk_numbers_given(numbers_of(table)) : 0;
		for (; bits; bits &= bits - 1) {
			uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(bits);

			if (number > table->first && number <= given &&
			    !drain->changed(drain->context, number, read_count(&counts->count[number])))
				drain->left[word] |= bits & -bits;
			/* drawn before we came, and used since */
			if (number >= 1 && number <= table->first)
				walk_table_tell(table, number, WALK_NUMBER_UNUSED);
		}
		left |= drain->left[word] != 0;
	}
	return left;
}
