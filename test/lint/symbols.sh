#!/usr/bin/env bash
# What the library exports starts with pln_ or pipeline_: the server loads libraries with global
# symbol scope, so other names can collide with those of other extensions.
# Fix: make it static, or name it pln_<module>_<verb>.
so=${PLN_SO:-pipeline.so}
[ -e "$so" ] || { echo "$so: not built; run make"; exit 1; }
# pg_finfo_* belongs to PG_FUNCTION_INFO_V1; names with __ are those of the compiler's runtime.
nm -D --defined-only "$so" | awk '{ print $3 }' |
  grep -vE '^(pln_|pipeline_|pg_finfo_pipeline_|pg_finfo_pln_|Pg_magic_func$|_PG_(init|fini|output_plugin_init)$|__)' |
  sed "s|^|pipeline.so exports |"
exit 0
