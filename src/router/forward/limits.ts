/** Circuits that a router carries. */
export const forwardLimits = {
  /** Circuits that are asked for at a time, of all listeners. */
  circuitsAskedMax: 128,
  /** Circuits that this router carries; its controllers share the room. */
  circuitsMax: 131_072,
  /** Ways that one circuit has taken, and its ends in this router, one an attempt. */
  hopsPerCircuitMax: 64,
  endsPerCircuitMax: 8,
  /** Between the route of a controller and the answer of the terminator. */
  dialMsMax: 120_000,
  /** A removed circuit goes on for as long as frames arrive, up to this. */
  leavingMsMax: 60_000,
  /** Circuits that controllers are told of in one message. */
  circuitsPerMessageMax: 1000,
  /** Circuits whose frames lead nowhere, until controllers are told; links share the room. */
  missesMax: 8192,
  /** The log tells of such frames of one router so often. */
  circuitWarningEveryMs: 60_000,
  /** An idle circuit of a controller that is away is kept so long; one that has closed, shorter. */
  abandonedMsMax: 24 * 60 * 60_000,
  closedAbandonedMsMax: 10 * 60_000,
  /** Circuits whose bytes are counted and not told yet, those that have ended among them. */
  usageCircuitsMax: 131_072,
  /** The same of one report. */
  usageCircuitsPerReportMax: 1000,
  /** Circuits that one inspection shows. */
  circuitsShownMax: 2000,
  /** Frames between ends in this router that wait for their turn, and their bytes, of all. */
  localDeliveriesMax: 32_768,
  localDeliveryBytesMax: 64 * 1024 * 1024,
} as const
