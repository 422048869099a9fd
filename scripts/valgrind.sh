#!/usr/bin/env bash
# valgrind.sh [REGEX] - the regress files under valgrind's memcheck.
#
# The private copy's postgres is wrapped.  The packaged server is not built for valgrind, so its
# own reports (padding that it writes, memory that it keeps) are not ours: reports count that
# have a frame of our library.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
command -v valgrind >/dev/null || die "no valgrind; install it with: apt-get install valgrind"

export PIPELINE_WORK PIPELINE_SUITE_TIMEOUT=7200
PIPELINE_WORK=$(pln_work_dir pipeline-valgrind)
trap 'rm -rf "$PIPELINE_WORK"' EXIT
pln_install_copy "$PIPELINE_WORK/inst"
logs=$PIPELINE_WORK/valgrind
pln_make_dir "$logs"
mv "$PLN_BIN/postgres" "$PLN_BIN/postgres.real"
cat >"$PLN_BIN/postgres" <<WRAP
#!/bin/sh
case \$1 in
  # initdb and version checks are not what is tested
  --boot | --single | -V | --version | --describe-config | -C | --check) exec "$PLN_BIN/postgres.real" "\$@" ;;
esac
exec valgrind -q --leak-check=no --track-origins=yes --trace-children=yes --num-callers=30 \\
  --log-file="$logs/%p" "$PLN_BIN/postgres.real" "\$@"
WRAP
chmod 755 "$PLN_BIN/postgres"

status=0
"$ROOT/scripts/test.sh" --suites regress --tests "${1:-}" --label valgrind \
  --make 'EXTRA_CFLAGS=-O1 -Wno-error=maybe-uninitialized' || status=$?

# One report is a paragraph; print those that pass through our library.
own=$(cd "$PIPELINE_WORK/src/src" && find . -name '*.[chy]' -printf '%f|' | sed 's/|$//; s/\./\\./g')
reports=$(cat "$logs"/* 2>/dev/null | sed 's/^==[0-9]*== \{0,1\}//' | OWN=$own perl -00 -ne '
  print if m{\(in [^)]*/pipeline\.so\)|\(($ENV{OWN}):\d+\)}' || true)
if [ -n "$reports" ]; then
  printf '%s\n' "$reports" | head -n 200
  echo "valgrind: reports with frames of the library"
  exit 1
fi
echo "valgrind: no report with a frame of the library"
exit "$status"
