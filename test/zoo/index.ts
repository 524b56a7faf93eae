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
    plants: 'a vote leaves at once instead of waiting for its write',
    from: 'tikv #1610, NodeDB #161, seaweedfs raft #9',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 2,
    name: 'term-and-vote-in-two-writes',
    plants: 'the new vote is written and synced under the old term, the term after it',
    from: 'hashicorp/raft #661',
    instead:
      'there the term came first; a vote found under a term it was not given in is harmless here, as a repeated request is judged by its log again. The other order breaks a promise that was kept.',
    caughtBy: 'campaign',
    seed: 27,
  },
  {
    number: 3,
    name: 'state-file-emptied-before-it-is-written',
    plants: 'both slots of term and vote are emptied first, and written after that',
    from: 'ClickHouse Keeper #113654, ROCm/spur #635',
    caughtBy: 'campaign',
    seed: 3,
  },
  {
    number: 4,
    name: 'entries-acknowledged-before-their-term-is-durable',
    plants: 'entries are written and acknowledged ahead of the term they were accepted in',
    from: 'openraft, note on the order of I/O',
    caughtBy: 'campaign',
    seed: 14,
  },
  {
    number: 5,
    name: 'commit-durable-before-its-entries',
    plants: 'the commit index is durable with the term, its entries come later',
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
    plants: 'leaders tell their whole commit index, followers commit up to their last entry',
    from: 'Scylla #9965, rabbitmq/ra #508',
    caughtBy: 'campaign',
    seed: 15,
  },
  {
    number: 8,
    name: 'every-append-truncates',
    plants: 'whatever follows the commit index is replaced by any append, however late',
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
    plants: 'a late refusal moves the next index to or below what has matched',
    from: 'etcd raft #149',
    caughtBy: 'campaign',
    seed: 2,
  },
  {
    number: 11,
    name: 'late-report-counts-replaced-entries',
    plants: 'the report of an old write counts entries that were replaced meanwhile',
    from: 'etcd raft, append ABA script',
    caughtBy: 'scenario',
  },
  {
    number: 12,
    name: 'late-acknowledgement-of-an-earlier-term-counts',
    plants: 'a leader that was elected again counts acknowledgments of its earlier term',
    from: 'redpanda #3003',
    instead:
      'there the proposer judged success by the term at its index; here by the origin that its own apply meets. What was late there is counted here.',
    caughtBy: 'scenario',
  },
  {
    number: 13,
    name: 'quorum-of-an-unsorted-list',
    plants: 'the middle of an unsorted list is taken for what a majority has reached',
    from: 'openraft #1802',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 14,
    name: 'half-is-a-majority',
    plants: 'of an even number of voters half is enough',
    from: 'async-raft d60f1e85, d882e743',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 15,
    name: 'change-of-one-before-an-own-commit',
    plants: 'one voter comes or goes without a joint step and before the leader has committed',
    from: 'Ongaro, raft-dev, 2015-07-10',
    caughtBy: 'campaign',
    seed: 26,
  },
  {
    number: 16,
    name: 'configuration-in-force-once-applied',
    plants: 'followers go by a configuration only once it is handed to apply',
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
    plants: 'a leader that is no voter any more is counted as one by itself',
    from: 'cockroach #105578, etcd raft #83',
    caughtBy: 'campaign',
    seed: 16,
  },
  {
    number: 20,
    name: 'who-has-no-vote-campaigns',
    plants: 'who is no voter campaigns in ever higher terms, and is listened to',
    from: 'hashicorp/raft #524 and #526, consul #1782',
    caughtBy: 'campaign',
    seed: 32,
  },
  {
    number: 21,
    name: 'neither-pre-vote-nor-quorum-check',
    plants: 'elections begin without a pre-vote, leaders never look for their quorum',
    from: 'Cloudflare 2020; raft-rs 0.3.1',
    caughtBy: 'campaign',
    seed: 20,
  },
  {
    number: 22,
    name: 'pre-votes-kept-for-the-election',
    plants: 'the answers to the pre-vote are counted in the election that follows',
    from: 'raft-rs 0.3.1',
    caughtBy: 'campaign',
    seed: 6,
  },
  {
    number: 23,
    name: 'read-before-an-own-commit',
    plants: 'a new leader serves reads before it has committed in its term',
    from: 'etcd #7331, d-engine #381',
    caughtBy: 'campaign',
    seed: 7,
  },
  {
    number: 24,
    name: 'joining-read-keeps-the-old-round-number',
    plants: 'a read that joins a round goes by the answers to the heartbeats before it',
    from: 'etcd #20418',
    caughtBy: 'scenario',
  },
  {
    number: 25,
    name: 'read-by-lease',
    plants: 'a leader that heard its quorum within an election timeout serves reads at once',
    from: 'consul #54, etcd #741',
    caughtBy: 'campaign',
    seed: 82,
  },
  {
    number: 26,
    name: 'expiry-not-judged-again',
    plants: 'sessions that a leader found idle are ended without being looked at again',
    from: 'etcd #15247',
    instead:
      'there are no leases here; the nearest a leader decides outside the log is which sessions are idle.',
    caughtBy: 'scenario',
  },
  {
    number: 27,
    name: 'transfer-outlives-the-leadership',
    plants: 'a transfer that was under way when the leader lost its office never ends',
    from: 'hashicorp/raft #696',
    caughtBy: 'campaign',
    seed: 118,
  },
  {
    number: 28,
    name: 'apply-goes-on-during-an-install',
    plants: 'apply is not held while a snapshot takes the place of the state',
    from: 'async-raft eed681d5',
    caughtBy: 'scenario',
  },
  {
    number: 29,
    name: 'old-snapshot-is-installed',
    plants: 'a snapshot of less than is committed here takes the place of log and state',
    from: 'rabbitmq/ra #508, etcd #18055',
    caughtBy: 'scenario',
  },
  {
    number: 30,
    name: 'append-across-the-snapshot-boundary',
    plants: 'an append that begins before the kept log is accepted unseen, from its first entry on',
    from: 'RedisLabs/raft #49',
    caughtBy: 'campaign',
    seed: 5,
  },
  {
    number: 31,
    name: 'log-trimmed-under-a-slow-peer',
    plants: 'the log is trimmed without regard to a connected member that has not got so far',
    from: 'consul #9609, hashicorp/raft #212',
    caughtBy: 'scenario',
  },
  {
    number: 32,
    name: 'new-file-without-a-synced-folder',
    plants: 'the file that goes on after a snapshot is renamed, and its folder is not synced',
    from: 'consul #3362, canonical/raft #199',
    caughtBy: 'campaign',
    seed: 3,
  },
  {
    number: 33,
    name: 'applied-index-apart-from-the-data',
    plants: 'the applied index is saved first, the records in a second write',
    from: 'etcd #13766',
    caughtBy: 'campaign',
    seed: 7,
  },
  {
    number: 34,
    name: 'leader-counts-itself-before-its-disk',
    plants: 'the leader commits and applies what is not yet on its own disk',
    from: 'etcd #14370',
    caughtBy: 'campaign',
    seed: 3,
  },
  {
    number: 35,
    name: 'restart-skips-what-was-not-applied',
    plants: 'after a start, what was committed and not yet applied is never handed to apply',
    from: 'openraft #1246',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 36,
    name: 'joiner-believes-its-old-removal',
    plants: 'a member goes by its own old log although it was told of a newer configuration',
    from: 'vault #32099',
    caughtBy: 'campaign',
    seed: 23,
  },
  {
    number: 37,
    name: 'another-disk-votes-under-the-old-name',
    plants: 'a wiped or rolled-back disk votes because its name is listed',
    from: 'openraft FAQ, etcd "already bootstrapped"',
    caughtBy: 'scenario',
  },
  {
    number: 38,
    name: 'commit-told-beyond-the-log',
    plants: 'a member commits what it is told, whether it has it or not',
    from: 'etcd #21178',
    caughtBy: 'campaign',
    seed: 2,
  },
  {
    number: 39,
    name: 'apply-reads-the-local-clock',
    plants: 'apply takes the time from the controller that it runs on',
    from: 'etcd #11651, ziti storage/boltz',
    caughtBy: 'campaign',
    seed: 1,
  },
  {
    number: 40,
    name: 'heartbeats-wait-for-the-disk',
    plants: "heartbeats leave behind the writes of the leader's disk",
    from: 'd-engine #342, hashicorp/raft',
    caughtBy: 'campaign',
    seed: 20,
  },
  {
    number: 41,
    name: 'failing-leader-callback-is-passed-over',
    plants: 'what fails in taking office is passed over, and the node leads on',
    from: 'nomad #8470, vault #8547, consul #5047',
    caughtBy: 'scenario',
  },
  {
    number: 42,
    name: 'same-leader-in-a-later-term-is-no-news',
    plants: 'who leads again in a later term is taken for the leader of before',
    from: 'hashicorp/raft LeaderCh',
    instead:
      'status is told by its newest value, not by edges; main compares leader and term, and the term is what tells two elections from none.',
    caughtBy: 'scenario',
  },
  {
    number: 43,
    name: 'restore-forgets-what-was-staged-before-a-start',
    plants:
      'a controller that was started while a restore was staged swaps in the rest of it alone',
    from: 'none known: half of a restore, on one controller',
    caughtBy: 'campaign',
    seed: 109,
  },
  {
    number: 44,
    name: 'restore-takes-effect-twice',
    plants: 'the end of a restore that is asked for again replaces what was written since',
    from: 'none known: a retry that is no retry',
    caughtBy: 'campaign',
    seed: 129,
  },
  {
    number: 45,
    name: 'payload-that-came-before-is-delivered-again',
    plants: 'a payload that was delivered is delivered once more when it is repeated',
    from: 'none known',
    caughtBy: 'circuits',
    seed: 1,
  },
  {
    number: 46,
    name: 'payload-without-room-is-acknowledged',
    plants: 'a payload that finds no room is dropped, and acknowledged all the same',
    from: 'none known',
    caughtBy: 'circuits',
    seed: 23,
  },
  {
    number: 47,
    name: 'end-overtakes-payloads',
    plants: 'the end of a stream counts when it comes, and not after what was sent before it',
    from: 'none known',
    caughtBy: 'circuits',
    seed: 2,
  },
  {
    number: 48,
    name: 'circuit-of-nobody-is-left-at-its-router',
    plants: 'a router that asks about a circuit that no controller knows is not told so',
    from: 'none known',
    caughtBy: 'circuits',
    seed: 7,
  },
  {
    number: 49,
    name: 'fault-of-an-end-is-ignored',
    plants: 'a router says that an end has closed its circuit, and nobody ends that',
    from: 'none known',
    caughtBy: 'circuits',
    seed: 1,
  },
  {
    number: 50,
    name: 'reroute-keeps-the-old-path',
    plants: 'a circuit goes another way, and its controller keeps the way before',
    from: 'none known',
    caughtBy: 'circuits',
    seed: 11,
  },
  {
    number: 51,
    name: 'router-that-comes-back-is-not-routed-again',
    plants: 'a router that has started again, or lost a way with its channel, is not found out',
    from: 'this source, before it was simulated',
    caughtBy: 'circuits',
    seed: 9,
  },
  {
    number: 52,
    name: 'heir-takes-nothing-over',
    plants: "the circuits of a controller that is gone are nobody's",
    from: 'none known',
    caughtBy: 'circuits',
    seed: 16,
  },
]

/** The name of the files of a bug, which begins with its number in two digits. */
export function fileStem({ number, name }: Bug): string {
  return `${String(number).padStart(2, '0')}-${name}`
}
