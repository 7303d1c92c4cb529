# SPDX-License-Identifier: Apache-2.0
# The two libraries that are loaded into programs, from the same sources.

# What is loaded into processes that run already; attaching knows x86-64 alone.
ATTACH_LIB   = $(if $(filter x86_64%,$(MACHINE)),$(O)/libheaptap-attach.so)

# The half that lives in other people's processes: libc only, nothing exported but the map, no lazy binding
# surprises (-z now), and never a sanitizer runtime (the sanitizer builds test the sampler's side).
PRELOAD_FLAGS  = -Wconversion -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt -fno-stack-protector -fno-builtin \
	$(FRAME_POINTERS) $(PRELOAD_$(firstword $(subst -, ,$(MACHINE))))
# Others walk through our frames by frame pointer: sanitizers at each malloc, perf, profilers in eBPF. Hooks that end by a jump,
# as malloc does, have no frame.
FRAME_POINTERS := -fno-omit-frame-pointer -momit-leaf-frame-pointer
# Returns are checked by the processor where it can: shadow stacks; signed return addresses and landing pads.
PRELOAD_x86_64  := -fcf-protection=return
PRELOAD_aarch64 := -mbranch-protection=standard
PRELOAD_LINK   = -shared $(LDFLAGS) -Wl,-soname,$(@F) -Wl,-Bsymbolic-functions \
	-Wl,-z,defs,-z,now,-z,relro,-z,noexecstack -Wl,--hash-style=gnu
ONLY_PRELOADED := $(patsubst %,$(O)/preload/%.o,constructor family redirect)
ONLY_ATTACHED  := $(patsubst %,$(O)/preload/%.o,running import)
$(O)/libheaptap.so: $(filter-out $(ONLY_ATTACHED),$(PRELOAD_OBJ)) preload/preload.map
	$(call quiet,LD,$@)$(CC) $(PRELOAD_LINK) -Wl,--version-script=preload/preload.map -Wl,-z,nodlopen -o $@ $(filter %.o,$^)

# The same objects again, on x86-64, for processes that run already: loaded by dlopen, never unloaded, without debug
# information since every such process holds a copy.
$(O)/libheaptap-attach.so: $(filter-out $(ONLY_PRELOADED),$(PRELOAD_OBJ)) preload/attach.map
	$(call quiet,LD,$@)$(CC) $(PRELOAD_LINK) -Wl,--version-script=preload/attach.map -Wl,-z,nodelete,-s -o $@ $(filter %.o,$^)

$(O)/preload/%.o: preload/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALLFLAGS) $(PRELOAD_FLAGS) -c -o $@ $<
