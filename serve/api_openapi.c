/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_openapi.h"

/* A NUL-terminated string. The Makefile has a rule that this object depends on the file. */
__asm__(".pushsection .rodata\n"
        "openapi_text:\n"
        ".incbin \"serve/openapi.json\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char openapi_text[] __attribute__((visibility("hidden")));

const char *api_openapi(void)
{
	return openapi_text;
}
