/** Limits of inspections, traces, and reports to controllers. */
export const reportLimits = {
  /** Concurrent inspection requests of a controller; more are refused. */
  inspectedValuesMax: 64,
  /** Characters in one inspection value; a longer one is reported as too long. */
  inspectedCharactersMax: 1024 * 1024,
  /** Reported network interfaces, and addresses of each. */
  interfacesMax: 256,
  interfaceAddressesMax: 64,
  /** Delay before interfaces are reported again to controllers that did not respond. */
  interfacesAgainMs: 60_000,
  /**
   * Maximum size of the trace file. When it is reached, the file is renamed and replaces the
   * previous file.
   */
  traceBytesMax: 64 * 1024 * 1024,
  /**
   * Unsent bytes to the controller up to which usage is reported; beyond that, counts accumulate.
   */
  usageQueuedBytesMax: 1024 * 1024,
} as const
