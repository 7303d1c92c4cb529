/* SPDX-License-Identifier: Apache-2.0 */
#include "push/base64.h"

void base64_encode(const void *bytes, size_t length, char *text, size_t text_bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = bytes;
	size_t to = 0;

	for (size_t i = 0; i < length && to + 5 <= text_bytes; i += 3) {
		unsigned int group = (unsigned int)at[i] << 16;

		group |= i + 1 < length ? (unsigned int)at[i + 1] << 8 : 0;
		group |= i + 2 < length ? at[i + 2] : 0;
		text[to++] = digits[group >> 18];
		text[to++] = digits[group >> 12 & 63];
		text[to++] = i + 1 < length ? digits[group >> 6 & 63] : '=';
		text[to++] = i + 2 < length ? digits[group & 63] : '=';
	}
	text[to] = '\0';
}
