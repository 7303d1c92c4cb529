# SPDX-License-Identifier: Apache-2.0
# COMMAND gets the environment, signal state and process group that heaptap got.

test_environment_keeps_all_but_three() {
  env >plain
  record -q env >profiled
  grep -vE '^(LD_PRELOAD|HEAPTAP|ASAN_OPTIONS|_)=' plain >plain.rest
  grep -vE '^(LD_PRELOAD|HEAPTAP|ASAN_OPTIONS|_)=' profiled >profiled.rest
  cmp plain.rest profiled.rest
  equal 1 "$(grep -c '^LD_PRELOAD=.*/libheaptap.so$' profiled)" LD_PRELOAD
  equal 1 "$(grep -c '^HEAPTAP=.' profiled)" HEAPTAP
  matches '^ASAN_OPTIONS=verify_asan_link_order=0$' profiled
  ASAN_OPTIONS=log_path=/x record -q env >profiled
  matches '^ASAN_OPTIONS=log_path=/x:verify_asan_link_order=0$' profiled
  equal 1 "$(grep -c ASAN_OPTIONS profiled)" 'settings of ASAN_OPTIONS'
}

test_ld_preload_is_kept_behind_ours() {
  other=$(ldd /bin/sh | awk '/libc\.so/ { print $3 }')
  LD_PRELOAD=$other record -q env >profiled
  matches "^LD_PRELOAD=[^:]*/libheaptap.so:$other\$" profiled
}

test_signal_state() {
  for shell in '' 'trap "" HUP;' 'trap "" INT QUIT;' 'trap "" PIPE TERM;' 'trap "" CHLD;'; do
    sh -c "$shell exec grep -E '^Sig(Blk|Ign)' /proc/self/status" >plain
    sh -c "$shell exec $heaptap record -q grep -E '^Sig(Blk|Ign)' /proc/self/status" >profiled
    cmp plain profiled
  done
}

test_blocked_signals_stay_blocked() {
  python3 - "$heaptap" >profiled <<'PYTHON'
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGTERM})
os.execv(sys.argv[1], [sys.argv[1], "record", "-q", "grep", "^SigBlk", "/proc/self/status"])
PYTHON
  matches '^SigBlk:.*0000000000004800$' profiled
}

test_process_group_folder_and_mask() {
  # Fields of stat: 4 parent, 5 group, 6 session.
  umask 027
  record -q sh -c 'cut -d" " -f5,6 </proc/self/stat; pwd; umask' >profiled
  { cut -d' ' -f5,6 </proc/self/stat; pwd; umask; } >plain
  cmp plain profiled
}

test_command_has_no_sampler_among_its_children() {
  record -q sh -c 'ps -o comm= --ppid $$; true' >out
  equal ps "$(tr -d ' \n' <out)"
}
