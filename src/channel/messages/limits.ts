/** Limits of the contents of messages, in addition to the body limits in message-bounds.ts. */
export const messageContentLimits = {
  /** Maximum length of circuit IDs, endpoint addresses and tag values. */
  circuitNameCharactersMax: 128,
  /** Maximum length of the reason why a circuit could not be routed. */
  reasonCharactersMax: 1024,
  /** Maximum sequences in one acknowledgment; an acknowledgment with more is refused. */
  xgressSequencesPerMessageMax: 16_384,
  /** Maximum bytes of the trace ID of a payload; a payload with a longer ID is refused. */
  xgressTraceIdBytesMax: 64,
  /**
   * Maximum bytes of a trace request, and of each header that the reply returns. A larger
   * request gets no reply. Also the maximum characters of each text that is read from a reply.
   */
  xgressControlBytesMax: 256,
  /** Circuits in one usage counter, which a controller decodes in one step. */
  usageCircuitsPerCounterMax: 32,
} as const
