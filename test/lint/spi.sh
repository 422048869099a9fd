#!/usr/bin/env bash
# SPI is called by base/spi.c only.
# Fix: use pln_spi_run and its relatives of base/spi.h.
#
# Exceptions, with their reason.  A procedure that commits needs a non-atomic SPI connection of
# its own level; these files may open one and end transactions in it, and run nothing through it.
transaction_files='src/update/[a-z_]*\.c|src/door/language\.c|src/door/api_update\.c'
transaction_calls='SPI_connect_ext|SPI_finish|SPI_commit|SPI_commit_and_chain|SPI_rollback|SPI_rollback_and_chain|SPI_start_transaction|SPI_result_code_string|SPI_inside_nonatomic_context'

# Constants (SPI_OK_SELECT) and the words of comments are no calls.
grep -rnoE '\bSPI_[a-z_]+[[:space:]]*\(' src --include='*.[chy]' | sed 's/[[:space:]]*($//' |
  grep -v '^src/base/spi\.c:' |
  grep -vE "^($transaction_files):[0-9]+:($transaction_calls)$"
grep -rn '"executor/spi\.h"' src --include='*.[chy]' | grep -v '^src/base/spi\.c:' |
  grep -vE "^($transaction_files):"
exit 0
