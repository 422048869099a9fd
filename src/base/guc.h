/*
 * guc.h
 *	  All pipeline.* settings.
 */
#ifndef PIPELINE_BASE_GUC_H
#define PIPELINE_BASE_GUC_H

typedef enum PlnMessages
{
	PLN_MESSAGES_QUIET,
	PLN_MESSAGES_SUMMARY,
	PLN_MESSAGES_DETAIL
} PlnMessages;

typedef enum PlnOnBusy
{
	PLN_BUSY_ERROR,
	PLN_BUSY_SKIP,
	PLN_BUSY_WAIT
} PlnOnBusy;

typedef enum PlnLogUpdates
{
	PLN_LOG_FAILED,
	PLN_LOG_ALL,
	PLN_LOG_NONE
} PlnLogUpdates;

extern int	pln_guc_messages;
extern int	pln_guc_on_busy;
extern int	pln_guc_log_updates;
extern bool pln_guc_allow_dml;
extern char *pln_guc_allowed_locations;
extern int	pln_guc_source_lock_timeout;	/* ms */
extern int	pln_guc_event_retention;	/* minutes, 0 = for ever */
extern char *pln_guc_debug_point;

extern void pln_guc_init(void);

#endif							/* PIPELINE_BASE_GUC_H */
