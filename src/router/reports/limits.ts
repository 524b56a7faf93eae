/** Limits for inspections, message traces, and reports to controllers. */
export const reportLimits = {
  /**
   * Maximum values in one inspection request; further values are omitted, and the response lists an
   * error.
   */
  inspectedValuesMax: 64,
  /** Maximum characters of one inspection value; a longer value is replaced by an error. */
  inspectedCharactersMax: 1024 * 1024,
  /** Maximum reported network interfaces; further ones are omitted. */
  interfacesMax: 256,
  /** Maximum reported addresses of one network interface; further addresses are omitted. */
  interfaceAddressesMax: 64,
  /**
   * Maximum interval for checking which controllers need a report of the interfaces. The next check
   * repeats a report that a controller did not answer.
   */
  interfacesAgainMs: 60_000,
  /** Maximum size of the trace file. A full file is renamed and replaces the previous file. */
  traceBytesMax: 64 * 1024 * 1024,
  /**
   * Maximum bytes that a controller has not read while the router reports usage to it; above that,
   * counts accumulate.
   */
  usageQueuedBytesMax: 1024 * 1024,
} as const
