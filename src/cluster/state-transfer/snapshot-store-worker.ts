import { Problem } from '../../lib/problems.ts'
import type { ReplicatedStateMachine } from '../../ports/replicated-state-machine.ts'
import type { StoreReceiver, StoreSnapshot } from '../../ports/state-store.ts'
import { copyStatePieces } from './state-chunks.ts'
import type { SnapshotLogRetention } from './snapshot-log-retention.ts'
import type { ConsensusThreadEvent, MainThreadLink } from '../thread-channel.ts'
import type { StateDivergenceHandler } from './state-divergence-handler.ts'

/** Events of the consensus thread about snapshots. */
export type SnapshotEvent = Extract<
  ConsensusThreadEvent,
  {
    type:
      | 'snapshotWanted'
      | 'snapshotCredit'
      | 'snapshotOver'
      | 'receiveBegin'
      | 'receiveChunk'
      | 'receiveFinish'
      | 'receiveAbandoned'
  }
>

/** A snapshot that this thread reads for a peer. */
class Sending {
  credit = 0
  isOver = false
  #wake: (() => void) | null = null

  add(chunks: number): void {
    this.credit += chunks
    this.#awake()
  }

  end(): void {
    this.isOver = true
    this.#awake()
  }

  /**
   * Resolves once the consensus thread allows another chunk (`snapshotCredit`), or the transfer is
   * over.
   */
  async ready(): Promise<void> {
    while (this.credit === 0 && !this.isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  #awake(): void {
    this.#wake?.()
    this.#wake = null
  }
}

/** A snapshot that this thread receives. Its steps run in the order of their events. */
interface Receiving {
  readonly id: number
  receiver: StoreReceiver | null
  steps: Promise<void>
  hasFailed: boolean
  chunks: number
}

type SnapshotMachine = Pick<ReplicatedStateMachine, 'progress' | 'snapshot' | 'receive' | 'restore'>

/**
 * The main thread's part of snapshot transfers: reads the store for peers that fell behind, one
 * chunk per credit (permission of the consensus thread to read another chunk), and writes a
 * received snapshot to a second store. Meanwhile, the state machine applies further entries.
 */
export class SnapshotStoreWorker {
  readonly #machine: SnapshotMachine
  readonly #link: MainThreadLink
  readonly #catchUps: SnapshotLogRetention
  readonly #sendings = new Map<number, Sending>()
  #receiving: Receiving | null = null
  /**
   * Resolves when the files of the previous snapshot are removed. The next snapshot waits for this
   * promise, because both use the same folder.
   */
  #abandoned: Promise<void> = Promise.resolve()
  readonly #guard: Pick<StateDivergenceHandler, 'isQuarantined' | 'makeRoom'>

  /**
   * @param catchUps records every snapshot that is sent, because the log must keep the entries
   * after it.
   */
  constructor(
    machine: SnapshotMachine,
    link: MainThreadLink,
    parts: {
      readonly catchUps: SnapshotLogRetention
      readonly guard: Pick<StateDivergenceHandler, 'isQuarantined' | 'makeRoom'>
    },
  ) {
    this.#machine = machine
    this.#link = link
    this.#catchUps = parts.catchUps
    this.#guard = parts.guard
  }

  /** Number of received chunks of the incoming snapshot; null if there is none. */
  get receivedChunks(): number | null {
    return this.#receiving?.chunks ?? null
  }

