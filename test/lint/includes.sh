#!/usr/bin/env bash
# Includes lead to lower levels only (the graph in docs/architecture.md); folders of one level
# never include each other, but catalog uses the enums of dialect/nodes.h; dialect, graph and
# files never see catalog; update and analyze see
# no more of flow than flow/flow.h.  Every .c file includes postgres.h first.
# Fix: a wished-for upward include means that a struct lives in the wrong folder; move it down.

# What each folder may include besides itself: everything below the heads of its arrows.
base_set='base compat'
declare -A may=(
  [compat]=''
  [base]='compat'
  [catalog]="dialect $base_set"
  [graph]="$base_set"
  [dialect]="$base_set"
  [files]="$base_set"
  [expect]="dialect catalog $base_set"
  [write]="expect dialect catalog $base_set"
  [source]="files catalog $base_set"
  [sched]="catalog $base_set"
  [ivm]="source write files expect catalog $base_set"
  [flow]="ivm source write files expect catalog $base_set"
  [analyze]="dialect graph flow ivm source write files expect catalog $base_set"
  [update]="analyze dialect flow graph ivm source write files expect catalog $base_set"
  [door]="update sched analyze dialect graph flow ivm source write files expect catalog $base_set"
)
all="${!may[*]}"

for file in src/*.[chy] src/*/*.[chy]; do
  case $file in */gram.[ch]) continue ;; esac
  [ -e "$file" ] || continue
  folder=$(basename "$(dirname "$file")")
  if [ "$folder" = src ]; then
    allowed=$all
  elif [ -z "${may[$folder]+x}" ]; then
    echo "$file: folder \"$folder\" is not in the source map"
    continue
  else
    allowed="$folder ${may[$folder]}"
  fi
  if [[ $file == *.c ]]; then
    first=$(grep -m1 '^#include' "$file")
    [ "$first" = '#include "postgres.h"' ] || echo "$file: the first include is not \"postgres.h\""
  fi
  while IFS=: read -r line include; do
    target=${include#*\"}
    target=${target%\"*}
    [ -e "src/$target" ] || [[ $target == dialect/gram.h ]] || {
      # A bare name that is a neighbour's would hide its folder from this check.
      [ ! -e "$(dirname "$file")/$target" ] ||
        echo "$file:$line: write \"$folder/$target\" with its folder"
      continue
    }
    to=${target%%/*}
    case " $allowed " in
      *" $to "*) ;;
      *) echo "$file:$line: $folder may not include $target" ;;
    esac
    if [[ $folder == update || $folder == analyze ]] && [[ $to == flow && $target != flow/flow.h ]]; then
      echo "$file:$line: $folder sees only flow/flow.h of flow, not $target"
    fi
  done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' "$file")
done
exit 0
