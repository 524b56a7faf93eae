/** Clients of the edge router and the services that they host. */
export const edgeLimits = {
  /** API sessions that are kept, and hellos that wait for the word of a controller about theirs. */
  apiSessionsMax: 250_000,
  apiSessionWaitersMax: 1024,
  /** Verified access tokens that are kept, and for how long where no client is connected by one. */
  bearerTokensMax: 65_536,
  bearerUnshownMs: 60_000,
  /** How often the time of those is looked at. */
  bearerSweepMs: 5000,
  /** Open connections of one listener for clients, and those of one source. */
  clientConnectionsOpenMax: 16_384,
  clientConnectionsPerSourceMax: 2048,
  /** Connections that are not admitted yet: of all, and of one source. */
  clientsWaitingMax: 1024,
  clientsWaitingPerSourceMax: 128,
  /** A silent connection is tried so often, as clients answer no heartbeats. */
  clientKeepAliveMs: 30_000,
  /** Channels of one identity. */
  clientChannelsPerIdentityMax: 256,
  /** Connections within channels: of one channel, and of all. */
  clientConnectionsPerChannelMax: 16_384,
  clientConnectionsMax: 131_072,
  /** Reports of clients on their devices that are kept: of a channel, and of all. */
  clientPostureBytesMax: 32 * 1024,
  clientPosturesBytesMax: 64 * 1024 * 1024,
  /** Reports of one client that controllers have not answered yet. */
  clientPosturesWaitingMax: 16,
  /** Each answer is waited for so long. */
  clientPostureMs: 5000,
  /** Requests of one identity that a controller works on; more wait, or are refused. */
  connectsAtOnceMax: 32,
  connectsWaitingMax: 1024,
  /** Bytes of one client that its circuits do not take yet: beyond it the client is not read. */
  clientQueuedBytesMax: 1024 * 1024,
  /** Bytes to one client that it has not read: beyond it its circuits wait. */
  clientUnsentBytesMax: 1024 * 1024,
  /** Requests for the route of one connection that wait for an answer; the oldest is forgotten. */
  clientTracesMax: 8,
  /** Services that are hosted: by one channel, and by all. */
  hostedPerChannelMax: 1024,
  hostedMax: 16_384,
  /** Terminators that are to be removed. */
  terminatorsRemovedWaitingMax: 65_536,
  terminatorsRemovedAtOnceMax: 50,
  /** A terminator without an answer is asked for again, and one that a busy controller put off. */
  terminatorAgainMs: 30_000,
  terminatorBusyMs: 1000,
  /** Other refusals of one terminator before its host is told. */
  terminatorStrikesMax: 3,
  /** Changes by its host: of one terminator so often, and of one identity at once and a second. */
  terminatorChangedEveryMs: 1000,
  hostChangesBurst: 64,
  hostChangesPerSecond: 4,
  /** Terminators that one identity has created, at once and then each second. */
  hostCreationsBurst: 1024,
  hostCreationsPerSecond: 10,
  /** After a controller has come back: it asks which terminators there are first. */
  terminatorsRepeatedMs: 10_000,
  terminatorsSweptEveryMs: 1000,
  /** A host answers a dial, and whether it still hosts a service. */
  hostDialMsMax: 5000,
  hostInspectionMsMax: 10_000,
} as const
