/**
 * Forty-two bugs of other systems that must not occur in this program undetected, two that a
 * restore into a running cluster could have, and eight that circuits could have. `NN-name.mutation`
 * adds each bug to a copy of the source. The random campaign of the simulator, or the scenario of
 * the same name, must detect it.
 */
export interface Bug {
  readonly number: number
  readonly name: string
  /** The bug that the mutation adds. */
  readonly plants: string
  /** The system in which the bug occurred. */
  readonly from: string
  /**
   * Set for a bug that cannot exist here in its original form: the reason, and the bug that
   * replaces it.
   */
  readonly instead?: string
  /**
   * The check that detects the bug: the campaign, the campaign with routers, or a separate
   * scenario.
   */
  readonly caughtBy: 'campaign' | 'circuits' | 'scenario'
  /** A seed with which the campaign has detected the bug; it is tried first. */
  readonly seed?: number
}

export const bugs: readonly Bug[] = [
  {
    number: 1,
    name: 'vote-leaves-before-it-is-durable',
    plants: 'a vote is sent immediately, before its write is durable',
    from: 'tikv #1610, NodeDB #161, seaweedfs raft #9',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 2,
    name: 'term-and-vote-in-two-writes',
    plants:
      'the new vote is written and synced first under the old term, and the new term after it',
    from: 'hashicorp/raft #661',
    instead:
      'the original bug wrote the term first. That is harmless here: if a vote is found under a term in which it was not granted, a repeated request is compared with the log again. The opposite order breaks the promise of a vote.',
    caughtBy: 'campaign',
    seed: 27,
  },
  {
    number: 3,
    name: 'state-file-emptied-before-it-is-written',
    plants: 'both slots with term and vote are emptied before the new ones are written',
    from: 'ClickHouse Keeper #113654, ROCm/spur #635',
    caughtBy: 'campaign',
    seed: 3,
  },
  {
    number: 4,
    name: 'entries-acknowledged-before-their-term-is-durable',
    plants:
      'entries are written and acknowledged before the term in which they were accepted is written',
    from: 'openraft, note on the order of I/O',
    caughtBy: 'campaign',
    seed: 14,
  },
  {
    number: 5,
    name: 'commit-durable-before-its-entries',
    plants: 'the commit index becomes durable together with the term, before its entries',
    from: 'Curvine #1368',
    caughtBy: 'campaign',
    seed: 12,
  },
  {
    number: 6,
    name: 'old-term-committed-by-counting',
    plants: 'an entry of an earlier term is committed by counting',
    from: 'logcabin #44, Raft paper figure 8',
    caughtBy: 'campaign',
    seed: 23,
  },
  {
    number: 7,
    name: 'follower-commits-past-what-matched',
    plants: 'leaders send their whole commit index, and followers commit up to their last entry',
    from: 'Scylla #9965, rabbitmq/ra #508',
    caughtBy: 'campaign',
    seed: 15,
  },
  {
    number: 8,
    name: 'every-append-truncates',
    plants: 'any append, even a late one, replaces all entries after the commit index',
    from: 'openraft (async-raft 9540c904), NATS #8023',
    caughtBy: 'campaign',
    seed: 2,
  },
  {
    number: 9,
    name: 'longer-log-beats-later-term',
    plants: 'logs are compared by index first, then by term',
    from: 'async-raft a48a3282',
    caughtBy: 'campaign',
    seed: 302,
  },
  {
    number: 10,
    name: 'late-refusal-takes-next-back',
    plants: 'a late refusal sets the next index to or below the match index',
    from: 'etcd raft #149',
    caughtBy: 'campaign',
    seed: 2,
  },
  {
    number: 11,
    name: 'late-report-counts-replaced-entries',
    plants: 'the report of an old write counts for entries that replaced its entries meanwhile',
    from: 'etcd raft, append ABA script',
    caughtBy: 'scenario',
  },
  {
    number: 12,
    name: 'late-acknowledgement-of-an-earlier-term-counts',
    plants: 'a leader that was elected again counts acknowledgments of its earlier term',
    from: 'redpanda #3003',
    instead:
      'there, the proposer determined success by the term at the index of its entry; here, by the origin of the entry that its own controller applies. The replacement counts late acknowledgments.',
    caughtBy: 'scenario',
  },
  {
    number: 13,
    name: 'quorum-of-an-unsorted-list',
    plants: 'the middle value of an unsorted list is used as the index that a majority has reached',
    from: 'openraft #1802',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 14,
    name: 'half-is-a-majority',
    plants: 'half of an even number of voters counts as a majority',
    from: 'async-raft d60f1e85, d882e743',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 15,
    name: 'change-of-one-before-an-own-commit',
    plants:
      'one voter is added or removed without a joint configuration, before the leader has committed an entry of its term',
    from: 'Ongaro, raft-dev, 2015-07-10',
    caughtBy: 'campaign',
    seed: 26,
  },
  {
    number: 16,
    name: 'configuration-in-force-once-applied',
    plants: 'a configuration is in force at followers only when it is applied',
    from: 'etcd #7280, #11284, #12359',
    caughtBy: 'campaign',
    seed: 16,
  },
  {
    number: 17,
    name: 'configuration-outlives-a-snapshot',
    plants: 'an uncommitted configuration stays in force when a snapshot replaces its log',
    from: 'openraft #1808',
    caughtBy: 'campaign',
    seed: 32,
  },
  {
    number: 18,
    name: 'truncated-configuration-stays-in-force',
    plants: 'a configuration whose entry was truncated stays in force',
    from: 'rafter #34',
    caughtBy: 'campaign',
    seed: 71,
  },
  {
    number: 19,
    name: 'leaving-leader-counts-itself',
    plants: 'a leader that is no longer a voter counts itself as one',
    from: 'cockroach #105578, etcd raft #83',
    caughtBy: 'campaign',
    seed: 16,
  },
  {
    number: 20,
    name: 'who-has-no-vote-campaigns',
    plants:
      'a node that is not a voter campaigns in ever later terms, and the others respond to it',
    from: 'hashicorp/raft #524 and #526, consul #1782',
    caughtBy: 'campaign',
    seed: 32,
  },
  {
    number: 21,
    name: 'neither-pre-vote-nor-quorum-check',
    plants: 'elections begin without a pre-vote, and leaders do not check that they have a quorum',
    from: 'Cloudflare 2020; raft-rs 0.3.1',
    caughtBy: 'campaign',
    seed: 20,
  },
  {
    number: 22,
    name: 'pre-votes-kept-for-the-election',
    plants: 'the responses to the pre-vote are counted in the election that follows',
    from: 'raft-rs 0.3.1',
    caughtBy: 'campaign',
    seed: 6,
  },
  {
    number: 23,
    name: 'read-before-an-own-commit',
    plants: 'a new leader serves reads before it has committed an entry of its term',
    from: 'etcd #7331, d-engine #381',
    caughtBy: 'campaign',
    seed: 7,
  },
  {
    number: 24,
    name: 'joining-read-keeps-the-old-round-number',
    plants: 'a read that joins a round is confirmed by responses to earlier heartbeats',
    from: 'etcd #20418',
    caughtBy: 'scenario',
  },
  {
    number: 25,
    name: 'read-by-lease',
    plants:
      'a leader that received responses of a quorum within an election timeout serves reads immediately',
    from: 'consul #54, etcd #741',
    caughtBy: 'campaign',
    seed: 82,
  },
  {
    number: 26,
    name: 'expiry-not-judged-again',
    plants: 'sessions that a leader found idle are ended without another check at apply',
    from: 'etcd #15247',
    instead:
      'this program has no leases; the most similar decision of a leader outside the log is which sessions are idle.',
    caughtBy: 'scenario',
  },
  {
    number: 27,
    name: 'transfer-outlives-the-leadership',
    plants: 'a leadership transfer that was in progress when its leader lost leadership never ends',
    from: 'hashicorp/raft #696',
    caughtBy: 'campaign',
    seed: 118,
  },
  {
    number: 28,
    name: 'apply-goes-on-during-an-install',
    plants: 'apply is not paused while a snapshot replaces the state',
    from: 'async-raft eed681d5',
    caughtBy: 'scenario',
  },
  {
    number: 29,
    name: 'old-snapshot-is-installed',
    plants: 'a snapshot that ends before the commit index replaces log and state',
    from: 'rabbitmq/ra #508, etcd #18055',
    caughtBy: 'scenario',
  },
  {
    number: 30,
    name: 'append-across-the-snapshot-boundary',
    plants:
      'an append that begins before the retained log is accepted without a check, from its first entry on',
    from: 'RedisLabs/raft #49',
    caughtBy: 'campaign',
    seed: 5,
  },
  {
    number: 31,
    name: 'log-trimmed-under-a-slow-peer',
    plants: 'the log is compacted although a connected member still needs the entries',
    from: 'consul #9609, hashicorp/raft #212',
    caughtBy: 'scenario',
  },
  {
    number: 32,
    name: 'new-file-without-a-synced-folder',
    plants:
      'the file that continues the log after a snapshot is renamed, but its folder is not synced',
    from: 'consul #3362, canonical/raft #199',
    caughtBy: 'campaign',
    seed: 3,
  },
  {
    number: 33,
    name: 'applied-index-apart-from-the-data',
    plants: 'the applied index is saved first, and the records in a second write',
    from: 'etcd #13766',
    caughtBy: 'campaign',
    seed: 7,
  },
  {
    number: 34,
    name: 'leader-counts-itself-before-its-disk',
    plants: 'the leader commits and applies entries before they are durable on its own disk',
    from: 'etcd #14370',
    caughtBy: 'campaign',
    seed: 3,
  },
  {
    number: 35,
    name: 'restart-skips-what-was-not-applied',
    plants: 'after a start, entries that were committed but not applied are never applied',
    from: 'openraft #1246',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 36,
    name: 'joiner-believes-its-old-removal',
    plants: 'a member uses the configuration of its own old log although it received a newer one',
    from: 'vault #32099',
    caughtBy: 'campaign',
    seed: 23,
  },
  {
    number: 37,
    name: 'another-disk-votes-under-the-old-name',
    plants:
      'an erased or rolled-back disk votes because the configuration contains the ID of its node',
    from: 'openraft FAQ, etcd "already bootstrapped"',
    caughtBy: 'scenario',
  },
  {
    number: 38,
    name: 'commit-told-beyond-the-log',
    plants: 'a member commits up to the index that it receives, even if it lacks the entries',
    from: 'etcd #21178',
    caughtBy: 'campaign',
    seed: 2,
  },
  {
    number: 39,
    name: 'apply-reads-the-local-clock',
    plants: 'apply uses the local clock of its controller',
    from: 'etcd #11651, ziti storage/boltz',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 40,
    name: 'heartbeats-wait-for-the-disk',
    plants: "heartbeats are sent only after the pending writes of the leader's disk",
    from: 'd-engine #342, hashicorp/raft',
    caughtBy: 'campaign',
    seed: 20,
  },
  {
    number: 41,
    name: 'failing-leader-callback-is-passed-over',
    plants: 'an error in the callback of a new leader is ignored, and the node remains leader',
    from: 'nomad #8470, vault #8547, consul #5047',
    caughtBy: 'scenario',
  },
  {
    number: 42,
    name: 'same-leader-in-a-later-term-is-no-news',
    plants: 'a leader that is elected again in a later term is not reported as a new one',
    from: 'hashicorp/raft LeaderCh',
    instead:
      'the core reports the latest status, not each change; the main thread compares leader and term, and only the term shows that another election took place.',
    caughtBy: 'scenario',
  },
  {
    number: 43,
    name: 'restore-forgets-what-was-staged-before-a-start',
    plants:
      'a controller that was restarted during a restore applies only the records that were staged after the restart',
    from: 'no known system: one controller applies half of a restore',
    caughtBy: 'campaign',
    seed: 109,
  },
  {
    number: 44,
    name: 'restore-takes-effect-twice',
    plants: 'a repeated end of a restore replaces records that were written after it',
    from: 'no known system: a retry that has another effect',
    caughtBy: 'campaign',
    seed: 129,
  },
  {
    number: 45,
    name: 'payload-that-came-before-is-delivered-again',
    plants: 'a repeated payload is delivered a second time',
    from: 'no known system',
    caughtBy: 'circuits',
    seed: 1,
  },
  {
    number: 46,
    name: 'payload-without-room-is-acknowledged',
    plants: 'a payload that is dropped for lack of space is acknowledged nevertheless',
    from: 'no known system',
    caughtBy: 'circuits',
    seed: 23,
  },
  {
    number: 47,
    name: 'end-overtakes-payloads',
    plants:
      'the end of a stream takes effect when it arrives, even before payloads that were sent earlier',
    from: 'no known system',
    caughtBy: 'circuits',
    seed: 2,
  },
  {
    number: 48,
    name: 'circuit-of-nobody-is-left-at-its-router',
    plants:
      'a router that asks about a circuit unknown to all controllers is not told to remove it',
    from: 'no known system',
    caughtBy: 'circuits',
    seed: 7,
  },
  {
    number: 49,
    name: 'fault-of-an-end-is-ignored',
    plants: 'a controller ignores the report of a router that an endpoint has closed its circuit',
    from: 'no known system',
    caughtBy: 'circuits',
    seed: 1,
  },
  {
    number: 50,
    name: 'reroute-keeps-the-old-path',
    plants: 'a circuit is rerouted, but its controller keeps the earlier path',
    from: 'no known system',
    caughtBy: 'circuits',
    seed: 11,
  },
  {
    number: 51,
    name: 'router-that-comes-back-is-not-routed-again',
    plants:
      'a router that restarted or lost its routes together with its channel does not get its routes again',
    from: 'this program, before its circuits were simulated',
    caughtBy: 'circuits',
    seed: 9,
  },
  {
    number: 52,
    name: 'heir-takes-nothing-over',
    plants: 'no controller takes over the circuits of a lost controller',
    from: 'no known system',
    caughtBy: 'circuits',
    seed: 16,
  },
]

/** The name of the files of a bug, which begins with its number in two digits. */
export function fileStem({ number, name }: Bug): string {
  return `${String(number).padStart(2, '0')}-${name}`
}
