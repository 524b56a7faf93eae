/** Limits of the contents of messages, in addition to the body limits in message-bounds.ts. */
export const messageContentLimits = {
  /** IDs of circuits, addresses of their ends and values of their tags. */
  circuitNameCharactersMax: 128,
  /** Reason why a circuit could not be routed. */
  reasonCharactersMax: 1024,
  /** Sequences in one acknowledgement, bytes of a trace ID, and of a control; beyond: refused. */
  xgressSequencesPerMessageMax: 16_384,
  xgressTraceIdBytesMax: 64,
  xgressControlBytesMax: 256,
  /** Circuits in one usage counter, which a controller decodes in one step. */
  usageCircuitsPerCounterMax: 32,
} as const
