/** Limits of the contents of messages, beside the bounds of whole bodies in message-bounds.ts. */
export const messageContentLimits = {
  /** Ids of circuits, names of their ends and values of their tags. */
  circuitNameCharactersMax: 128,
  /** Why a circuit could not be routed. */
  reasonCharactersMax: 1024,
  /** Sequences of one acknowledgement, the trace id of a payload, and a control: else refused. */
  xgressSequencesPerMessageMax: 16_384,
  xgressTraceIdBytesMax: 64,
  xgressControlBytesMax: 256,
  /** Circuits of one usage counter, which a controller decodes in one step. */
  usageCircuitsPerCounterMax: 32,
} as const
