/* SPDX-License-Identifier: Apache-2.0 */
/* The text for each error of decoding. */
#include "pprof/codec/decode_error.h"

#include <stddef.h>

const char *decode_error_string(enum decode_error error)
{
	static const char *const texts[DECODE_ERROR_COUNT] = {
	    [DECODE_OK] = "no error",
	    [DECODE_NO_MEMORY] = "not enough memory",
	    [DECODE_EMPTY] = "the file is empty",
	    [DECODE_TOO_LARGE] = "the profile takes too much memory",
	    [DECODE_TRUNCATED_GZIP] = "the gzip data is cut short",
	    [DECODE_DAMAGED_GZIP] = "the gzip data is damaged",
	    [DECODE_TRAILING_BYTES] = "there are bytes after the end of the gzip data",
	    [DECODE_NOT_A_PROFILE] = "not a pprof profile (no valid profile.proto message)",
	    [DECODE_CONCATENATED] = "several profiles in one file",
	    [DECODE_BAD_STRING_TABLE] = "the string table does not begin with the empty string",
	    [DECODE_BAD_STRING] = "a string index is outside the string table",
	    [DECODE_NO_SAMPLE_TYPE] = "there are samples but no sample types",
	    [DECODE_BAD_MAPPING_ID] = "a mapping's id is zero or used twice",
	    [DECODE_BAD_FUNCTION_ID] = "a function's id is zero or used twice",
	    [DECODE_BAD_LOCATION_ID] = "a location's id is zero or used twice",
	    [DECODE_NO_FUNCTION] = "a location names a function that does not exist",
	    [DECODE_NO_LOCATION] = "a sample names a location that does not exist",
	    [DECODE_BAD_VALUE_COUNT] = "a sample does not have one value per sample type",
	};

	return error < DECODE_ERROR_COUNT ? texts[error] : "unknown error";
}
