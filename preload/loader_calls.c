/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/loader_calls.h"

#include "preload/claim.h"
#include "preload/lookup.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { DLOPEN, DLSYM, DLVSYM };

void loader_calls_dlopen(void);
void loader_calls_dlsym(void);
void loader_calls_dlvsym(void);
void loader_calls_look(void);
bool loader_calls_is_plain(const char *file);
void *loader_calls_open_plain(const char *file, int mode);

/* What the jumps go to. */
__attribute__((used)) uintptr_t loader_calls_real[LOADER_CALLS] __attribute__((visibility("hidden")));

struct loader_call loader_calls[LOADER_CALLS] = {
    [DLOPEN] = {.name = "dlopen", .hook = (uintptr_t)loader_calls_dlopen},
    [DLSYM] = {.name = "dlsym", .hook = (uintptr_t)loader_calls_dlsym},
    [DLVSYM] = {.name = "dlvsym", .hook = (uintptr_t)loader_calls_dlvsym},
};

static void (*look_for_objects)(void);

void loader_calls_resolve(void (*look)(void))
{
	look_for_objects = look;
	struct lookup wishes[LOADER_CALLS];
	for (int i = 0; i < LOADER_CALLS; i++)
		wishes[i].name = loader_calls[i].name;
	lookup_next(wishes, LOADER_CALLS);
	for (int i = 0; i < LOADER_CALLS; i++)
		loader_calls[i].real = loader_calls_real[i] = (uintptr_t)wishes[i].found;
}

__attribute__((used)) void loader_calls_look(void)
{
	int saved = errno;

	if (claim_ready())
		look_for_objects();
	errno = saved;
}

/* The loader looks at its caller for names without a slash, and for those with $ORIGIN. */
__attribute__((used)) bool loader_calls_is_plain(const char *file)
{
	loader_calls_look();
	return file && strchr(file, '/') && !strchr(file, '$');
}

__attribute__((used)) void *loader_calls_open_plain(const char *file, int mode)
{
	void *(*open_object)(const char *, int) = (void *(*)(const char *, int))loader_calls_real[DLOPEN];
	void *object = open_object(file, mode);

	loader_calls_look();
	return object;
}

#if defined(__x86_64__)
/* Three pushes keep the stack aligned for the call. */
__asm__(".pushsection .text\n"
        ".macro loader_call name, number\n"
        ".globl loader_calls_\\name\n.hidden loader_calls_\\name\n"
        ".type loader_calls_\\name, @function\n"
        "loader_calls_\\name:\n.cfi_startproc\n"
        "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n"
        "push %rdx\n.cfi_adjust_cfa_offset 8\n"
        ".if \\number\ncall loader_calls_look\n.else\ncall loader_calls_is_plain\n.endif\n"
        "pop %rdx\n.cfi_adjust_cfa_offset -8\npop %rsi\n.cfi_adjust_cfa_offset -8\n"
        "pop %rdi\n.cfi_adjust_cfa_offset -8\n"
        ".if \\number\n.else\ntest %al, %al\njnz loader_calls_open_plain\n.endif\n"
        "jmp *loader_calls_real+8*\\number(%rip)\n"
        ".cfi_endproc\n.size loader_calls_\\name, .-loader_calls_\\name\n"
        ".endm\n"
        "loader_call dlopen, 0\nloader_call dlsym, 1\nloader_call dlvsym, 2\n"
        ".popsection\n");
#else
#error "attaching is for x86-64"
#endif
