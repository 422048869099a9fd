#!/usr/bin/env bash
# dev-cluster.sh start|stop|restart|status|psql [psql arguments]
#
# A throwaway server for trying things: the tree as it is, built and installed into a private
# copy of PostgreSQL, with pipeline, pg_cron and pgTAP created in database postgres.  start
# rebuilds what changed and restarts a running server; stop deletes everything.
# It lives in .dev-cluster/, for root below /tmp.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# Socket paths are short, so the server's directory is below /tmp for everybody.
id=$(printf '%s' "$ROOT" | cksum | cut -d' ' -f1)
run=/tmp/pipeline-dev.$id
if [ "$(id -u)" = 0 ]; then home=$run; else home=$ROOT/.dev-cluster; fi
port=5432

running() {
  [ -e "$run/data/postmaster.pid" ] &&
    as_user "$PLN_BIN/pg_isready" -q -h "$run" -p "$port" -U postgres
}

start() {
  "$ROOT/scripts/install-deps.sh"
  pln_make_dir "$home"
  pln_make_dir "$run"
  pln_install_copy "$home/inst"
  pln_copy_tree "$home/src"
  cd "$home/src"
  pln_build "$home/src" EXTRA_CFLAGS=-DUSE_ASSERT_CHECKING </dev/null
  if [ ! -e "$run/data" ]; then
    pln_cluster_init "$run" "$port" <<CONF
fsync = off
shared_preload_libraries = '$(pln_preload)'
cron.database_name = 'postgres'
CONF
  fi
  pln_cluster_stop "$run"
  pln_cluster_start "$run"
  local extension
  for extension in pgtap pg_cron pipeline; do
    pln_have_extension "$extension" || continue
    client -qc "SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS $extension"
  done
  echo "running; connect with: scripts/dev-cluster.sh psql   log: $run/server.log"
}

client() {
  (cd / && as_user "$PLN_BIN/psql" -X -v ON_ERROR_STOP=1 -h "$run" -p "$port" -U postgres postgres "$@")
}

case ${1:-} in
  start | restart) start ;;
  stop)
    if [ -e "$run" ]; then
      [ ! -e "$home/inst" ] || { pln_install_copy "$home/inst"; pln_cluster_stop "$run"; }
      rm -rf "$run" "$home"
    fi
    ;;
  status)
    if [ -e "$home/inst" ] && pln_install_copy "$home/inst" && running; then
      echo "running in $run"
    else
      echo "not running"
      exit 3
    fi
    ;;
  psql)
    shift
    [ -e "$home/inst" ] || die "not running; start it with: scripts/dev-cluster.sh start"
    pln_install_copy "$home/inst"
    client -v ON_ERROR_STOP=0 "$@"
    ;;
  *)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 2
    ;;
esac