  /** Aborts the incoming snapshot and reports that to the consensus thread. */
  dropReceived(): void {
    const receiving = this.#receiving
    if (receiving === null) return
    this.#link.post({
      type: 'receiveFailed',
      id: receiving.id,
      reason: 'timed out waiting for the next chunk',
    })
    this.#abandon()
  }

  /** Aborts all outgoing snapshots, because the state in them is wrong. */
  endSendings(reason: string): void {
    for (const [id, sending] of this.#sendings) {
      sending.end()
      this.#link.post({ type: 'snapshotFailed', id, reason })
    }
  }

  handle(event: SnapshotEvent): void {
    switch (event.type) {
      case 'snapshotWanted':
        this.#catchUps.begin(event.id, event.to, this.#machine.progress().persisted)
        void this.#send(event.id)
        break
      case 'snapshotCredit':
        this.#sendings.get(event.id)?.add(event.chunks)
        break
      case 'snapshotOver':
        this.#catchUps.over(event.id, event.isSent)
        this.#sendings.get(event.id)?.end()
        break
      case 'receiveBegin':
        this.#begin(event.id)
        break
      case 'receiveChunk':
        this.#step(event.id, async (receiver, receiving) => {
          await receiver.write(event.data)
          receiving.chunks += 1
          this.#link.post({ type: 'receiveWritten', id: event.id })
        })
        break
      case 'receiveFinish':
        this.#step(event.id, async (receiver) => await this.#finish(event.id, receiver))
        break
      case 'receiveAbandoned':
        if (this.#receiving?.id === event.id) this.#abandon()
        break
    }
  }

  /**
   * Installs the received snapshot as the live state. If it rejects, log and state no longer match,
   * and the process must stop.
   */
  async restore(id: number): Promise<void> {
    const receiving = this.#receiving
    if (receiving?.id !== id) throw new Error(`snapshot ${id} is not the received one`)
    await receiving.steps
    if (receiving.receiver === null) throw new Error(`snapshot ${id} is incomplete`)
    this.#receiving = null
    await this.#machine.restore(receiving.receiver)
    this.#link.post({ type: 'restored', id })
  }

  close(): void {
    for (const sending of this.#sendings.values()) sending.end()
    this.#abandon()
  }

  async #send(id: number): Promise<void> {
    const sending = new Sending()
    this.#sendings.set(id, sending)
    let snapshot: StoreSnapshot | null = null
    try {
      if (this.#guard.isQuarantined) throw new Problem('NODE_QUARANTINED')
      snapshot = await this.#machine.snapshot()
      this.#catchUps.opened(id, snapshot.mark.position.index)
      this.#link.post({
        type: 'snapshotOpened',
        id,
        position: snapshot.mark.position,
        configuration: Uint8Array.from(Buffer.from(snapshot.mark.configuration, 'base64')),
      })
      await this.#sendChunks(id, sending, snapshot)
    } catch (error) {
      this.#link.post({ type: 'snapshotFailed', id, reason: String(error) })
    } finally {
      this.#sendings.delete(id)
      await snapshot?.close()
    }
  }

  async #sendChunks(id: number, sending: Sending, snapshot: StoreSnapshot): Promise<void> {
    for await (const { data, isLast } of copyStatePieces(snapshot)) {
      await sending.ready()
      if (sending.isOver) return
      sending.credit -= 1
      this.#link.post({ type: 'snapshotChunk', id, data, isLast }, [data.buffer])
    }
  }

  #begin(id: number): void {
    this.#abandon()
    const receiving: Receiving = {
      id,
      receiver: null,
      steps: Promise.resolve(),
      hasFailed: false,
      chunks: 0,
    }
    this.#receiving = receiving
    const before = this.#abandoned
    receiving.steps = this.#guarded(receiving, async () => {
      await before
      if (receiving.hasFailed) return
      await this.#guard.makeRoom()
      receiving.receiver = await this.#machine.receive()
    })
  }

  #step(id: number, work: (receiver: StoreReceiver, receiving: Receiving) => Promise<void>): void {
    const receiving = this.#receiving
    if (receiving?.id !== id) return
    const before = receiving.steps
    receiving.steps = this.#guarded(receiving, async () => {
      await before
      if (receiving.hasFailed || receiving.receiver === null) return
      await work(receiving.receiver, receiving)
    })
  }

  async #guarded(receiving: Receiving, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      receiving.hasFailed = true
      const receiver = receiving.receiver
      receiving.receiver = null
      this.#link.post({ type: 'receiveFailed', id: receiving.id, reason: String(error) })
      await receiver?.abandon().catch(() => undefined)
    }
  }

  async #finish(id: number, receiver: StoreReceiver): Promise<void> {
    const mark = await receiver.finish()
    this.#link.post({
      type: 'receiveFinished',
      id,
      position: mark.position,
      configuration: Uint8Array.from(Buffer.from(mark.configuration, 'base64')),
    })
  }

  #abandon(): void {
    const receiving = this.#receiving
    this.#receiving = null
    if (receiving === null) return
    // The steps that handle the queued chunks check this flag and drop the chunks.
    receiving.hasFailed = true
    this.#abandoned = this.#guarded(receiving, async () => {
      await receiving.steps
      const receiver = receiving.receiver
      receiving.receiver = null
      await receiver?.abandon()
    })
  }
}
