const MIB = 1024 * 1024

/** Every bound of the events, in one table. */
export const eventLimits = {
  /**
   * Events that are kept for readers who come back or lag, whichever of the two is reached first.
   */
  eventsKeptMax: 50_000,
  eventBytesKeptMax: 32 * MIB,
  /** Streams of events at a time, of all callers and of one. */
  eventStreamsMax: 64,
  eventStreamsPerCallerMax: 8,
  /** A stream whose client reads nothing for this long, with events waiting, is closed ... */
  eventStallMs: 20_000,
  /** ... and so is a stream whose client was sent the reason and does not close it. */
  eventLingerMs: 5000,
  /** Text of a stream that waits for its client, beside what is on its way in the connection. */
  eventStreamCharactersMax: 16 * 1024,
  /** A comment is sent over a quiet stream this often, and its caller is judged again. */
  eventHeartbeatMs: 15_000,
  /** Bytes handed to the standard output at once. */
  eventBatchBytes: 64 * 1024,
  /** Live facts that wait to become events; more are counted and dropped. */
  liveFactsWaitingMax: 10_000,
  /**
   * Services, terminators and results that are counted apart over one interval; more are not
   * counted.
   */
  dialCountsMax: 10_000,
  /** Terminators of one router that get an event when the router connects or disconnects. */
  terminatorEventsMax: 10_000,
  /** Names in one filter. */
  eventFilterNamesMax: 64,
  /** One message of a web socket: a request for events is small. */
  webSocketMessageBytesMax: 64 * 1024,
  /** A standard output that is not read fast enough is tried again after this long. */
  eventLinesRetryMs: 50,
  /** A file that cannot be written is tried again after this long. */
  eventFileRetryMs: 1000,
  /** Bytes written to a file at once. */
  eventFileBatchBytes: 256 * 1024,
} as const
