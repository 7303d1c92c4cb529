/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile in memory: builder and model in one.
 *
 * It can hold any profile.proto profile (ours, Go's, tcmalloc's), so all code that writes a profile fills one
 * of these, and all that reads profiles (report, diff, merge) reads these. The format itself is in
 * proto/profile.proto; encode.h and decode.h convert.
 *
 * The tables and how they refer to each other:
 *
 *	sample --- stack ---> location ---> mapping
 *	  |  values[types]        '-- lines ---> function
 *	  '- labels
 *
 * Ids of mappings, functions and locations count from 1 in the order they were added; 0 means none. They hold
 * in memory only: encode_profile() leaves out unused entries and numbers the rest 1..N again.
 *
 * Ownership: the profile copies everything it is given. Strings are interned (equal strings of one profile
 * are one pointer), made valid UTF-8 (each bad byte sequence, and NUL, becomes U+FFFD) and live until
 * profile_free(). Every other pointer handed out (lines, locations, values) is valid until the next add. A
 * NULL string counts as "".
 *
 * Errors are sticky, so that a builder need not look at every return value: after the first failed add
 * profile_error() says why (-ENOMEM, -EINVAL for an id or a count that cannot be right, -EOVERFLOW for more
 * than 2^32-1 of something) and encode_profile() refuses with the same value.
 *
 * One thread at a time.
 */
#ifndef PPROF_MODEL_PROFILE_H
#define PPROF_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/model/profile_location.h"

struct profile;

struct profile_value_type {
	const char *type; /* "inuse_space" */
	const char *unit; /* "bytes" */
};

/* What has been symbolized already for every location of a mapping; readers may symbolize the rest. */
enum profile_mapping_flags {
	PROFILE_HAS_FUNCTIONS = 1 << 0,
	PROFILE_HAS_FILENAMES = 1 << 1,
	PROFILE_HAS_LINE_NUMBERS = 1 << 2,
	PROFILE_HAS_INLINE_FRAMES = 1 << 3,
};

/*
 * A mapping whose addresses overlap another one's in the same profile is moved into this range. No processor
 * has user addresses there (x86-64 ends at 2^56 with five levels of page tables, aarch64 at 2^52) nor kernel
 * addresses, and as signed numbers they are positive.
 */
#define PROFILE_MOVED_START UINT64_C(0x1000000000000000)
#define PROFILE_MOVED_END   UINT64_C(0x8000000000000000)

struct profile_mapping {
	uint64_t start, limit; /* run-time addresses, [start, limit) */
	uint64_t file_offset;  /* bytes into the file at start */
	const char *filename;  /* as the target sees it, without " (deleted)" */
	const char *build_id;  /* lowercase hex of the whole NT_GNU_BUILD_ID, "" if there is none */
	unsigned int flags;    /* enum profile_mapping_flags */
};

struct profile_function {
	const char *name;        /* demangled, no parameters, with template arguments */
	const char *system_name; /* as in the symbol table; for C the same as name */
	const char *filename;    /* absolute */
	int64_t start_line;      /* 0 unknown */
};

/* A label is a string (str is not NULL) or a number with a unit ("" for none). */
struct profile_label {
	const char *key;
	const char *str;
	int64_t num;
	const char *unit;
};

struct profile_sample {
	const uint32_t *locations; /* ids, leaf first */
	size_t depth;
	const int64_t *values; /* one per sample type */
	size_t label_count;
};

/* NULL when memory has run out. profile_free(NULL) is fine. */
struct profile *profile_new(void);
void profile_free(struct profile *p);
int profile_error(const struct profile *p);

/* Memory that it takes, without malloc's overhead. */
size_t profile_bytes(const struct profile *p);

/* ---- building: the header */

