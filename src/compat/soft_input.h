/*
 * soft_input.h
 *	  Text to a value without raising when the text is not one.
 */
#ifndef PIPELINE_COMPAT_SOFT_INPUT_H
#define PIPELINE_COMPAT_SOFT_INPUT_H

typedef enum PlnSoftResult
{
	PLN_SOFT_OK,
	PLN_SOFT_BAD,				/* the text is not a value of the type */
	PLN_SOFT_UNKNOWN			/* only the type's input function can tell, and it raises */
} PlnSoftResult;

/*
 * As an explicit cast of the text to the type with this typmod would do it: character types
 * are cut, numeric is rounded to its scale.
 */
extern PlnSoftResult pln_soft_input(Oid type, int32 typmod, char *text, Datum *result);

#endif							/* PIPELINE_COMPAT_SOFT_INPUT_H */
