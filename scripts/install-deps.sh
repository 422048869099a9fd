#!/usr/bin/env bash
# install-deps.sh - install what building and testing needs, on Debian and its relatives.
#
# Silent and fast when nothing is missing.  Missing packages are installed with apt by root or
# with sudo where that asks for no password; otherwise the command to run is printed and the
# script ends with 1.
set -euo pipefail

PG_MAJOR=${PG_MAJOR:-15}

# package  what proves that it is there (a file, or a command without slash)
needs() {
  cat <<LIST
postgresql-$PG_MAJOR /usr/lib/postgresql/$PG_MAJOR/bin/postgres
postgresql-server-dev-$PG_MAJOR /usr/lib/postgresql/$PG_MAJOR/lib/pgxs/src/makefiles/pgxs.mk
postgresql-$PG_MAJOR-cron /usr/share/postgresql/$PG_MAJOR/extension/pg_cron.control
postgresql-$PG_MAJOR-pgtap /usr/share/postgresql/$PG_MAJOR/extension/pgtap.control
libcurl4-openssl-dev curl-config
zlib1g-dev /usr/include/zlib.h
libipc-run-perl /usr/share/perl5/IPC/Run.pm
perl prove
bison bison
make make
gcc gcc
jq jq
LIST
}

# Another installation than the packaged one is the caller's own affair: only tools are checked.
own_server=
if [ -n "${PG_CONFIG:-}" ] && command -v "$PG_CONFIG" >/dev/null; then
  case $(readlink -f "$("$PG_CONFIG" --bindir)") in
    "/usr/lib/postgresql/$PG_MAJOR/bin") ;;
    *) own_server=yes ;;
  esac
fi

missing=()
while read -r package proof; do
  if [ -n "$own_server" ] && [[ $package == postgresql-* ]]; then continue; fi
  case $proof in
    /*) [ -e "$proof" ] || missing+=("$package") ;;
    *) command -v "$proof" >/dev/null || missing+=("$package") ;;
  esac
done < <(needs)

[ ${#missing[@]} -gt 0 ] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "install-deps: missing: ${missing[*]} (names of Debian packages; no apt-get here)" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  echo "install-deps: missing packages; as root run:" >&2
  echo "  apt-get update && $install" >&2
  exit 1
fi
echo "install-deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# env carries the setting through sudo.
run_apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >>"$log" 2>&1 </dev/null
}
if ! { run_apt apt-get update && run_apt $install; }; then
  tail -n 20 "$log" >&2
  echo "install-deps: apt failed; what was tried: $install" >&2
  exit 1
fi
