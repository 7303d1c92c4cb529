/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/codec/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "pprof/table/array.h"

/* zlib counts in unsigned int; larger buffers are passed in pieces. */
#define PIECE_BYTES  ((size_t)1 << 30)
#define GZIP_WRAPPER 16 /* added to the window bits: a gzip header and trailer instead of zlib's */

static uInt piece(size_t left)
{
	return (uInt)(left < PIECE_BYTES ? left : PIECE_BYTES);
}

static int deflate_all(
    z_stream *z, const uint8_t *data, size_t len, uint8_t *out, size_t room, size_t *out_len)
{
	size_t written = 0;
	int status;

	do {
		uInt in_piece = piece(len), out_piece = piece(room - written);

		z->next_in = (Bytef *)data;
		z->avail_in = in_piece;
		z->next_out = out + written;
		z->avail_out = out_piece;
		status = deflate(z, in_piece == len ? Z_FINISH : Z_NO_FLUSH);
		data += in_piece - z->avail_in;
		len -= in_piece - z->avail_in;
		written += out_piece - z->avail_out;
	} while (status == Z_OK);
	*out_len = written;
	return status == Z_STREAM_END ? 0 : -EIO;
}

int gzip_encode(const void *data, size_t len, int level, uint8_t **out, size_t *out_len)
{
	z_stream z = {0};
	uint8_t *bytes;
	size_t room;
	int err;

	if (level < 1 || level > 9)
		return -EINVAL;
	if (deflateInit2(&z, level, Z_DEFLATED, MAX_WBITS + GZIP_WRAPPER, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	room = deflateBound(&z, len);
	bytes = malloc(room);
	err = bytes ? deflate_all(&z, data, len, bytes, room, out_len) : -ENOMEM;
	deflateEnd(&z);
	if (err) {
		free(bytes);
		return err;
	}
	*out = bytes; /* deflate has not touched the pages behind *out_len, so they take no memory */
	return 0;
}

bool gzip_detect(const void *data, size_t len)
{
	const uint8_t *bytes = data;

	return len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

struct output {
	uint8_t *bytes;
	size_t len, capacity, max_bytes;
};

/* One step of inflate(). The output buffer grows with the bytes that are really decompressed, never with the
 * size that the file claims. Returns zlib's status; *err is set if no memory can be allocated. */
static int inflate_step(z_stream *z, struct output *out, int *err)
{
	enum { STEP_BYTES = 64 * 1024 };
	uInt room;
	int status;

	*err = array_reserve(&out->bytes, &out->capacity, out->len + STEP_BYTES, 1);
	if (*err)
		return Z_MEM_ERROR;
	room = piece(out->capacity - out->len);
	z->next_out = out->bytes + out->len;
	z->avail_out = room;
	status = inflate(z, Z_NO_FLUSH);
	out->len += room - z->avail_out;
	if (out->len > out->max_bytes)
		*err = -EFBIG;
	return status;
}

/* Inflates the member that starts at data; *used is its length. */
static int inflate_member(z_stream *z, const uint8_t *data, size_t len, struct output *out, size_t *used)
{
	size_t left = len;
	int err = 0, status;

	do {
		uInt in_piece = piece(left);
		size_t out_before = out->len;

		z->next_in = (Bytef *)(data + (len - left));
		z->avail_in = in_piece;
		status = inflate_step(z, out, &err);
		left -= in_piece - z->avail_in;
		if (err)
			return err;
		if (status == Z_BUF_ERROR && !left && out->len == out_before)
			return -ENODATA;
	} while (status == Z_OK || status == Z_BUF_ERROR);
	*used = len - left;
	if (status == Z_STREAM_END)
		return 0;
	return status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static int inflate_members(
    z_stream *z, const uint8_t *data, size_t len, struct output *out, struct gzip_info *info)
{
	size_t used;
	int err;

	do {
		err = inflate_member(z, data, len, out, &used);
		if (err)
			return err;
		info->member_count++;
		data += used;
		len -= used;
		if (inflateReset(z) != Z_OK)
			return -EBADMSG;
	} while (gzip_detect(data, len));
	info->trailing_bytes = len;
	return 0;
}

int gzip_decode(
    const void *data, size_t len, size_t max_bytes, uint8_t **out, size_t *out_len, struct gzip_info *info)
{
	struct output output = {.max_bytes = max_bytes};
	struct gzip_info seen = {0};
	z_stream z = {0};
	int err;

	if (!gzip_detect(data, len))
		return len < 2 ? -ENODATA : -EBADMSG;
	if (inflateInit2(&z, MAX_WBITS + GZIP_WRAPPER) != Z_OK)
		return -ENOMEM;
	err = inflate_members(&z, data, len, &output, &seen);
	inflateEnd(&z);
	if (err) {
		free(output.bytes);
		return err;
	}
	if (info)
		*info = seen;
	*out = output.bytes;
	*out_len = output.len;
	return 0;
}
