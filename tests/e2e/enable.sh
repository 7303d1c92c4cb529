# SPDX-License-Identifier: Apache-2.0
# `heaptap enable UNIT` and `disable`, in trees that stand for a machine. What systemd makes of our drop-ins systemd says
# itself (systemd --test), where it is installed.

library=$HEAPTAP_PROGRAMS/libheaptap.so
units=root/usr/lib/systemd/system
admin=root/etc/systemd/system

tree() {
  mkdir -p $units $admin "root${library%/*}" root/run
  cp "$library" "root${library%/*}"
}

# unit NAME LINE...: of [Service]
unit() {
  local name=$1
  shift
  { printf '[Service]\nExecStart=/bin/sleep 1\n'; printf '%s\n' "$@"; } >$units/"$name"
}

# drop_in UNIT/FILE LINE...
drop_in() {
  local path=$1
  shift
  mkdir -p "$admin/${path%%/*}"
  { printf '[Service]\n'; printf '%s\n' "$@"; } >"$admin/$path"
}

# All of the tree: names, modes and contents.
picture() {
  (cd root && find . -printf '%p %m %l\n' | sort && find . -type f -exec sha256sum {} + | sort)
}

enable() {
  "$heaptap" enable --root root "$@"
}

disable() {
  "$heaptap" disable --root root "$@"
}

# preload_of UNIT: LD_PRELOAD as systemd has it for the service. It loads units without running them, but not as root.
preload_of() {
  mkdir -p home
  chmod 777 home
  chmod -R a+rX root
  HOME=$PWD/home XDG_CONFIG_HOME=$PWD/home XDG_RUNTIME_DIR=$PWD/home SYSTEMD_LOG_TARGET=console \
    SYSTEMD_UNIT_PATH=$PWD/root/etc/systemd/system:$PWD/root/usr/lib/systemd/system: \
    unprivileged /lib/systemd/systemd --test --user --unit="$1" </dev/null >dump 2>dump.err || :
  awk -v unit="-> Unit $1:" 'index($0, "-> Unit ") { ours = index($0, unit) }
    ours && sub(/^.*Environment: LD_PRELOAD=/, "")' dump
}

# comes_to UNIT VALUE: our drop-in has it
comes_to() {
  equal "[Service]
Environment=\"LD_PRELOAD=$2\"" "$(grep -v '^#' "$admin/$1.d/50-heaptap.conf")" "drop-in of $1"
}

test_a_unit_and_back() {
  tree
  unit redis.service
  picture >before
  equal 0 "$(status_of enable redis)"
  matches '^redis.service: wrote root/etc/systemd/system/redis.service.d/50-heaptap.conf$' out
  comes_to redis.service "$library"
  picture >enabled
  equal 0 "$(status_of enable redis.service)"
  matches '^redis.service: is enabled already$' out
  picture | cmp - enabled
  equal 0 "$(status_of disable redis)"
  picture | cmp - before
  equal 0 "$(status_of disable redis)"
  matches '^redis.service: is not enabled$' out
  # A folder that was there stays, with what is in it.
  drop_in redis.service.d/10-limits.conf LimitNOFILE=9
  picture >before
  enable redis >/dev/null
  disable redis >/dev/null
  picture | cmp - before
}

test_what_the_unit_preloads_stays() {
  tree
  unit plain.service 'Environment=LD_PRELOAD=/usr/lib/libjemalloc.so.2'
  enable plain >/dev/null
  comes_to plain.service "$library:/usr/lib/libjemalloc.so.2"
  unit blanks.service 'Environment=A=1 "LD_PRELOAD=/a.so /b.so" B=2'
  enable blanks >/dev/null
  comes_to blanks.service "$library:/a.so:/b.so"
  unit lines.service 'Environment=A=1 \' '# a comment' "  'LD_PRELOAD=/a\\x62.so'"
  enable lines >/dev/null
  comes_to lines.service "$library:/ab.so"
  unit specifier.service 'Environment=LD_PRELOAD=/opt/%p/100%%.so'
  enable specifier >/dev/null
  comes_to specifier.service "$library:/opt/%p/100%%.so"
  # The last one counts; an empty assignment takes all back; other sections are none of it.
  unit last.service 'Environment=LD_PRELOAD=/a.so' 'Environment=LD_PRELOAD=/b.so' '[Unit]' 'Environment=LD_PRELOAD=/c.so'
  enable last >/dev/null
  comes_to last.service "$library:/b.so"
  unit back.service 'Environment=LD_PRELOAD=/a.so' 'Environment='
  enable back >/dev/null
  comes_to back.service "$library"
  # Drop-ins before ours, by their names' order.
  unit order.service
  drop_in order.service.d/40-b.conf 'Environment=LD_PRELOAD=/b.so'
  drop_in order.service.d/10-a.conf 'Environment=LD_PRELOAD=/a.so'
  enable order >/dev/null
  comes_to order.service "$library:/b.so"
  # Somebody has put ours there by hand: once is enough.
  unit twice.service "Environment=LD_PRELOAD=/a.so:$library"
  enable twice >/dev/null
  comes_to twice.service "$library:/a.so"
  # What all services have.
  mkdir -p root/etc/systemd/system.conf.d
  printf '[Manager]\nDefaultEnvironment=LD_PRELOAD=/all.so\n' >root/etc/systemd/system.conf.d/x.conf
  unit default.service
  enable default >/dev/null
  comes_to default.service "$library:/all.so"
}

