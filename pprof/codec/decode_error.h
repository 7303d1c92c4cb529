/* SPDX-License-Identifier: Apache-2.0 */
/* Why the bytes of a file are not a profile: the reasons. */
#ifndef PPROF_CODEC_DECODE_ERROR_H
#define PPROF_CODEC_DECODE_ERROR_H

enum decode_error {
	DECODE_OK,
	DECODE_NO_MEMORY,
	DECODE_EMPTY,     /* nothing in the file, or in the gzip in it */
	DECODE_TOO_LARGE, /* more than max_bytes, or than the text that goes with it */
	DECODE_TRUNCATED_GZIP,
	DECODE_DAMAGED_GZIP,     /* bad header, data, CRC or length */
	DECODE_TRAILING_BYTES,   /* after the gzip member */
	DECODE_NOT_A_PROFILE,    /* not protobuf, or a field has the wrong wire type */
	DECODE_CONCATENATED,     /* two profiles one after the other */
	DECODE_BAD_STRING_TABLE, /* entry 0 is not "" */
	DECODE_BAD_STRING,       /* index outside the string table */
	DECODE_NO_SAMPLE_TYPE,
	DECODE_BAD_MAPPING_ID, /* 0, or used twice */
	DECODE_BAD_FUNCTION_ID,
	DECODE_BAD_LOCATION_ID,
	DECODE_NO_FUNCTION,     /* a line's function does not exist */
	DECODE_NO_LOCATION,     /* a sample's location does not exist */
	DECODE_BAD_VALUE_COUNT, /* not one value per sample type */
	DECODE_ERROR_COUNT
};

#endif
