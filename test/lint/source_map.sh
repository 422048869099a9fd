#!/usr/bin/env bash
# Every C file is named in the source map of docs/architecture.md, and every file that the map
# names exists.  door/api_<topic>.c stands for all of that pattern.
# Fix: edit the map in the commit that adds, moves or removes the file.
map=$(sed -n '/^## 1\. Source map/,/^### 1\.1/p' docs/architecture.md)
[ -n "$map" ] || echo "docs/architecture.md: no section \"1. Source map\""

# "folder/name" for every name of a row; a name without folder has that of the one before it.
named=$(sed -n 's/^| `\(.*\)` |.*/\1/p' <<<"$map" | while IFS= read -r row; do
  folder=
  tr -d '`' <<<"$row" | tr ',' '\n' | sed 's/^ *//; s/ *$//' | while IFS= read -r name; do
    case $name in
      */*) folder=${name%/*}/ ;;
    esac
    echo "src/$folder${name##*/}"
  done
done)

find src \( -name '*.c' -o -name '*.y' \) ! -name gram.c | sort | while IFS= read -r file; do
  case $file in src/door/api_*.c) continue ;; esac
  grep -qxF "$file" <<<"$named" || echo "$file is not in the source map"
done
while IFS= read -r file; do
  case $file in *'<'*) continue ;; esac
  [ -e "$file" ] || echo "docs/architecture.md: $file does not exist"
done <<<"$named"
exit 0
