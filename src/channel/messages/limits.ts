/** Limits of the contents of messages, in addition to the body limits in message-bounds.ts. */
export const messageContentLimits = {
  /** Maximum characters of circuit IDs, endpoint addresses and tag values. */
  circuitNameCharactersMax: 128,
  /** Maximum characters of the reason why a circuit could not be routed. */
  reasonCharactersMax: 1024,
  /** Maximum sequence numbers in one acknowledgment; an acknowledgment with more is refused. */
  xgressSequencesPerMessageMax: 16_384,
  /** Maximum bytes of the trace ID of a payload; a payload with a longer ID is refused. */
  xgressTraceIdBytesMax: 64,
  /**
   * Maximum bytes of a trace request, and of each header that its reply repeats; a larger request
   * gets no reply. Also the maximum characters of each text in a received reply.
   */
  xgressControlBytesMax: 256,
  /** Maximum circuits in one usage counter, which a controller decodes in one step. */
  usageCircuitsPerCounterMax: 32,
} as const
