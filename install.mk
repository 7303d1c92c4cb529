# SPDX-License-Identifier: Apache-2.0
# Where heaptap is put: `make install` owns the whole layout, and the Debian packages are cut from it.

PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib/heaptap
INCDIR  ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# heaptap.conf is looked for in /etc/heaptap alone.
CONFDIR ?= /etc/heaptap
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d

.PHONY: docs install uninstall deb deb-run release print-packages-deb

# ---- what `make` writes from the tables of commands and options, so that `make install` runs nothing that was built

PAGES := $(patsubst docs/man/%.in,%,$(sort $(wildcard docs/man/*.in)))
DOCS  := $(addprefix $(O)/,$(PAGES:%=man/%) heaptap.bash _heaptap heaptap.fish)
docs: $(DOCS)
# Commands that the page of another command describes: COMMAND:PAGE
PAGE_LINKS := snapshot:record.1 events:record.1 adopt:attach.1 detach:attach.1 diff:report.1 export:report.1 ls:merge.1 symbolize:merge.1 \
	check:merge.1 completion:doctor.1 enable:daemon.8 disable:daemon.8 status:daemon.8

# Which heaptap writes it: that of this build, or of a build for this machine where it is for another (HOSTCC).
HOSTCC ?= cc
NATIVE  = $(if $(filter $(shell uname -m)-%,$(MACHINE)),$(O),build-native)
ifneq ($(O),build-native)
build-native/heaptap:
	@$(MAKE) --no-print-directory O=build-native CC='$(HOSTCC)' AR=ar CFLAGS=-O0 SAN= PKG_CONFIG= build-native/heaptap
endif

$(O)/man/%: docs/man/%.in $(NATIVE)/heaptap
	@mkdir -p $(@D)
	$(call quiet,MAN,$@)$(NATIVE)/heaptap completion man <$< >$@
$(O)/heaptap.bash: $(NATIVE)/heaptap
	$(call quiet,BASH,$@)$< completion bash >$@
$(O)/_heaptap: $(NATIVE)/heaptap
	$(call quiet,ZSH,$@)$< completion zsh >$@
$(O)/heaptap.fish: $(NATIVE)/heaptap
	$(call quiet,FISH,$@)$< completion fish >$@

# $(call put,MODE,FOLDER,FILES): into the folder, which is made
put = install -d '$(DESTDIR)$(2)' && install -m $(1) -t '$(DESTDIR)$(2)' $(3)
# $(call put_as,MODE,FILE,FOLDER,NAME)
put_as = install -d '$(DESTDIR)$(3)' && install -m $(1) '$(2)' '$(DESTDIR)$(3)/$(4)'
# $(call page_links,ACTION): for each link, with the shell's section, page and link
page_links = for pair in $(PAGE_LINKS); do page=heaptap-$${pair\#*:}; section=$${page\#\#*.}; link=heaptap-$${pair%%:*}.$$section; $(1); done
UNITS := $(addprefix contrib/systemd/,heaptapd.service heaptap-push.service)

## install: programs, libraries, header, manual pages, completions, systemd's units, users and folders below PREFIX, and
##          heaptap.conf in /etc/heaptap unless there is a heaptap.conf (DESTDIR is honoured)
install: all
	$(call put,755,$(BINDIR),$(O)/heaptap)
	$(call put,755,$(LIBDIR),$(O)/libheaptap.so $(ATTACH_LIB) $(O)/heaptap-push $(O)/heaptap-serve)
	$(call put,644,$(INCDIR),proto/heaptap.h)
	$(foreach section,1 5 8,$(call put,644,$(MANDIR)/man$(section),$(addprefix $(O)/man/,$(filter %.$(section),$(PAGES)))) &&) true
	$(call page_links,ln -sf "$$page" '$(DESTDIR)$(MANDIR)'"/man$$section/$$link")
	$(call put_as,644,$(O)/heaptap.bash,$(BASHDIR),heaptap)
	$(call put,644,$(ZSHDIR),$(O)/_heaptap)
	$(call put,644,$(FISHDIR),$(O)/heaptap.fish)
	$(call put,644,$(UNITDIR),$(UNITS))
	sed -i 's,/usr/bin/heaptap,$(BINDIR)/heaptap,' $(UNITS:contrib/systemd/%='$(DESTDIR)$(UNITDIR)/%')
	$(call put_as,644,contrib/systemd/heaptap.sysusers,$(SYSUSERSDIR),heaptap.conf)
	$(call put_as,644,contrib/systemd/heaptap.tmpfiles,$(TMPFILESDIR),heaptap.conf)
	[ -e '$(DESTDIR)$(CONFDIR)/heaptap.conf' ] || { $(call put,644,$(CONFDIR),contrib/heaptap.conf); }

## uninstall: the reverse; a heaptap.conf that was changed stays
uninstall:
	rm -f $(patsubst %,'$(DESTDIR)%',$(BINDIR)/heaptap $(INCDIR)/heaptap.h $(BASHDIR)/heaptap \
		$(ZSHDIR)/_heaptap $(FISHDIR)/heaptap.fish $(UNITS:contrib/systemd/%=$(UNITDIR)/%) $(SYSUSERSDIR)/heaptap.conf \
		$(TMPFILESDIR)/heaptap.conf $(addprefix $(LIBDIR)/,libheaptap.so libheaptap-attach.so heaptap-push heaptap-serve))
	rm -f $(foreach page,$(PAGES),'$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(page)')
	$(call page_links,rm -f '$(DESTDIR)$(MANDIR)'"/man$$section/$$link")
	! cmp -s contrib/heaptap.conf '$(DESTDIR)$(CONFDIR)/heaptap.conf' || rm '$(DESTDIR)$(CONFDIR)/heaptap.conf'
	-rmdir '$(DESTDIR)$(LIBDIR)'
	[ ! -d '$(DESTDIR)$(CONFDIR)' ] || rmdir --ignore-fail-on-non-empty '$(DESTDIR)$(CONFDIR)'

# A copy, so that what debhelper leaves is not in the tree. DEB_SUFFIX follows the version: contrib/release/build names the suite.
DEB := $(abspath $(O))/deb
DEB_SUFFIX ?=

## deb: Debian packages in build/deb: heaptap, heaptap-daemon, libheaptap-preload; install what is missing, lintian
deb:
	@.ci/packages $(PACKAGES_DEB)
	@$(MAKE) --no-print-directory deb-run

deb-run:
	@[ "$$(dpkg-parsechangelog -S Version)" = $(VERSION) ] || { echo 'deb: debian/changelog is of another version' >&2; exit 1; }
	rm -rf $(DEB)
	install -d $(DEB)/heaptap
	if [ -e .git ]; then git ls-files -z --cached --others --exclude-standard; else find . -path ./build -prune -o -type f -print0; fi | \
		tar --null -c -T - | tar -x -C $(DEB)/heaptap
	sed -i '1s/)/$(DEB_SUFFIX))/' $(DEB)/heaptap/debian/changelog
	cd $(DEB)/heaptap && HEAPTAP_COMMIT="$$($(CURDIR)/.ci/commit)" dpkg-buildpackage --no-sign --build=binary \
		$(if $(filter 1,$(V)),,>$(DEB)/build.log 2>&1) || { tail -n 40 $(DEB)/build.log >&2; exit 1; }
	rm -rf $(DEB)/heaptap
	lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs $(DEB)/*.changes
	@ls $(DEB)/*.deb

## release: sources, packages for Debian 12 and 13, images and checksums in build/release (contrib/release/build)
release:
	@.ci/packages git mmdebstrap buildah busybox-static
	@contrib/release/build

print-packages-deb:
	@echo $(PACKAGES_DEB)
