# PGXS build of the pipeline extension. `make demo` and `make test` need nothing else.
EXTENSION = pipeline
DATA = pipeline--1.0.sql
MODULE_big = pipeline

# gram.c is generated and not in the repository
SRCS = $(filter-out src/dialect/gram.c,$(wildcard src/*.c src/*/*.c)) src/dialect/gram.c
OBJS = $(SRCS:.c=.o)

PG_CPPFLAGS = -Isrc -I$(srcdir)/src -MMD -MP
PG_CFLAGS = -Werror -Wno-error=deprecated-declarations $(EXTRA_CFLAGS)
EXTRA_CLEAN = $(OBJS:.o=.d) src/dialect/gram.c

PG_CONFIG ?= pg_config
# Bitcode is of no use to us: the library has no functions that JIT could inline.
with_llvm = no
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
override with_llvm = no

BISON ?= bison
src/dialect/gram.c: src/dialect/gram.y
	$(BISON) -Wall -Wno-empty-rule -Werror -o $@ $<

-include $(OBJS:.o=.d)
