/** Limits for circuits that a router carries. */
export const forwardLimits = {
  /** Concurrent circuit requests of all listeners. */
  circuitsAskedMax: 128,
  /** Circuits carried by this router; its controllers share the limit fairly. */
  circuitsMax: 131_072,
  /** Next hops of one circuit, and its endpoints in this router, one per attempt. */
  hopsPerCircuitMax: 64,
  endsPerCircuitMax: 8,
  /** Maximum time between a controller's route and the terminator's response. */
  dialMsMax: 120_000,
  /** Maximum time for which a removed circuit continues while frames arrive. */
  leavingMsMax: 60_000,
  /** Circuits in one report to a controller. */
  circuitsPerMessageMax: 1000,
  /** Circuits with unreported misses; the links share the limit fairly. */
  missesMax: 8192,
  /** Minimum interval between log warnings about frames without a next hop from one router. */
  circuitWarningEveryMs: 60_000,
  /**
   * Time for which an idle circuit is retained while its controller is absent; shorter if the
   * circuit has closed.
   */
  abandonedMsMax: 24 * 60 * 60_000,
  closedAbandonedMsMax: 10 * 60_000,
  /** Circuits with unreported byte counts, including ended ones. */
  usageCircuitsMax: 131_072,
  /** Circuits in one usage report. */
  usageCircuitsPerReportMax: 1000,
  /** Circuits in one inspection. */
  circuitsShownMax: 2000,
  /**
   * Frames queued between circuit endpoints of this router, and bytes of these frames, in total.
   */
  localDeliveriesMax: 32_768,
  localDeliveryBytesMax: 64 * 1024 * 1024,
} as const