/* All sample types come before the first sample (-EINVAL otherwise). 0 or -errno. */
int profile_add_sample_type(struct profile *p, const char *type, const char *unit);
void profile_set_default_sample_type(struct profile *p, const char *type);
/* period: mean sampling interval in the unit given, e.g. ("space", "bytes", 524288). */
void profile_set_period(struct profile *p, const char *type, const char *unit, int64_t period);
/* time_ns: UTC since the epoch. duration_ns: 0 on a snapshot, set on a delta only. */
void profile_set_time(struct profile *p, int64_t time_ns, int64_t duration_ns);
void profile_add_comment(struct profile *p, const char *text);
void profile_set_drop_frames(struct profile *p, const char *regex);
void profile_set_keep_frames(struct profile *p, const char *regex);
void profile_set_doc_url(struct profile *p, const char *url);

/* ---- building: the tables. Each returns the id, the old one for an equal entry, 0 on failure. */

/* The main executable's mapping comes first: readers take the program's name and build id from it. It is
 * written even if no location uses it; other mappings are written only if used. */
uint32_t profile_add_mapping(struct profile *p, const struct profile_mapping *mapping);
uint32_t profile_add_function(struct profile *p, const struct profile_function *function);
uint32_t profile_add_location(struct profile *p, const struct profile_location *location);

/* Gives a location lines, in place of those it has. Functions may still be added after that, locations not. 0
 * or -errno. */
int profile_name_location(
    struct profile *p, uint32_t location, const struct profile_line *lines, size_t count);

/*
 * Adds values to the sample with this stack and these labels (in any order). values has one entry per sample
 * type; sums saturate instead of wrapping. Labels that no reader shows are left out: an empty key, an empty
 * string, the number 0 without a unit. 0 or -errno.
 */
int profile_add_sample(struct profile *p, const uint32_t *locations, size_t depth, const int64_t *values,
    const struct profile_label *labels, size_t label_count);

/* Interns len bytes as above; for building from a file's own string table. NULL on failure. */
const char *profile_add_string(struct profile *p, const void *bytes, size_t len);

/*
 * Sets the flags of every mapping from its locations (those used by a sample that is not all zero, i.e. those
 * that get written): functions if every location has one; and if so, filenames and line numbers if some
 * location has them (they were looked up), inline frames if some location has more than one line. A mapping
 * without any used location gets no flag.
 */
void profile_compute_mapping_flags(struct profile *p);

/*
 * Reading what was added. Types, comments and samples by index from 0, the rest by id from 1; an
 * index out of range is the caller's bug. Strings are never NULL (except profile_label.str of a number).
 */

size_t profile_sample_type_count(const struct profile *p);
struct profile_value_type profile_sample_type(const struct profile *p, size_t index);
const char *profile_default_sample_type(const struct profile *p);
struct profile_value_type profile_period_type(const struct profile *p);
int64_t profile_period(const struct profile *p);
int64_t profile_time_ns(const struct profile *p);
int64_t profile_duration_ns(const struct profile *p);
size_t profile_comment_count(const struct profile *p);
const char *profile_comment(const struct profile *p, size_t index);
const char *profile_drop_frames(const struct profile *p);
const char *profile_keep_frames(const struct profile *p);
const char *profile_doc_url(const struct profile *p);

uint32_t profile_mapping_count(const struct profile *p);
struct profile_mapping profile_mapping(const struct profile *p, uint32_t id);
uint32_t profile_function_count(const struct profile *p);
struct profile_function profile_function(const struct profile *p, uint32_t id);
uint32_t profile_location_count(const struct profile *p);
struct profile_location profile_location(const struct profile *p, uint32_t id);
size_t profile_sample_count(const struct profile *p);
struct profile_sample profile_sample(const struct profile *p, size_t index);
struct profile_label profile_sample_label(const struct profile *p, size_t sample, size_t label);
bool profile_sample_is_zero(const struct profile *p, size_t index);

/* ---- copying a profile without its samples, for another profile with samples of the same stacks */

/* Types, period, times and comments. */
void profile_copy_header(struct profile *to, const struct profile *from);

/* Copies mappings and functions into a profile that has none. The ids stay the same, unless the source has
 * equal entries. See profile_error(). */
void profile_copy_functions(struct profile *to, const struct profile *from);

/* Copies mappings, functions and locations, likewise. */
void profile_copy_tables(struct profile *to, const struct profile *from);

#endif
