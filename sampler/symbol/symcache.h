/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols on disk, so that a library is searched once and not in every run. There is one cache file for each
 * ELF file (for each key of symbol.c: build id and identity of the file).
 *
 * A cache file is a header (magic, source id, CRC-32) and the bytes of symcodec.h. The source id identifies
 * the files that the symbols were read from: if a debug package is installed later, or a stripped copy has
 * the same build id, the source id differs and the entry is a miss. Files are written aside and renamed;
 * several samplers may share the folder. Everything read is verified: an entry with wrong owner, type, size,
 * checksum or content is a miss, and the next write replaces it. When the folder exceeds its limit, the least
 * recently used entries are removed.
 *
 * Listing the folder at each write would take longer than the write. So the file .sizes lists how many bytes
 * each write added, as int64_t. When their sum exceeds the limit, or the list has become long, the folder is
 * listed and .sizes starts again with its total. What another sampler writes during the listing is missing
 * from .sizes until the next listing.
 */
#ifndef SAMPLER_SYMBOL_SYMCACHE_H
#define SAMPLER_SYMBOL_SYMCACHE_H

#include <stddef.h>
#include <stdint.h>

enum { SYMCACHE_ENTRY_BYTES_MAX = 16 << 20 };
#define SYMCACHE_LIMIT_BYTES (128ull << 20)

/*
 * Writes the usual folder, $XDG_CACHE_HOME/heaptap or $HOME/.cache/heaptap, into path.
 * Returns 0, -ENOENT (neither variable is an absolute path) or -ENAMETOOLONG.
 */
int symcache_folder(char *path, size_t path_bytes);

/*
 * Reads the entry for one build id into malloc'd *bytes. Returns 0, -ENOENT (missing, or made from another
 * source), -EBADMSG (not an entry), or another -errno.
 */
int symcache_read(const char *folder, const uint8_t *build_id, size_t build_id_bytes, uint64_t source_id,
    uint8_t **bytes, size_t *byte_count);

/*
 * Replaces the entry, makes the folder if needed, and removes old entries beyond limit_bytes. Returns 0 or
 * -errno; a failure leaves the old entry or none, never a partial one.
 */
int symcache_write(const char *folder, uint64_t limit_bytes, const uint8_t *build_id, size_t build_id_bytes,
    uint64_t source_id, const uint8_t *bytes, size_t byte_count);

#endif
