#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the programs and recordings in this folder anew. Debian: gcc-aarch64-linux-gnu qemu-user (and clang).
set -e
cd "$(dirname "$0")"
common='-O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -Wl,--build-id -Wl,-z,noseparate-code'
common="$common -Wl,-z,max-page-size=4096"
rows='-fasynchronous-unwind-tables -s'
table='-Wl,--eh-frame-hdr'
make_one() { # NAME RUNNER COMPILER FLAGS...
	name=$1 run=$2
	shift 2
	"$@" $common -o "$name.elf" ${source:-record.c}
	$run ./"$name.elf" > "$name.stacks"
}
make_one x86_64-gcc env gcc $rows $table -fcf-protection=none
make_one x86_64-clang env clang $rows
make_one x86_64-debug_frame env gcc -fcf-protection=none -fno-asynchronous-unwind-tables -g1 -gz=zlib
make_one aarch64-gcc qemu-aarch64 aarch64-linux-gnu-gcc $rows $table
make_one aarch64-pac 'qemu-aarch64 -cpu max' aarch64-linux-gnu-gcc $rows $table -mbranch-protection=pac-ret+leaf -march=armv8.3-a
make_one aarch64-nofp qemu-aarch64 aarch64-linux-gnu-gcc $rows -fomit-frame-pointer
source=record_signal.c make_one aarch64-signal qemu-aarch64 aarch64-linux-gnu-gcc $rows $table
# The debug information but for the rows is of no use here.
objcopy --remove-section=.debug_info --remove-section=.debug_abbrev --remove-section=.debug_line \
	--remove-section=.debug_str --remove-section=.debug_line_str --remove-section=.debug_aranges \
	--remove-section=.debug_rnglists --remove-section=.debug_ranges --strip-unneeded --keep-section=.debug_frame \
	x86_64-debug_frame.elf
