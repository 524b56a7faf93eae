/** Limits of inspections, traces, and reports to controllers. */
export const reportLimits = {
  /**
   * Maximum values in one inspection request; further values are omitted, and the response contains
   * an error.
   */
  inspectedValuesMax: 64,
  /** Maximum characters in one inspection value; a longer value is reported as too long. */
  inspectedCharactersMax: 1024 * 1024,
  /** Maximum reported network interfaces; further ones are omitted. */
  interfacesMax: 256,
  /** Maximum reported addresses of one network interface; further addresses are omitted. */
  interfaceAddressesMax: 64,
  /** Delay before interfaces are reported again to controllers that did not respond. */
  interfacesAgainMs: 60_000,
  /**
   * Maximum size of the trace file. When it is reached, the file is renamed and replaces the
   * previous file.
   */
  traceBytesMax: 64 * 1024 * 1024,
  /**
   * Maximum unsent bytes to the controller up to which usage is reported; above that, counts
   * accumulate.
   */
  usageQueuedBytesMax: 1024 * 1024,
} as const
