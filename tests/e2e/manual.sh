# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The manual pages are made from the tables of commands and options, installed, and shown by `heaptap help COMMAND`.

pages=$HEAPTAP_BUILD/man

# options_of COMMAND: by the completion for bash
options_of() {
  bash -c '. ./completion; COMP_WORDS=(heaptap "$0" --); COMP_CWORD=2; _heaptap; printf "%s\n" "${COMPREPLY[@]}"' "$1"
}

# lacking FOLDER: what the pages in it lack, which are installed
lacking() {
  local command option page text common
  "$heaptap" completion bash >completion
  common=$(tr -d '\\' <"$1/man1/heaptap.1")
  for command in $(command_names); do
    page=$(find "$1" -name "heaptap-$command.[18]")
    [ -s "$page" ] || { echo "no page of $command"; continue; }
    text=$(tr -d '\\' <"$page")
    [[ $text == *"fBheaptap $command"fR\ * ]] || echo "$page has no synopsis of $command"
    for option in $(options_of "$command"); do
      # Behind an option that not all commands of a page take stand those that do.
      case $option in
      --help | --help-all | --version) [[ $common == *fB"$option"fR* ]] || echo "heaptap.1 lacks $option of $command" ;;
      *) [[ $text =~ fB"$option"fR([^\($'\n']*|[^$'\n']*[\ \(]"$command"[,\)][^$'\n']*)$'\n' ]] || echo "$page lacks $option of $command" ;;
      esac
    done
  done
}

install_pages() {
  make -s -C "$top" O="$HEAPTAP_BUILD" install DESTDIR="$PWD/root" PREFIX=/usr >log 2>&1 || { cat log >&2; fail 'make install'; }
}

test_every_option_is_on_its_page_and_in_help() {
  local command
  install_pages
  equal '' "$(lacking root/usr/share/man)"
  for command in $(command_names); do
    options_of "$command" | sort >theirs
    "$heaptap" "$command" --help-all | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort | cmp - theirs || fail "help of $command"
  done
  # What is taken out is missed.
  sed -i '/keep.fR/d' root/usr/share/man/man1/heaptap-record.1
  sed -i '/by.fR/s/report, diff/report/' root/usr/share/man/man1/heaptap-report.1
  sed -i '/help.*all.fR/d' root/usr/share/man/man1/heaptap.1
  rm root/usr/share/man/man8/heaptap-status.8
  lacking root/usr/share/man >out
  matches 'heaptap-record.1 lacks --keep of record$' out
  matches 'heaptap-diff.1 lacks --by of diff$' out
  matches 'heaptap.1 lacks --help-all of ls$' out
  matches '^no page of status$' out
}

test_every_page_is_installed() {
  local page
  install_pages
  for page in "$top"/docs/man/*.in; do
    page=$(basename "$page" .in)
    [ -s "root/usr/share/man/man${page##*.}/$page" ] || fail "$page is not installed"
  done
  equal '' "$(find root -xtype l)" 'links that lead nowhere'
  # A page or the name of a command, and no more.
  equal "$({ command_names | sed 's/^/heaptap-/'; printf '%s\n' heaptap heaptap.conf; } | sort)" \
    "$(find root/usr/share/man ! -type d -printf '%f\n' | sed 's/\.[158]$//' | sort)"
  matches '^usr/share/man$' "$top/debian/heaptap.install"
  make -s -C "$top" O="$HEAPTAP_BUILD" uninstall DESTDIR="$PWD/root" PREFIX=/usr >log 2>&1
  equal '' "$(find root/usr/share/man ! -type d)" 'what uninstall leaves'
}

test_pages_are_sound() {
  local page
  for page in "$pages"/*; do
    ! grep -n '^@' "$page" || fail "$page: a table was not put in"
  done
  printf '@OPTIONS nonsense\n' | "$heaptap" completion man >out 2>err && fail 'a command that is none'
  matches "names 'nonsense', which is not a command" err
  printf '@NONSENSE record\n' | "$heaptap" completion man >out 2>err && fail 'a line that means nothing'
  matches "a line '@NONSENSE'" err
  command -v man >/dev/null || skip 'no man to read the pages with'
  for page in "$pages"/*; do
    LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" >/dev/null 2>warnings
    [ ! -s warnings ] || { cat warnings >&2; fail "$page has warnings"; }
    MANWIDTH=80 LC_ALL=C.UTF-8 man -l "$page" | col -bx >text
    ! awk 'length > 80' text | grep . || fail "$page: a line wider than 80 columns"
    [ "$(basename "$page")" != heaptap.1 ] || at_most 72 "$(wc -l <text)" 'lines of heaptap(1): three screens'
  done
}

# The key lists of error lines are those of the code that reads the file.
test_every_key_is_in_the_page() {
  local section key
  "$heaptap" daemon --help-all | grep -q -- --check || skip 'this build has no daemon'
  printf '[%s]\nnonsense = 1\n' daemon service 'service x' deny >heaptap.conf
  "$heaptap" daemon --check --config heaptap.conf >out || true
  printf '[push x]\nnonsense = 1\n' >push.conf
  "$heaptap" push --follow --config push.conf . >>out 2>&1 || true
  equal 5 "$(grep -c "'nonsense' is none of" out)" 'sections that list their keys'
  for key in $(sed -n "s/.*'nonsense' is none of //p" out | tr -d , | tr ' ' '\n' | sed 's/KEY$//' | sort -u); do
    grep -E '^\.(B|BR|BI|SH)|^.fBexe' "$pages/heaptap.conf.5" | tr -d '\\"' | sed 's/fB\|fR/ /g' | tr ', ' '\n\n' | grep -qxF -- "$key" || fail "heaptap.conf(5) lacks $key"
  done
}

# on_terminal ARGUMENT...: heaptap, whose standard output is a terminal
on_terminal() {
  script -qefc "$(printf '%q ' "$heaptap" "$@")" /dev/null </dev/null
}

test_help_shows_the_page() {
  local command
  command -v man >/dev/null || skip 'no man'
  install_pages
  for command in record diff status; do
    MANPATH=$PWD/root/usr/share/man MANPAGER=cat PAGER=cat LC_ALL=C.UTF-8 on_terminal help $command >out
    col -bx <out >text
    matches "heaptap-$command" text
    matches '^SEE ALSO' text
  done
  # Without a page, and where there is no terminal: all options.
  "$heaptap" record --help-all >all
  MANPATH=$PWD/none on_terminal help record | tr -d '\r' | cmp - all
  MANPATH=$PWD/root/usr/share/man "$heaptap" help record | cmp - all
}
