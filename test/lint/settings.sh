#!/usr/bin/env bash
# Settings are defined in base/guc.c only.
# Fix: define the variable there, declare it in base/guc.h as pln_guc_<name>.
grep -rnE '\b(DefineCustom[A-Z][a-z]+Variable|MarkGUCPrefixReserved|EmitWarningsOnPlaceholders)\b' \
  src --include='*.[chy]' | grep -v '^src/base/guc\.c:'
exit 0
