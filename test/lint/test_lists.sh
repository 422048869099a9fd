#!/usr/bin/env bash
# Every test file is listed once, one per line, and every listed file exists, with its expected
# output.  The TAP and pgTAP files are found by pattern; their names are checked.
# Fix: add the line to test/regress_schedule or test/isolation_schedule, or remove it.
check() {
  local schedule=$1 dir=$2 ext=$3 expected=$4 listed present
  grep -nvE '^(#.*|test: [a-z0-9_]+|)$' "$schedule" | sed "s|^|$schedule:|; s|$| is not \"test: name\"|"
  listed=$(sed -n 's/^test: *//p' "$schedule" | sort)
  present=$(find "$dir" -maxdepth 1 -name "*.$ext" -printf '%f\n' 2>/dev/null | sed "s/\.$ext$//" | sort)
  uniq -d <<<"$listed" | sed -n "s|..*|$schedule: & is listed twice|p"
  comm -23 <(sort -u <<<"$listed") <(echo "$present") | sed -n "s|..*|$schedule: $dir/&.$ext does not exist|p"
  comm -13 <(sort -u <<<"$listed") <(echo "$present") | sed -n "s|..*|$dir/&.$ext is not in $schedule|p"
  for name in $listed; do
    [ -e "$expected/$name.out" ] || echo "$expected/$name.out does not exist"
  done
  for out in "$expected"/*.out; do
    [ -e "$out" ] || continue
    name=$(basename "$out" .out)
    # name_1.out is an alternative for name.
    grep -qx -e "$name" -e "${name%_[0-9]}" <<<"$listed" || echo "$out belongs to no test"
  done
}
check test/regress_schedule sql sql expected
check test/isolation_schedule test/specs spec test/expected
find test/t -type f ! -name '[0-9][0-9][0-9]_*.pl' ! -name '*.pm' -printf '%p: TAP files are named NNN_topic.pl\n'
find test/t -name '*.pl' -printf '%f\n' | cut -c1-3 | sort | uniq -d |
  sed 's|$|: two TAP files have this number|'
exit 0
