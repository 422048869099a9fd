/*
 * scan.h
 *	  Tokens of the dialect: a thin layer over the server's own lexer.
 *
 * A token's type is the code that the core lexer gives it (an ASCII character or one of
 * the names below, whose numbers are part of the core lexer's interface), or one of
 * ours.  gram.y begins its list of tokens with them, in this order; the regression test
 * dialect_parse has every kind in it, so that a change of the server would show.
 */
#ifndef PIPELINE_DIALECT_SCAN_H
#define PIPELINE_DIALECT_SCAN_H

#include "dialect/parse.h"

#define PLN_T_END			0
#define PLN_T_IDENT			258
#define PLN_T_UIDENT		259
#define PLN_T_FCONST		260
#define PLN_T_SCONST		261
#define PLN_T_USCONST		262
#define PLN_T_BCONST		263
#define PLN_T_XCONST		264
#define PLN_T_OP			265
#define PLN_T_ICONST		266
#define PLN_T_PARAM			267
#define PLN_T_TYPECAST		268
#define PLN_T_DOT_DOT		269
#define PLN_T_COLON_EQUALS	270
#define PLN_T_EQUALS_GREATER 271
#define PLN_T_LESS_EQUALS	272
#define PLN_T_GREATER_EQUALS 273
#define PLN_T_NOT_EQUALS	274

/* ours: a pipeline parameter that is not resolved yet */
#define PLN_T_PARAMREF		900

typedef struct PlnToken
{
	int			type;
	char		quote;			/* ' " ` or $; 0 when not quoted */
	bool		identifier_param;	/* PARAMREF: written IDENTIFIER(:name) */
	char	   *str;			/* identifier (folded unless quoted), string value, parameter
								 * name; else the text */
	char	   *text;			/* what to write in place of the source text; NULL = that text */
	int			location;		/* first byte in the source */
	int			end;			/* behind its last byte */
} PlnToken;

typedef struct PlnTokens
{
	PlnToken   *tok;			/* n tokens, then one of type PLN_T_END */
	int			n;
} PlnTokens;

extern PlnTokens *pln_scan(PlnScript *script);

/* Is the token this bare (not quoted) word, written in lower case here? */
extern bool pln_token_is(const PlnToken *token, const char *word);

/* Is it an identifier that is no reserved word of the server? */
extern bool pln_token_names_relation(const PlnToken *token);

#endif							/* PIPELINE_DIALECT_SCAN_H */
