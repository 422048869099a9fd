#!/usr/bin/env bash
# libcurl is called by files/http.c only.
# Fix: go through files/http.h.
grep -rnE '\bcurl_[a-z_]+[[:space:]]*\(|curl/curl\.h' src --include='*.[chy]' |
  grep -v '^src/files/http\.c:'
exit 0