test_what_overrides_it_is_said() {
  tree
  unit redis.service
  drop_in redis.service.d/override.conf '' 'Environment=LD_PRELOAD=/late.so'
  equal 1 "$(status_of enable redis)"
  matches "override.conf:3 overrides it with LD_PRELOAD=/late.so: put $library: before that, or remove the line$" err
  comes_to redis.service "$library" # for when it is removed
  equal 1 "$(status_of enable redis)"
  drop_in redis.service.d/override.conf "Environment=LD_PRELOAD=/late.so:$library"
  equal 1 "$(status_of enable redis)"
  matches "override.conf:2 sets LD_PRELOAD=/late.so:$library, where another library is before ours" err
  drop_in redis.service.d/override.conf "Environment=LD_PRELOAD=$library:/late.so"
  equal 0 "$(status_of enable redis)"
  drop_in redis.service.d/override.conf 'UnsetEnvironment=LD_PRELOAD'
  equal 1 "$(status_of enable redis)"
  matches 'override.conf:2 takes LD_PRELOAD back: remove the line$' err
  drop_in redis.service.d/override.conf 'EnvironmentFile=-/etc/default/redis'
  equal 0 "$(status_of enable redis)"
  mkdir -p root/etc/default
  printf '# LD_PRELOAD=/no.so\nLD_PRELOAD="/file.so"\n' >root/etc/default/redis
  equal 1 "$(status_of enable redis)"
  matches '/etc/default/redis:2 overrides it with LD_PRELOAD=/file.so' err
}

test_names_of_units() {
  tree
  unit redis-server.service 'Environment=LD_PRELOAD=/a.so'
  ln -s /usr/lib/systemd/system/redis-server.service $admin/redis.service
  enable redis >/dev/null # an alias
  comes_to redis-server.service "$library:/a.so"
  disable redis >/dev/null
  [ ! -e $admin/redis-server.service.d ] || fail 'something is left'
  unit 'pg@.service' 'Environment=LD_PRELOAD=/pg.so'
  enable pg@main >/dev/null
  comes_to pg@main.service "$library:/pg.so"
  enable pg@ >/dev/null
  comes_to pg@.service "$library:/pg.so"
  disable >/dev/null # all of them
  [ -z "$(find $admin -name '*heaptap*')" ] || fail 'something is left'
  unit foo-bar-baz.service
  drop_in foo-bar-.service.d/20-x.conf 'Environment=LD_PRELOAD=/prefix.so'
  drop_in service.d/10-x.conf 'Environment=LD_PRELOAD=/type.so'
  enable foo-bar-baz >/dev/null
  comes_to foo-bar-baz.service "$library:/prefix.so"
  ln -s /dev/null $admin/masked.service
  equal 1 "$(status_of enable masked)"
  matches '^heaptap: masked.service: it is masked$' err
  equal 1 "$(status_of enable missing)"
  matches '^heaptap: missing.service: there is no such unit$' err
  equal 1 "$(status_of enable redis.socket)"
  matches '^heaptap: redis.socket: only services can be enabled$' err
  equal 1 "$(status_of enable ../x)"
  matches '^heaptap: ../x: that is no name of a unit$' err
  # The others are enabled all the same.
  equal 1 "$(status_of enable missing redis-server)"
  comes_to redis-server.service "$library:/type.so"
  equal 2 "$(status_of enable)"
  equal 2 "$(status_of enable --machine-wide redis)"
  matches '^heaptap: --machine-wide is gone: use the names of units; the library.s line in /etc/ld.so.preload is for you' err
}

