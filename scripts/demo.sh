#!/usr/bin/env bash
# demo.sh - shows the extension at work in a throwaway server, which is gone afterwards.
#
# Runs the files demo/*.sql in order, echoing each statement before its result.  :demo_dir in
# them is a directory that the server may read, with a copy of demo/.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

work=$(pln_work_dir pipeline-demo)
cleanup() {
  pln_cluster_stop "$work/server" || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

echo "building and starting a throwaway server ..."
pln_install_copy "$work/inst"
pln_copy_tree "$work/src"
cd "$work/src"
pln_build "$work/src" </dev/null
pln_cluster_init "$work/server" 5432 <<CONF
fsync = off
shared_preload_libraries = '$(pln_preload)'
cron.database_name = 'postgres'
pipeline.allowed_locations = '$work/src/demo/'
CONF
pln_cluster_start "$work/server"

client() {
  as_user "$PLN_BIN/psql" -X -q -v ON_ERROR_STOP=1 -v "demo_dir=$work/src/demo" \
    -h "$work/server" -p 5432 -U postgres postgres "$@" </dev/null
}

client -c 'CREATE EXTENSION pipeline'
shopt -s nullglob
files=(demo/*.sql)
[ ${#files[@]} -gt 0 ] || die "demo/ has no SQL files"
for file in "${files[@]}"; do
  echo
  echo "=== $file"
  client --echo-queries -f "$file"
done
