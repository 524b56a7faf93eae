import type { Disk, DiskWrite, Position } from '../../src/raft/types.ts'
import type { FileDisk } from '../../src/store/log/file-disk.ts'
import type { Platter } from './platter.ts'
import type { Context, VirtualLoop } from './virtual-loop.ts'

/**
 * The WAL thread: the production log over simulated files; other threads send it ordered messages.
 * Its event loop is blocked for the duration of each sync.
 */
export class SimulatedWal implements Disk {
  onDurable: (token: number) => void = () => undefined
  onFailed: (error: Error) => void = () => undefined
  readonly #loop: VirtualLoop
  readonly #contexts: { readonly main: Context; readonly wal: Context }
  readonly #disk: FileDisk
  readonly #platter: Platter

  constructor(
    loop: VirtualLoop,
    contexts: { readonly main: Context; readonly wal: Context },
    disk: FileDisk,
    platter: Platter,
  ) {
    this.#loop = loop
    this.#contexts = contexts
    this.#disk = disk
    this.#platter = platter
    disk.onDurable = (token) => {
      platter.durable(token)
      loop.afterIn(contexts.main, 0, () => {
        this.onDurable(token)
      })
    }
    disk.onFailed = (error) => {
      loop.afterIn(contexts.main, 0, () => {
        this.onFailed(error)
      })
    }
  }

  write(write: DiskWrite): void {
    this.#platter.note({ type: 'write', write })
    this.#tell(() => {
      this.#disk.write(write)
    })
  }

  compact(position: Position): void {
    this.#platter.note({ type: 'compact', position })
    this.#tell(() => {
      this.#disk.compact(position)
    })
  }

  reset(position: Position, token: number): void {
    this.#platter.note({ type: 'reset', position, token })
    this.#tell(() => {
      this.#disk.reset(position, token)
    })
  }

  settle(owed: Position | null): void {
    this.#tell(() => {
      this.#disk.settle(owed)
    })
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#tell(() => {
        this.#disk.closeNow()
        resolve()
      })
    })
  }

  #tell(task: () => void): void {
    this.#loop.afterIn(this.#contexts.wal, 0, task)
  }
}