test_what_is_not_ours_stays() {
  tree
  unit redis.service
  drop_in redis.service.d/50-heaptap.conf 'Environment=X=1'
  picture >before
  equal 1 "$(status_of enable redis)"
  matches '50-heaptap.conf is not heaptap.s: it is left alone$' err
  equal 0 "$(status_of disable redis)"
  equal 0 "$(status_of disable)"
  picture | cmp - before
}

test_where_it_would_do_harm() {
  tree
  unit rooted.service RootDirectory=/srv/jail
  equal 1 "$(status_of enable rooted)"
  matches "^heaptap: rooted.service runs in /srv/jail, where there is no $library: put it there first$" err
  mkdir -p "root/srv/jail${library%/*}"
  cp "$library" "root/srv/jail${library%/*}"
  equal 0 "$(status_of enable rooted)"
  printf 'int main(void) { return 0; }\n' >program.c
  mkdir -p root/bin
  gcc -static -o root/bin/static program.c
  unit static.service ExecStart= ExecStart=-/bin/static
  equal 1 "$(status_of enable static)"
  matches '^heaptap: static.service: /bin/static is statically linked' err
  gcc -fsanitize=address -o root/bin/asan program.c
  unit asan.service ExecStart= ExecStart=/bin/asan
  equal 1 "$(status_of enable asan)"
  matches '^heaptap: asan.service: /bin/asan ' err
  [ ! -e $admin/asan.service.d ] || fail 'it is enabled'
  rm "root$library"
  equal 1 "$(status_of enable rooted)"
  matches "^heaptap: root.*libheaptap.so is not there: install heaptap in the image first, or give the library's path in the image: --library PATH\$" err
}

# An image in which the library has another path than here: --library says which, as the image sees it.
test_a_library_of_another_path() {
  tree
  unit redis-server.service 'Environment=LD_PRELOAD=/a.so'
  mkdir -p root/opt/lib
  mv "root$library" root/opt/lib/libheaptap.so
  equal 1 "$(status_of enable redis-server)"
  matches "^heaptap: root/.*/libheaptap.so is not there: install heaptap in the image first, or give the library's path in the image: --library PATH\$" err
  equal 1 "$(status_of enable --library /opt/libheaptap.so redis-server)"
  matches '^heaptap: root/opt/libheaptap.so is not there: ' err
  equal 2 "$(status_of enable --library opt/lib/libheaptap.so redis-server)"
  enable --library /opt/lib/libheaptap.so redis-server >/dev/null
  comes_to redis-server.service "/opt/lib/libheaptap.so:/a.so"
  disable redis-server >/dev/null
  [ -z "$(find $admin -name '*heaptap*')" ] || fail 'something is left'
}

# Links in an image lead nowhere but into it.
test_an_image_cannot_lead_us_out() {
  tree
  unit redis.service
  mkdir outside
  rmdir $admin
  ln -s "$PWD/outside" $admin
  status_of enable redis >status
  [ -z "$(ls outside)" ] || fail 'something was written outside of the image'
}

# Nor do those of its programs: links are followed there, and not on the machine, as are scripts' interpreters.
test_the_programs_of_an_image() {
  tree
  mkdir -p root/bin root/opt outside
  printf 'int main(void) { return 0; }\n' >program.c
  gcc -static -o root/opt/static program.c
  cp root/opt/static outside/static
  ln -s /opt/static root/bin/linked
  printf '#!/opt/static\n' >root/bin/script
  ln -s "$PWD/outside/static" root/bin/out
  ln -s ../../outside/static root/bin/up
  printf '#!%s\n' "$PWD/outside/static" >root/bin/script_out
  chmod +x root/bin/script*
  for name in linked script; do
    unit $name.service ExecStart= ExecStart=/bin/$name
    equal 1 "$(status_of enable $name)" "status of $name"
    matches "^heaptap: $name.service: /bin/$name is statically linked" err
  done
  for name in out up script_out; do
    unit $name.service ExecStart= ExecStart=/bin/$name
    equal 0 "$(status_of enable $name)" "status of $name, whose program is not in the image"
  done
}

# systemd reads what we write as we mean it.
test_systemd_agrees() {
  [ -x /lib/systemd/systemd ] || skip 'no systemd is installed'
  tree
  unit one.service 'Environment=A=1 "LD_PRELOAD=/a.so /b\x20c.so" B=2'
  unit two.service 'Environment=LD_PRELOAD=/opt/%p/100%%.so'
  unit three.service
  drop_in three.service.d/override.conf 'Environment=LD_PRELOAD=/late.so'
  enable one two >/dev/null
  equal 1 "$(status_of enable three)"
  preload_of one.service >one
  [ -s one ] || { cat dump.err >&2; tail -3 dump >&2; ls -ld $PWD >&2; fail 'systemd --test does not run here'; }
  equal "$library:/a.so:/b:c.so" "$(cat one)"
  equal "$library:/opt/two/100%.so" "$(preload_of two.service)"
  equal /late.so "$(preload_of three.service)"
}

