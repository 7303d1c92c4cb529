# SPDX-License-Identifier: Apache-2.0
# Other processors and kernels: a cross build for aarch64, and virtual machines.

ARM64_O      := $(O)-arm64
# The unit tests that have the line ARM64_MARK. qemu's user mode has no perf events, no vdso, and no memory that a forked
# child finds empty; /proc shows the emulator's own address space; and "/" is the folder of its libraries for a program
# that follows a path from there. A test that needs one of these cannot have the line.
ARM64_MARK   := /* arm64: qemu-aarch64 runs this test, too */
ARM64_UNIT    = $(patsubst tests/unit/%.c,%,$(shell grep -lxF '$(ARM64_MARK)' $(UNIT_SRC)))
# In `make check` unless a pattern means other tests, or the machine is of that architecture itself.
WITH_ARM64    = $(if $(filter aarch64%,$(MACHINE)),,$(if $(T),$(findstring arm64,$(T)),1))

.PHONY: arm64 arm64-bin arm64-all lab check-lab

## arm64: heaptap and its library for aarch64, cross-compiled, and the unit tests that qemu-aarch64 can run
arm64:
	@.ci/packages $(PACKAGES_CHECK)
	@tree=$$(.ci/tree arm64 $(PACKAGES_ARM64)) && $(MAKE) --no-print-directory arm64-bin ARM64_TREE=$$tree && \
	HEAPTAP_ARM64=$$tree HEAPTAP_ARM64_UNIT='$(ARM64_UNIT)' tests/run $(O) arm64 '$(T)'

# ARM64_GOAL: what is made; the lab wants more than the unit tests, of the same objects.
ARM64_GOAL := arm64-all
arm64-bin:
	@GOARCH=arm64 CGO_ENABLED=0 $(MAKE) --no-print-directory O=$(ARM64_O) SAN= WERROR= PKG_CONFIG=false \
		CC="aarch64-linux-gnu-gcc --sysroot=$(ARM64_TREE)" CXX="aarch64-linux-gnu-g++ --sysroot=$(ARM64_TREE)" \
		AR=aarch64-linux-gnu-ar $(ARM64_GOAL)

arm64-all: $(O)/heaptap $(O)/heaptap-push $(O)/heaptap-serve $(O)/libheaptap.so $(ARM64_UNIT:%=$(O)/tests/unit/%)

# Other kernels and machines, in virtual machines (tests/lab/guests.sh lists them).
GUEST ?=
# Without a pattern: what meets the kernel, in three minutes a guest.
LAB_T := $(if $(T),$(T),^unit/(features|event_attr|regs|signal_frame|call)/|^e2e/(truth/exact|units/|capture_backends/(which_and_why|uprobe_disabled$$)|doctor/a_bare_line))

## lab: builds the virtual machines for check-lab, outside of the tree, from Debian's packages (GUEST=PATTERN)
lab:
	@.ci/packages $(PACKAGES_LAB)
	@LAB_PACKAGES_amd64='$(PACKAGES_GUEST)' LAB_PACKAGES_arm64='$(PACKAGES_GUEST_ARM64)' tests/lab/build '$(or $(GUEST),.*)'

## check-lab: boots each, runs tests there, prints a table (GUEST=PATTERN, host is this machine; T=PATTERN)
check-lab: all unit-bin readers targets lab
	@! bash -c '. tests/lab/guests.sh; guest_names "$$0"' '$(or $(GUEST),.*)' | grep -q '^arm64' || { \
		tree=$$(.ci/tree arm64 $(PACKAGES_ARM64)) && $(MAKE) --no-print-directory arm64-bin ARM64_TREE=$$tree \
		ARM64_GOAL='programs unit-bin readers targets'; }
	@tests/lab/check '$(or $(GUEST),.*)' '$(LAB_T)' $(O)
