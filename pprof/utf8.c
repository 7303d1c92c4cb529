/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Length of the sequence at s, and whether it is well formed; for a broken one the length of the part that
 * could have begun a character (at least 1). The ranges of the second byte are RFC 3629's table: they alone
 * exclude overlong forms (E0, F0), surrogates (ED) and what is beyond U+10FFFF (F4).
 */
static size_t sequence(const unsigned char *s, size_t len, bool *valid)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t need, i;

	*valid = false;
	if (s[0] < 0x80) {
		*valid = true;
		return 1;
	}
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 1;
	need = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	for (i = 1; i < need; i++) {
		if (i >= len || s[i] < low || s[i] > high)
			return i;
		low = 0x80;
		high = 0xbf;
	}
	*valid = true;
	return need;
}

size_t utf8_valid_prefix(const void *bytes, size_t len)
{
	const unsigned char *s = bytes;
	size_t at = 0;

	while (at < len) {
		uint64_t word;
		size_t n;
		bool valid;

		if (len - at >= sizeof(word)) {
			memcpy(&word, s + at, sizeof(word));
			if (!(word & 0x8080808080808080ULL)) {
				at += sizeof(word);
				continue;
			}
		}
		n = sequence(s + at, len - at, &valid);
		if (!valid)
			return at;
		at += n;
	}
	return at;
}

size_t utf8_sanitize(char *out, const void *bytes, size_t len)
{
	static const char replacement[] = "\xef\xbf\xbd";
	const unsigned char *s = bytes;
	size_t at = 0, written = 0;

	while (at < len) {
		bool valid;
		size_t n = sequence(s + at, len - at, &valid);

		if (valid && s[at]) {
			memcpy(out + written, s + at, n);
			written += n;
		} else {
			memcpy(out + written, replacement, 3);
			written += 3;
		}
		at += n;
	}
	return written;
}

size_t utf8_control(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	if (s[0] < 0x20 || s[0] == 0x7f)
		return s[0] ? 1 : 0;
	if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0)
		return 2;
	if (s[0] == 0xe2 && s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae)
		return 3;
	if (s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)
		return 3;
	return 0;
}

const char *utf8_put(FILE *out, const char *text, char instead)
{
	size_t control = utf8_control(text);

	if (control) {
		putc(instead, out);
		return text + control;
	}
	do
		putc(*text++, out);
	while ((*text & 0xc0) == 0x80);
	return text;
}

void utf8_disarm(char *text, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		bool valid;

		n = sequence((const unsigned char *)text + at, len - at, &valid);
		if (!valid || !text[at] || utf8_control(text + at))
			memset(text + at, '?', n);
	}
}
