# SPDX-License-Identifier: Apache-2.0
# The one list of Debian packages: whatever installs a package installs it from here, by .ci/packages.
PACKAGES_BUILD := gcc libc6-dev libdw-dev libelf-dev libpfm4-dev libprotobuf-c-dev protobuf-c-compiler \
	protobuf-compiler zlib1g-dev libiberty-dev libpcre2-dev libcurl4-gnutls-dev libinih-dev \
	libmicrohttpd-dev libseccomp-dev libzstd-dev
PACKAGES_DEMO  := $(PACKAGES_BUILD) redis-server redis-tools golang-go
PACKAGES_LINT  := $(PACKAGES_BUILD) binutils python3 cppcheck clang-format universal-ctags
PACKAGES_CHECK := $(sort $(PACKAGES_DEMO) $(PACKAGES_LINT)) g++ clang lld libclang-rt-14-dev libcmocka-dev \
	golang-github-google-pprof-dev sqlite3 nodejs util-linux procps spin gdb llvm dwz xz-utils gcc-aarch64-linux-gnu \
	libc6-dev-arm64-cross qemu-user rustc valgrind nginx-light curl openssl musl-tools libjemalloc-dev libgoogle-perftools-dev \
	libmimalloc-dev libcap2-bin heaptrack man-db zsh fish debuginfod libdebuginfod1 python3-h2 \
	python3-protobuf runc bubblewrap chromium firefox-esr
PACKAGES_DEB   := $(PACKAGES_BUILD) build-essential dpkg-dev debhelper lintian fakeroot
PACKAGES_BENCH := $(PACKAGES_BUILD) g++ python3 valgrind heaptrack libgoogle-perftools4 gnuplot-nox redis-server \
	redis-tools sqlite3 nodejs zstd
PACKAGES_LEAKS := $(PACKAGES_BUILD) g++ binutils python3 python3-dev python3-venv cargo rustc nodejs npm openjdk-17-jdk-headless \
	redis-server postgresql

# The lab: what runs virtual machines, and what is in them, each with its own architecture's packages.
PACKAGES_LAB   := qemu-system-x86 qemu-system-arm qemu-utils mmdebstrap arch-test e2fsprogs cpio kmod xz-utils zstd \
	gcc-aarch64-linux-gnu g++-aarch64-linux-gnu
PACKAGES_GUEST := systemd-sysv dbus udev kmod ca-certificates iproute2 strace make nginx postgresql mariadb-server podman crun \
	conmon netavark busybox-static uidmap slirp4netns fuse-overlayfs \
	$(filter-out %arm64-cross %aarch64-linux-gnu qemu-user cppcheck clang-format universal-ctags spin nginx-light chromium firefox-esr,$(PACKAGES_CHECK))
# Unpacked alone: no services but redis, and no compilers but gcc and Go's.
PACKAGES_GUEST_ARM64 := base-files base-passwd bash coreutils dash debianutils diffutils findutils grep gzip hostname libc-bin \
	login mawk mount passwd perl-base sed tar util-linux less bsdutils $(filter-out systemd-sysv dbus udev nginx postgresql \
	mariadb-server podman crun conmon netavark uidmap slirp4netns fuse-overlayfs clang lld llvm libclang-rt-14-dev rustc \
	heaptrack man-db zsh fish debuginfod libdebuginfod1,$(PACKAGES_GUEST))

# The libraries of heaptap for aarch64, unpacked beside the checkout by .ci/tree.
PACKAGES_ARM64 := libc6-dev libdw-dev libelf-dev libpfm4-dev libprotobuf-c-dev zlib1g-dev libiberty-dev libpcre2-dev \
	libcurl4-gnutls-dev libinih-dev libmicrohttpd-dev libseccomp-dev libzstd-dev libcmocka-dev libstdc++-12-dev \
	libjemalloc-dev libgoogle-perftools-dev libmimalloc-dev

## deps: install the Debian packages that building and every test need (as root, or by sudo)
deps:
	@.ci/packages $(PACKAGES_CHECK)
