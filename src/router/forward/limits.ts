/** Limits for circuits that a router carries. */
export const forwardLimits = {
  /** Maximum concurrent circuit requests of all listeners. */
  circuitsAskedMax: 128,
  /** Maximum circuits that this router carries; its controllers share the limit fairly. */
  circuitsMax: 131_072,
  /** Maximum next hops of one circuit in this router. */
  hopsPerCircuitMax: 64,
  /** Maximum endpoints of one circuit in this router; a further endpoint is refused. */
  endsPerCircuitMax: 8,
  /** Maximum time between a controller's route and the terminator's response. */
  dialMsMax: 120_000,
  /** Maximum time for which a removed circuit continues while frames arrive. */
  leavingMsMax: 60_000,
  /** Maximum circuits in one report to a controller. */
  circuitsPerMessageMax: 1000,
  /**
   * Maximum circuits for which the router has received frames without a next hop and has not
   * reported this yet; the links share the limit fairly.
   */
  missesMax: 8192,
  /** Minimum interval between log warnings about frames without a next hop from one router. */
  circuitWarningEveryMs: 60_000,
  /** Time for which an idle open circuit is retained while its controller is absent. */
  abandonedMsMax: 24 * 60 * 60_000,
  /** Time for which an idle closed circuit is retained while its controller is absent. */
  closedAbandonedMsMax: 10 * 60_000,
  /** Maximum circuits with unreported byte counts, including ended circuits. */
  usageCircuitsMax: 131_072,
  /** Maximum circuits in one usage report. */
  usageCircuitsPerReportMax: 1000,
  /** Maximum circuits in one inspection. */
  circuitsShownMax: 2000,
  /** Maximum frames queued between circuit endpoints of this router; further frames are dropped. */
  localDeliveriesMax: 32_768,
  /** Maximum bytes of these frames, divided fairly among callers; further frames are dropped. */
  localDeliveryBytesMax: 64 * 1024 * 1024,
} as const
