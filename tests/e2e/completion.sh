# SPDX-License-Identifier: Apache-2.0
# Completions of three shells, which know every command and option, and the processes that are profiled.

# profiled: a program that is profiled until its standard input ends; sets pid
profiled() {
  mkfifo input
  "$heaptap" record -q -p 1K -i 0 -o out.pb.gz "$targets/snapshot_signal" wait <input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 grep -q ready output
  pid=$(child_of "$front" snapshot_signal)
}

finish() {
  exec 9>&-
  wait "$front"
}

# completed WORD...: what bash completes, with the last word begun; from ./completion
completed() {
  PATH=$HEAPTAP_PROGRAMS:$PATH bash -c '. ./completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _heaptap; printf "%s\n" "${COMPREPLY[@]}"' \
    bash heaptap "$@"
}

test_pids() {
  profiled
  "$heaptap" completion pids >pids
  matches "^$pid	snapshot_signal\$" pids
  ! grep "^$front	" pids || fail 'heaptap record itself is not profiled'
  "$heaptap" completion bash >completion
  for words in snapshot 'snapshot --session' adopt; do
    # shellcheck disable=SC2086
    completed $words "${pid%?}" >out
    matches "^$pid\$" out
    # shellcheck disable=SC2086
    completed $words '' >out
    matches "^$pid\$" out
    ! grep -x "$$" out || fail "$words completes a process that is not profiled"
  done
  completed doctor "${pid%?}" >out
  matches "^$pid\$" out
  completed record -P "$$" >out
  matches "^$$\$" out
  completed doctor pytho >out
  matches '^python3$' out
  finish
  ! "$heaptap" completion pids | grep "^$pid	" || fail 'a process that has ended'
}

test_bash() {
  "$heaptap" completion bash >completion
  equal 'bash zsh fish' "$(completed completion '' | xargs)"
  bash -c '. ./completion; COMP_WORDS=(heaptap rep); COMP_CWORD=1; _heaptap; echo "${COMPREPLY[*]}"' >out
  equal report "$(cat out)"
  bash -c '. ./completion; COMP_WORDS=(heaptap report --so); COMP_CWORD=2; _heaptap; echo "${COMPREPLY[*]}"' >out
  equal --sort "$(cat out)"
  bash -c '. ./completion; COMP_WORDS=(heaptap report --sort in); COMP_CWORD=3; _heaptap; echo "${COMPREPLY[*]}"' >out
  equal 'inuse inuse-objects' "$(cat out)"
  bash -c '. ./completion; COMP_WORDS=(heaptap export -f fl); COMP_CWORD=3; _heaptap; echo "${COMPREPLY[*]}"' >out
  equal flamegraph "$(cat out)"
  for command in $(command_names); do
    bash -c '. ./completion; COMP_WORDS=(heaptap '"$command"' --); COMP_CWORD=2; _heaptap; printf "%s\n" "${COMPREPLY[@]}"' | sort >ours
    "$heaptap" help "$command" | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort >theirs
    cmp ours theirs || fail "options of $command"
  done
}

test_zsh() {
  command -v zsh >/dev/null || skip 'no zsh'
  "$heaptap" completion zsh >_heaptap
  zsh -n _heaptap
  cat >complete.zsh <<'ZSH'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; fpath=($PWD $fpath); autoload -U compinit; compinit -u -d dump; setopt noautomenu; print ready'
zpty -r -m z out '*ready*ready*'
zpty -w -n z $'heaptap report --lea\t'
for i in {1..1000}; do zpty -r -t z more && all+=$more; [[ $all == *--leaks* ]] && break; sleep 0.1; done
print -r -- "$all"
zpty -d z
ZSH
  timeout "$(seconds 30)" zsh -f complete.zsh >out 2>&1 || true
  matches '--leaks' out
}

# fish_completed LINE: what fish completes at its end, without descriptions
fish_completed() {
  HOME=$PWD XDG_CONFIG_HOME=$PWD/config PATH=$HEAPTAP_PROGRAMS:$PATH \
    fish -N -c 'source completion.fish; complete -C $argv[1]' -- "$1" | cut -f 1
}

test_fish() {
  command -v fish >/dev/null || skip 'no fish'
  "$heaptap" completion fish >completion.fish
  fish -n completion.fish
  equal 'report' "$(fish_completed 'heaptap rep' | xargs)"
  equal '--sort' "$(fish_completed 'heaptap report --so' | xargs)"
  equal 'inuse inuse-objects' "$(fish_completed 'heaptap report --sort in' | sort | xargs)"
  equal 'flamegraph' "$(fish_completed 'heaptap export -f fl' | xargs)"
  equal 'zsh' "$(fish_completed 'heaptap completion z' | xargs)"
  touch profile.pb.gz
  equal 'profile.pb.gz' "$(fish_completed 'heaptap report prof' | xargs)"
  for command in $(command_names); do
    fish_completed "heaptap $command --" | sort >ours
    "$heaptap" help "$command" | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort >theirs
    cmp ours theirs || fail "options of $command"
  done
  profiled
  fish_completed 'heaptap snapshot ' >out
  matches "^$pid\$" out
  finish
}
