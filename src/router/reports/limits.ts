/** Inspections, traces, and reports to controllers. */
export const reportLimits = {
  /** Messages of a controller that are answered at a time; more are refused. */
  inspectedValuesMax: 64,
  /** One value of an inspection, in characters; a longer one is told as too long. */
  inspectedCharactersMax: 1024 * 1024,
  /** Network interfaces that controllers are told of, and addresses of each. */
  interfacesMax: 256,
  interfaceAddressesMax: 64,
  /** Controllers are told of interfaces again after so long when they did not answer. */
  interfacesAgainMs: 60_000,
  /** The trace file; full, it becomes the one of before. */
  traceBytesMax: 64 * 1024 * 1024,
  /** Bytes that wait at the controller with a report of usage; more waits in the counts. */
  usageQueuedBytesMax: 1024 * 1024,
} as const
