/** Limits for circuits that a router carries. */
export const forwardLimits = {
  /**
   * Maximum circuit requests that wait for a controller's answer: of the tunnel, and of all
   * listeners for clients without an SDK together.
   */
  circuitsAskedMax: 128,
  /** Maximum circuits that run through this router; its controllers share the limit fairly. */
  circuitsMax: 131_072,
  /** Maximum next hops of one circuit in this router. */
  hopsPerCircuitMax: 64,
  /** Maximum endpoints of one circuit at this router; a further endpoint is refused. */
  endsPerCircuitMax: 8,
  /** Maximum time in which a terminator must answer after a controller's route has arrived. */
  dialMsMax: 120_000,
  /** Maximum time for which a removed circuit forwards frames that still arrive. */
  leavingMsMax: 60_000,
  /** Maximum circuits in one report to a controller. */
  circuitsPerMessageMax: 1000,
  /**
   * Maximum circuits with unreported frames that had no next hop; links and circuit endpoints share
   * the limit fairly.
   */
  missesMax: 8192,
  /** Minimum interval between log warnings about frames without a next hop from one router. */
  circuitWarningEveryMs: 60_000,
  /** Time for which an idle open circuit is kept while its controller is disconnected. */
  abandonedMsMax: 24 * 60 * 60_000,
  /** Time for which an idle closed circuit is kept while its controller is disconnected. */
  closedAbandonedMsMax: 10 * 60_000,
  /** Maximum circuits with unreported byte counts, including circuits that have ended. */
  usageCircuitsMax: 131_072,
  /** Maximum circuits in one usage report. */
  usageCircuitsPerReportMax: 1000,
  /** Maximum circuits in one inspection. */
  circuitsShownMax: 2000,
  /**
   * Maximum frames that wait for delivery between circuit endpoints of this router; further frames
   * are dropped.
   */
  localDeliveriesMax: 32_768,
  /**
   * Maximum bytes of the frames in `localDeliveriesMax`, shared fairly among their senders; further
   * frames are dropped.
   */
  localDeliveryBytesMax: 64 * 1024 * 1024,
} as const
