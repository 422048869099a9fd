# lib.sh - what the scripts share: the ordinary user, work directories, private installations
# and throwaway clusters.  Source it; it sets ROOT and changes nothing else.
#
# Servers refuse root.  When the caller is root, everything that runs servers happens as an
# ordinary user in a directory below /tmp that this user owns; the tree itself is only read, so
# a clone owned by root (or by anybody) works, and git is not needed.
#
# Nothing is installed into the server's own directories: pln_install_copy makes a private copy
# of the installation.  The server's programs find share and lib relative to themselves, so the
# copy is complete, and several runs cannot meet.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

PG_MAJOR=${PG_MAJOR:-15}
if [ -z "${PG_CONFIG:-}" ]; then
  if [ -x "/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" ]; then
    PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config
  else
    PG_CONFIG=pg_config
  fi
fi

# The variables of a caller's own database must not steer our clients.
unset PGHOST PGHOSTADDR PGPORT PGUSER PGDATABASE PGPASSWORD PGPASSFILE PGSERVICE PGSERVICEFILE \
  PGOPTIONS PGDATA PGTZ PGDATESTYLE PGCLIENTENCODING PGAPPNAME PGSSLMODE
export LC_ALL=C.UTF-8

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# The user that runs servers: the caller, or for root an ordinary one.
pln_user() {
  if [ "$(id -u)" != 0 ]; then
    id -un
  elif [ -n "${PIPELINE_USER:-}" ]; then
    echo "$PIPELINE_USER"
  elif id postgres >/dev/null 2>&1; then
    echo postgres
  else
    echo nobody
  fi
}

# as_user COMMAND...: run as that user; the working directory must be one it may read.
as_user() {
  if [ "$(id -u)" != 0 ]; then
    "$@"
  elif command -v runuser >/dev/null; then
    runuser -u "$(pln_user)" -- "$@"
  else
    setpriv --reuid="$(pln_user)" --regid="$(id -g "$(pln_user)")" --clear-groups -- "$@"
  fi
}

# pln_make_dir DIR: a directory of that user.
pln_make_dir() {
  mkdir -p "$1"
  [ "$(id -u)" != 0 ] || chown "$(pln_user)" "$1"
}

# pln_work_dir NAME: prints a fresh directory of that user, below /tmp because socket paths are
# limited to about 100 bytes.
pln_work_dir() {
  local dir
  dir=$(mktemp -d "/tmp/$1.XXXXXX")
  chmod 755 "$dir"
  pln_make_dir "$dir"
  echo "$dir"
}

# pln_copy_tree DIR: the tree without what was built in it.  A DIR that has a copy already keeps
# its objects, so that make builds only what changed.
pln_copy_tree() {
  local dir=$1
  pln_make_dir "$dir"
  find "$dir" -type f ! -name '*.o' ! -name '*.d' -delete
  tar -C "$ROOT" --exclude-vcs --exclude='*.o' --exclude='*.d' --exclude='*.so' --exclude='*.bc' \
    --exclude='./src/dialect/gram.[ch]' --exclude='./tmp_check' --exclude='./.dev-cluster' \
    --exclude='./results' --exclude='./coverage' -cf - . | tar -C "$dir" --no-same-owner -xf -
  [ "$(id -u)" != 0 ] || chown -R "$(pln_user)" "$dir"
}

# pln_install_copy DIR: a private copy of the PostgreSQL installation.  Sets PLN_BIN (programs),
# PLN_PG_CONFIG, PLN_PGXS_TEST (src/test of pgxs).
pln_install_copy() {
  local inst=$1 prefix d rel
  command -v "$PG_CONFIG" >/dev/null || die "no pg_config; run scripts/install-deps.sh"
  local bin share lib
  bin=$(readlink -f "$("$PG_CONFIG" --bindir)")
  share=$(readlink -f "$("$PG_CONFIG" --sharedir)")
  lib=$(readlink -f "$("$PG_CONFIG" --pkglibdir)")
  prefix=$bin
  while [[ "$share/" != "$prefix/"* || "$lib/" != "$prefix/"* ]]; do prefix=$(dirname "$prefix"); done
  PLN_BIN=$inst${bin#"$prefix"}
  PLN_PG_CONFIG=$PLN_BIN/pg_config
  PLN_PGXS_TEST=$inst${lib#"$prefix"}/pgxs/src/test
  [ -e "$inst/.complete" ] && return
  for d in "$bin" "$lib" "$share"; do
    rel=${d#"$prefix"}
    mkdir -p "$inst$rel"
    # Bitcode and the JIT provider are most of the volume and of no use to a test.
    tar -C "$d" --exclude='./bitcode' --exclude='./llvmjit*' -cf - . |
      tar -C "$inst$rel" --no-same-owner -xf -
  done
  for d in --includedir --includedir-server; do
    d=$(readlink -f "$("$PG_CONFIG" $d)")
    rel=${d#"$prefix"}
    if [ "$rel" != "$d" ] && [ ! -e "$inst$rel" ]; then
      mkdir -p "$(dirname "$inst$rel")"
      ln -s "$d" "$inst$rel"
    fi
  done
  touch "$inst/.complete"
  [ "$(id -u)" != 0 ] || chown -hR "$(pln_user)" "$inst"
}

# pln_build SRC [make arguments]: build and install a copy of the tree into the private copy.
pln_build() {
  local src=$1
  shift
  as_user make -s -C "$src" -j "$(pln_jobs)" PG_CONFIG="$PLN_PG_CONFIG" "$@" all &&
    as_user make -s -C "$src" PG_CONFIG="$PLN_PG_CONFIG" "$@" install >/dev/null
}

pln_jobs() {
  echo "${PIPELINE_JOBS:-$(nproc 2>/dev/null || echo 2)}"
}

# pln_have_extension NAME: is it in the private copy?
pln_have_extension() {
  [ -e "$("$PLN_PG_CONFIG" --sharedir)/extension/$1.control" ]
}

# pln_preload: the value of shared_preload_libraries; pg_cron is optional.
pln_preload() {
  if pln_have_extension pg_cron; then echo pg_cron,pipeline; else echo pipeline; fi
}

# pln_test_conf FILE: test/pipeline.conf, without pg_cron where it is not installed.
pln_test_conf() {
  if pln_have_extension pg_cron; then
    cat "$ROOT/test/pipeline.conf" >"$1"
  else
    sed -e 's/pg_cron,//' -e '/^cron\./d' "$ROOT/test/pipeline.conf" >"$1"
  fi
}

# pln_cluster_init DIR PORT: initdb into DIR/data; settings on standard input.
# The socket is in DIR, and there is no TCP.
pln_cluster_init() {
  local dir=$1 port=$2
  pln_make_dir "$dir"
  as_user "$PLN_BIN/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 -N \
    >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; return 1; }
  {
    echo "port = $port"
    echo "listen_addresses = ''"
    echo "unix_socket_directories = '$dir'"
    echo "timezone = 'UTC'"
    echo "log_timezone = 'UTC'"
    cat
  } >>"$dir/data/postgresql.conf"
}

pln_cluster_start() {
  if ! (cd / && as_user "$PLN_BIN/pg_ctl" -D "$1/data" -l "$1/server.log" -w -t 60 start \
    >/dev/null </dev/null); then
    tail -n 20 "$1/server.log" >&2
    return 1
  fi
}

pln_cluster_stop() {
  [ ! -e "$1/data/postmaster.pid" ] ||
    (cd / && as_user "$PLN_BIN/pg_ctl" -D "$1/data" -w -t 60 -m fast stop >/dev/null 2>&1)
}
