/**
 * Faults of a simulated cluster. Each must occur in every longer campaign, or the campaign proves
 * nothing about it.
 */
const FAULT_KINDS = [
  // The network.
  'message lost',
  'message repeated',
  'message reordered',
  'stream reset in mid-message',
  'partition',
  'bridge partition',
  'one-way cut',
  'half-open link',
  'slow link',
  // The process.
  'crash',
  'crash within a write',
  'crash of all',
  'pause',
  'clock skew',
  'clock jump',
  // The disk.
  'unsynced writes lost',
  'torn write',
  'bit flipped in the log',
  'bit flipped in a meta slot',
  'misdirected write',
  'segment missing',
  'segment cut short',
  'state damaged',
  'sync failed',
  'disk full',
  'disk slow',
  'disk unreadable',
  'disk wiped',
  'disk rolled back',
  // The operator.
  'member added',
  'member removed',
  'member promoted',
  'member demoted',
  'member replaced',
  'transfer asked for',
  'two admins at once',
  // Frames of attackers, and invalid frames.
  'frame too large',
  'frame of another version',
  'hello of another cluster',
  'hello of another generation',
  'hello of a removed member',
  'message from the future',
  'snapshot chunk damaged',
  'snapshot manifest wrong',
  'log of another store',
  'log of a newer format',
] as const

/** Events that show that the engine was exercised. */
const EVENT_KINDS = [
  'election won',
  'log truncated',
  'configuration rolled back',
  'joint configuration left',
  'snapshot sent',
  'snapshot installed',
  'snapshot installed in mid-apply',
  'snapshot resumed',
  'transfer done',
  're-admission',
  'repair begun',
  'repair done',
  'rolled-back disk refused',
  'stranger refused',
  'proposal refused at a cap',
  'window full',
  'log compacted',
  'write acknowledged',
  'write of unknown fate',
  'retry answered from memory',
  'linearizable read',
  'leader without quorum stepped down',
  'restore begun',
  'restore done',
  'restore ended again',
  'restore abandoned',
  'restore refused beside another',
  'leader killed while a restore was staged',
  'log time brought back',
] as const

/** Faults of routers, in addition to those of their controllers. */
const ROUTER_FAULT_KINDS = [
  'frame lost',
  'frame repeated',
  'frame late',
  'link cut',
  'link reset',
  'link slow',
  'control channel cut',
  'control channel reset',
  'router crash',
  'router without power',
  'router pause',
] as const

/** Events that show that circuits were exercised. */
const CIRCUIT_EVENT_KINDS = [
  'circuit dialed',
  'host dialed',
  'circuit made',
  'circuit refused',
  'circuit without a way',
  'circuit rerouted',
  'circuit ended',
  'circuit survived',
] as const

/** Faults of the controllers in a run with routers. */
const SHARED_KINDS = [
  'crash',
  'crash of all',
  'pause',
  'partition',
  'bridge partition',
  'transfer asked for',
  'election won',
] as const

export type FaultKind = (typeof FAULT_KINDS)[number] | (typeof ROUTER_FAULT_KINDS)[number]
export type EventKind = (typeof EVENT_KINDS)[number] | (typeof CIRCUIT_EVENT_KINDS)[number]

/** Faults and events that each kind of campaign must contain. */
export const kindsOf = {
  cluster: { faults: FAULT_KINDS, events: EVENT_KINDS },
  circuits: {
    faults: [...ROUTER_FAULT_KINDS, ...SHARED_KINDS.slice(0, -1)],
    events: [...CIRCUIT_EVENT_KINDS, 'election won'],
  },
} as const
export type Subject = keyof typeof kindsOf

/** Counts by kind; kinds that never occurred have 0. */
export class Tally {
  readonly counts: Record<string, number>

  readonly #kinds: readonly string[]

  constructor(subject: Subject) {
    const { faults, events } = kindsOf[subject]
    this.#kinds = [...faults, ...events]
    this.counts = Object.fromEntries(this.#kinds.map((kind) => [kind, 0]))
  }

  note(kind: FaultKind | EventKind, times = 1): void {
    this.counts[kind] = (this.counts[kind] ?? 0) + times
  }

  add(counts: Readonly<Record<string, number>>): void {
    for (const [kind, times] of Object.entries(counts)) {
      this.counts[kind] = (this.counts[kind] ?? 0) + times
    }
  }

  /** Kinds that never occurred. */
  get missing(): readonly string[] {
    return this.#kinds.filter((kind) => this.counts[kind] === 0)
  }
}
