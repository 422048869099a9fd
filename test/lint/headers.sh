#!/usr/bin/env bash
# Each header compiles alone after postgres.h, without warnings, and carries the guard
# PIPELINE_<FOLDER>_<FILE>_H.
# Fix: include what the header uses, or forward-declare the struct.
pg_config=${PG_CONFIG:-pg_config}
include=$("$pg_config" --includedir-server)
flags=$("$pg_config" --cflags)
one=$(mktemp --suffix=.c)
trap 'rm -f "$one"' EXIT
for header in src/*/*.h; do
  # kwlist.h is a list for an X macro: included several times, with the macro defined before.
  case $header in */gram.h | src/dialect/kwlist.h) continue ;; esac
  [ -e "$header" ] || continue
  rel=${header#src/}
  guard=PIPELINE_$(tr 'a-z/.' 'A-Z__' <<<"$rel")
  grep -qx "#ifndef $guard" "$header" || echo "$header: the guard is not $guard"
  printf '#include "postgres.h"\n#include "%s"\n' "$rel" >"$one"
  # Twice, so that a broken guard shows.
  printf '#include "%s"\n' "$rel" >>"$one"
  # shellcheck disable=SC2086
  gcc $flags -Werror -fsyntax-only -Isrc -I"$include" "$one" 2>&1 |
    sed "s|^|$header: |" | head -n 5
done
exit 0
