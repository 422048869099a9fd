# PGXS build of the pipeline extension.
#
#   make, make install      build, install into the server of PG_CONFIG
#   make test               everything, in throwaway servers; installs nothing into the system
#                           SUITES="regress tap" and TESTS=regex narrow it down
#   make installcheck       regress, isolation and TAP against the installed extension
#   make demo, make bench [BENCH=name], make lint, make format, make format-check,
#   make coverage, make valgrindcheck
EXTENSION = pipeline
DATA = pipeline--1.0.sql
MODULE_big = pipeline
.DEFAULT_GOAL := all

# These call scripts that find the server themselves, and install it first where it is missing.
script_targets = deps test demo bench lint format format-check coverage valgrindcheck

GRAMMAR = $(wildcard src/dialect/gram.y)
SRCS = $(filter-out src/dialect/gram.c,$(wildcard src/*.c src/*/*.c))
OBJS = $(SRCS:.c=.o) $(GRAMMAR:.y=.o)

PG_CPPFLAGS = -Isrc -I$(srcdir)/src -MMD -MP
# `make WERROR=` builds in spite of the warnings of a compiler that nobody has tried.
WERROR = -Werror -Wno-error=deprecated-declarations
PG_CFLAGS = $(WERROR) $(EXTRA_CFLAGS)
PG_LDFLAGS = $(EXTRA_LDFLAGS)
SHLIB_LINK = -lz
EXTRA_CLEAN = $(OBJS:.o=.d) src/dialect/gram.c tmp_check results \
	output_iso test/output_iso test/results test/tmp_check log coverage regression.diffs \
	regression.out

REGRESS = $(shell sed -n 's/^test: *//p' test/regress_schedule)
ISOLATION = $(shell sed -n 's/^test: *//p' test/isolation_schedule)
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl
# A server of its own; clients with the settings that users have, not those of pg_regress.
throwaway_opts = --temp-instance=./tmp_check/$(1) --temp-config=test/pipeline.conf \
	--encoding=UTF8 --no-locale --launcher='env -u PGTZ -u PGDATESTYLE -u PGOPTIONS'
REGRESS_OPTS = $(call throwaway_opts,regress)
ISOLATION_OPTS = $(call throwaway_opts,isolation) --inputdir=test --outputdir=output_iso
REGRESS_PREP = tmp_check

ifneq ($(filter-out $(script_targets),$(or $(MAKECMDGOALS),all)),)
PG_CONFIG ?= pg_config
# Bitcode is of no use to us: the library has no functions that JIT could inline.
override with_llvm = no
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error no pg_config; install the packages that scripts/install-deps.sh names)
endif
include $(PGXS)

# After the include, which sets them too.  One name of the database, that of test/pipeline.conf.
CONTRIB_TESTDB = contrib_regression
ISOLATION_TESTDB = contrib_regression
PG_PROVE_FLAGS += -I test/lib

# Nobody but the grammar itself needs its token numbers, so there is no gram.h.
src/dialect/gram.c: src/dialect/gram.y
	bison -Wall -Wno-empty-rule -Werror -o $@ $<

# pg_regress makes one level of directories only.
tmp_check:
	mkdir -p $@

-include $(OBJS:.o=.d)
endif

.PHONY: $(script_targets)

deps:
	@scripts/install-deps.sh

test: deps
	@scripts/test.sh --suites "$(SUITES)" --tests "$(TESTS)"

lint: deps
	@scripts/test.sh --suites lint --tests "$(TESTS)"

demo: deps
	@scripts/demo.sh

bench: deps
	@scripts/bench.sh $(BENCH)

coverage: deps
	@scripts/coverage.sh

valgrindcheck: deps
	@scripts/valgrind.sh "$(TESTS)"

format:
	@scripts/format.sh

format-check:
	@scripts/format.sh --check