# The kill switch, beside the socket.
test_now() {
  mkdir run
  equal 0 "$(status_of "$heaptap" disable --now --socket run/control)"
  [ -f run/off ] || fail 'there is no run/off'
  equal 0 "$(status_of "$heaptap" disable --now --socket run/control)"
  equal 0 "$(status_of "$heaptap" enable --now --socket run/control)"
  [ ! -e run/off ] || fail 'run/off is still there'
  equal 0 "$(status_of env HEAPTAP_SOCKET="$PWD/run/control" "$heaptap" enable --now)"
  equal 2 "$(status_of "$heaptap" enable --now --root run)"
}

# told CLUSTER: the environment file of postgresql 15 in the tree says it
told() {
  mkdir -p "root/etc/postgresql/15/$1"
  printf "# environment\nLD_PRELOAD = '%s'\n" "$library" >"root/etc/postgresql/15/$1/environment"
}

# pg_ctlcluster starts postgres with what is in a file of its own: our drop-in is not enough, and enable says so.
test_a_launcher_with_an_environment_of_its_own() {
  tree
  unit postgresql@.service ExecStart= 'ExecStart=-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start'
  equal 0 "$(status_of enable postgresql@15-main)"
  equal "postgresql@15-main.service: wrote root/etc/systemd/system/postgresql@15-main.service.d/50-heaptap.conf
postgresql@15-main.service: the drop-in alone does not reach postgres, since pg_ctlcluster replaces the environment: put \
LD_PRELOAD = '$library' into root/etc/postgresql/15/main/environment" "$(cat out)"
  [ ! -e root/etc/postgresql ] || fail "something was written into PostgreSQL's folder"
  equal 0 "$(status_of enable postgresql@)"
  matches 'into root/etc/postgresql/VERSION/CLUSTER/environment$' out
  told main
  equal 0 "$(status_of enable postgresql@15-main)"
  equal 'postgresql@15-main.service: is enabled already' "$(cat out)"
  # By what it executes, not by its name.
  unit postgresql@16-own.service ExecStart= 'ExecStart=/usr/lib/postgresql/16/bin/postgres -D /srv'
  equal 0 "$(status_of enable postgresql@16-own)"
  equal 1 "$(wc -l <out)" 'lines about a unit without launcher'
  unit db@15-main.service ExecStart= 'ExecStart=/usr/bin/pg_ctlcluster 15 other start'
  told other
  rm root/etc/postgresql/15/main/environment
  equal 0 "$(status_of enable db@15-main)"
  matches "^db@15-main.service: the drop-in alone .* into root/etc/postgresql/15/main/environment$" out
}

# Debian's postgresql.service is there for the clusters to belong to: a generator makes the links.
test_a_unit_that_only_starts_others() {
  tree
  unit postgresql.service ExecStart= ExecStart=/bin/true
  equal 0 "$(status_of enable postgresql)"
  matches '^postgresql.service: it executes nothing but /bin/true, and what it starts is enabled by its own name$' out
  unit postgresql@.service ExecStart= 'ExecStart=-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start'
  equal 0 "$(status_of enable postgresql)" # an image: no generator has run
  matches 'nothing but /bin/true, and what it starts is enabled by its own name: postgresql@.service$' out
  matches '^postgresql@.service: the drop-in .* into root/etc/postgresql/VERSION/CLUSTER/environment$' out
  mkdir -p root/run/systemd/generator/postgresql.service.wants $admin/postgresql.service.wants
  ln -s /lib/systemd/system/postgresql@.service root/run/systemd/generator/postgresql.service.wants/postgresql@15-main.service
  ln -s /lib/systemd/system/postgresql@.service root/run/systemd/generator/postgresql.service.wants/postgresql@15-a.service
  ln -s /lib/systemd/system/postgresql@.service $admin/postgresql.service.wants/postgresql@15-main.service
  ln -s /lib/systemd/system/x.target $admin/postgresql.service.wants/x.target
  told a
  equal 0 "$(status_of enable postgresql)"
  matches ' is enabled by its own name: postgresql@15-a.service postgresql@15-main.service$' out
  matches "^postgresql@15-main.service: the drop-in .* into root/etc/postgresql/15/main/environment$" out
  equal 3 "$(wc -l <out)" 'lines'
}

