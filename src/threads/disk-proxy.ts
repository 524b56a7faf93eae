import { encodeEntries } from '../raft/entry-codec.ts'
import type { Disk, DiskWrite, Position } from '../raft/types.ts'
import { type DiskStats, ZERO_DISK_STATS } from '../ports/stats.ts'
import type { MessagePortLink } from './message-port-link.ts'
import type { WalCommand, WalEvent } from './wal-messages.ts'

/** The Raft thread's proxy for the disk of the WAL thread. Each call sends a message. */
export class DiskProxy implements Disk {
  onDurable: (token: number) => void = () => undefined
  onFailed: (error: Error) => void = () => undefined
  readonly #link: MessagePortLink<WalEvent, WalCommand>
  #onClosed: () => void = () => undefined
  #vitals: DiskStats = ZERO_DISK_STATS

  constructor(link: MessagePortLink<WalEvent, WalCommand>) {
    this.#link = link
    link.onMessage = (event) => this.#onEvent(event)
  }

  get vitals(): DiskStats {
    return this.#vitals
  }

  write({ token, hardState, entries, commit }: DiskWrite): void {
    const packed = encodeEntries(entries)
    this.#link.post({ type: 'write', token, hardState, entries: packed, commit }, [packed.buffer])
  }

  compact(position: Position): void {
    this.#link.post({ type: 'compact', position })
  }

  reset(position: Position, token: number): void {
    this.#link.post({ type: 'reset', position, token })
  }

  settle(owed: Position | null): void {
    this.#link.post({ type: 'settle', owed })
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onClosed = resolve
      this.#link.post({ type: 'close' })
    })
    this.#link.close()
  }

  #onEvent(event: WalEvent): void {
    switch (event.type) {
      case 'durable':
        this.onDurable(event.token)
        break
      case 'failed':
        this.onFailed(new Error(event.reason))
        break
      case 'closed':
        this.#onClosed()
        break
      case 'vitals':
        this.#vitals = event
        break
      case 'opened':
        break
    }
  }
}
