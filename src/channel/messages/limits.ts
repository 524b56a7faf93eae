/** Limits of the contents of messages, in addition to the body limits in message-bounds.ts. */
export const messageContentLimits = {
  /** Maximum length of circuit IDs, endpoint addresses and tag values. */
  circuitNameCharactersMax: 128,
  /** Maximum length of the reason why a circuit could not be routed. */
  reasonCharactersMax: 1024,
  /**
   * Maximum sequences in one acknowledgement, bytes in a trace ID, and bytes in a control message;
   * more is refused.
   */
  xgressSequencesPerMessageMax: 16_384,
  xgressTraceIdBytesMax: 64,
  xgressControlBytesMax: 256,
  /** Circuits in one usage counter, which a controller decodes in one step. */
  usageCircuitsPerCounterMax: 32,
} as const