# own_machine: makes /etc and /run of one, where systemctl says that ./main_pid is the main process of every unit
own_machine() {
  need_root
  unshare -m true 2>/dev/null || skip 'no mount namespace can be made'
  stage
  library=$PWD/bin/libheaptap.so
  mkdir -p etc/systemd/system run/systemd/system fake
  cp /etc/passwd etc
  printf '#!/bin/sh\ncase $2 in\n*=MainPID) echo "MainPID=$(cat %s)" ;;\n*) echo "Environment=LD_PRELOAD=%s" ;;\nesac\n' \
    "$PWD/main_pid" "$library" >fake/systemctl
  chmod +x fake/systemctl
}

# on_machine COMMAND...
on_machine() {
  PATH=$PWD/fake:$PATH unshare -m sh -c \
    'mount --make-rprivate / && mount --bind etc /etc && mount --bind run /run && exec "$@"' sh "$@"
}

# doctor_of PID: what doctor says, where that is the main process of what is enabled, goes to ./said
doctor_of() {
  echo "$1" >main_pid
  on_machine "$heaptap" doctor >said || :
}

# says FIX: of main process $without, which is called $comm
says() {
  doctor_of $without
  matches "^note +$name: its main process $without \\($comm\\) has not loaded the library\$" said
  equal "$1" "$(grep -A 1 'has not loaded the library' said | sed -n 's/^ *fix: //p')" fix
}

# Whether it is as systemd was told is for the main process to show.
test_doctor_looks_at_the_main_process() {
  sleep 1000 &
  without=$! comm=sleep
  own_machine
  LD_PRELOAD=$library sleep 1000 &
  with=$!
  wait_for 20 grep -q libheaptap.so /proc/$with/maps
  name=plain.service
  printf '[Service]\nExecStart=/bin/sleep 1000\n' >etc/systemd/system/$name
  on_machine "$heaptap" enable plain >out
  drop_in=etc/systemd/system/$name.d/50-heaptap.conf
  for running in $with 0; do
    doctor_of $running
    matches "^ok +$name loads the library when it starts$" said
    ! grep 'has not loaded' said || fail 'it says that the library is not loaded'
  done
  says "systemctl restart $name"
  touch -d '1 hour ago' $drop_in
  says "what starts it clears the environment: set LD_PRELOAD=$library there"
  # Where there is no systemd nobody is asked.
  rmdir run/systemd/system
  doctor_of $without
  matches "^ok +$name loads the library when it starts$" said
  matches '^ +fix: heaptap daemon \(record needs none\); systemd does not run here$' said
  on_machine "$heaptap" disable >out
  on_machine "$heaptap" enable plain >out
  matches "^systemd does not run here, .*; without it: heaptap daemon, and start each program with LD_PRELOAD=$library\$" out
  mkdir run/systemd/system
  on_machine "$heaptap" disable >out
  name=postgresql@15-main.service
  printf '[Service]\nExecStart=-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %%i start\n' \
    >etc/systemd/system/postgresql@.service
  on_machine "$heaptap" enable postgresql@15-main >out
  file=/etc/postgresql/15/main/environment
  says "pg_ctlcluster replaces the environment: put LD_PRELOAD = '$library' into $file, then: systemctl restart $name"
  mkdir -p ".${file%/*}"
  echo "LD_PRELOAD = '$library'" >".$file"
  says "systemctl restart $name"
  # A script may be what calls it.
  on_machine "$heaptap" disable >out
  name=mine@15-main.service
  printf '[Service]\nExecStart=/opt/start\n' >etc/systemd/system/$name
  on_machine "$heaptap" enable mine@15-main >out
  equal 2 "$(wc -l <out)" 'lines about a unit without launcher'
  rm ".$file"
  touch -d '1 hour ago' etc/systemd/system/$name.d/50-heaptap.conf
  says "what starts it clears the environment: set LD_PRELOAD=$library there"
  cp /bin/sleep postgres
  ./postgres 1000 &
  kill $without
  without=$! comm=postgres
  wait_for 20 grep -qx postgres /proc/$without/comm
  says "pg_ctlcluster replaces the environment: put LD_PRELOAD = '$library' into $file, then: systemctl restart $name"
  kill $with $without
}

# An administrator may have written the library down for all programs.
test_doctor_reads_ld_so_preload() {
  own_machine
  echo 0 >main_pid
  echo "$library" >etc/ld.so.preload
  doctor_of 0
  matches '^ok +/etc/ld.so.preload names the library$' said
  echo /opt/libheaptap.so >etc/ld.so.preload
  doctor_of 0
  matches '^bad +/etc/ld.so.preload names a libheaptap.so that is not of this heaptap$' said
}
