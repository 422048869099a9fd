-- The throwaway cluster has the library preloaded, with its settings.
SHOW pipeline.messages;
SHOW TimeZone;
SHOW DateStyle;
