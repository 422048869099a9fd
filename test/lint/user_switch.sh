#!/usr/bin/env bash
# The user, the security context and the settings of a nest level change in base/secctx.c only.
# Fix: use pln_enter_metadata, pln_enter_owner, pln_enter_settings and pln_leave.
grep -rnE '\b(SetUserIdAndSecContext|SetUserIdAndContext|SetSessionAuthorization|NewGUCNestLevel|AtEOXact_GUC)\b' \
  src --include='*.[chy]' | grep -v '^src/base/secctx\.c:'
exit 0
