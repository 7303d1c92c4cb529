/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the pprof tests: writes protobuf by hand, right or wrong, and builds one good heap profile.
 */
#ifndef HEAPTAP_TESTS_UNIT_PPROF_BYTES_H
#define HEAPTAP_TESTS_UNIT_PPROF_BYTES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "pprof/model/profile.h"

struct bytes {
	uint8_t data[16384];
	size_t len;
};

static inline void put(struct bytes *b, const void *data, size_t len)
{
	assert(len <= sizeof(b->data) - b->len);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static inline void put_varint(struct bytes *b, uint64_t value)
{
	uint8_t byte;

	for (; value >= 0x80; value >>= 7) {
		byte = (uint8_t)(value | 0x80);
		put(b, &byte, 1);
	}
	byte = (uint8_t)value;
	put(b, &byte, 1);
}

static inline void put_number(struct bytes *b, uint32_t field, uint64_t value)
{
	put_varint(b, (uint64_t)field << 3);
	put_varint(b, value);
}

static inline void put_bytes(struct bytes *b, uint32_t field, const void *data, size_t len)
{
	put_varint(b, (uint64_t)field << 3 | 2);
	put_varint(b, len);
	put(b, data, len);
}

static inline void put_string(struct bytes *b, uint32_t field, const char *text)
{
	put_bytes(b, field, text, strlen(text));
}

/* A message of numbers: pairs of field and value, ended by field 0. */
static inline void put_message(struct bytes *b, uint32_t field, const uint64_t *pairs)
{
	struct bytes message = {.len = 0};

	for (; pairs[0]; pairs += 2)
		put_number(&message, (uint32_t)pairs[0], pairs[1]);
	put_bytes(b, field, message.data, message.len);
}

#define PAIRS(...) ((const uint64_t[]){__VA_ARGS__, 0})

static inline void add_go_types(struct profile *p)
{
	profile_add_sample_type(p, "alloc_objects", "count");
	profile_add_sample_type(p, "alloc_space", "bytes");
	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_default_sample_type(p, "inuse_space");
	profile_set_period(p, "space", "bytes", 524288);
	profile_set_time(p, 1700000000000000000, 0);
	profile_add_comment(p, "heaptap test");
}

static inline uint32_t add_function(struct profile *p, const char *name, const char *filename)
{
	return profile_add_function(p, &(struct profile_function){name, name, filename, 1});
}

static inline uint32_t add_location(
    struct profile *p, uint32_t mapping, uint64_t address, uint32_t function, int64_t line)
{
	struct profile_line lines = {.function = function, .line = line};

	return profile_add_location(p,
	    &(struct profile_location){
	        .mapping = mapping, .address = address, .lines = &lines, .line_count = 1});
}

/*
 * main -> outer(inlined: inner) and main -> lib_call, two labels, two mappings that are used and one that is
 * not. Totals: alloc_objects 7, alloc_space 900, inuse_objects 3, inuse_space 300.
 */
static inline struct profile *heap_profile(void)
{
	struct profile *p = profile_new();
	struct profile_line inlined[2] = {{0}};
	uint32_t exe, lib, main_location, outer_location, lib_location;

	assert(p);
	add_go_types(p);
	exe = profile_add_mapping(
	    p, &(struct profile_mapping){0x400000, 0x500000, 0x1000, "/bin/app", "00ff", 0});
	profile_add_mapping(p, &(struct profile_mapping){0x600000, 0x700000, 0, "/lib/unused.so", "", 0});
	lib = profile_add_mapping(p, &(struct profile_mapping){0x7f0000, 0x800000, 0, "/lib/libx.so", "", 0});
	main_location = add_location(p, exe, 0x400010, add_function(p, "main", "/src/app.c"), 10);
	inlined[0] = (struct profile_line){add_function(p, "inner", "/src/app.c"), 3, 7};
	inlined[1] = (struct profile_line){add_function(p, "outer", "/src/app.c"), 5, 0};
	outer_location =
	    profile_add_location(p, &(struct profile_location){exe, 0x400020, inlined, 2, false});
	lib_location = add_location(p, lib, 0x7f0010, add_function(p, "lib_call", ""), 0);
	profile_add_sample(p, (uint32_t[]){outer_location, main_location}, 2, (int64_t[]){4, 400, 1, 100},
	    &(struct profile_label){.key = "bytes", .num = 100, .unit = "bytes"}, 1);
	profile_add_sample(p, (uint32_t[]){lib_location, main_location}, 2, (int64_t[]){3, 500, 2, 200},
	    (struct profile_label[]){
	        {.key = "thread_name", .str = "worker"}, {.key = "bytes", .num = 160, .unit = "bytes"}},
	    2);
	profile_compute_mapping_flags(p);
	return p;
}

#endif
