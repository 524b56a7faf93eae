import { spawn } from 'node:child_process'
import { once } from 'node:events'

import { errorMessage } from '../../lib/error-code.ts'

/**
 * Time limit for sending a message. systemd does not answer messages, and a message that cannot be
 * sent must not block the process.
 */
const SEND_MS_MAX = 10_000
/**
 * Keep-alive messages in each watchdog interval. There are several, so that systemd does not
 * restart the process if one is late.
 */
const PINGS_PER_INTERVAL = 3
const US_PER_MS = 1000

interface Log {
  warn(fields: object, message: string): void
}

interface ServiceManagerOptions {
  /**
   * The environment. The systemd variables are removed after they are read, so that child processes
   * such as hooks do not send messages to systemd.
   */
  readonly env: NodeJS.ProcessEnv
  readonly pid: number
  readonly log: Log
}

/**
 * Reports the state of this process to systemd (`sd_notify`), if systemd requests it. For a unit
 * with `WatchdogSec=`, it also sends keep-alive messages while the main thread is responsive;
 * systemd restarts a process that stops sending them. Node.js has no Unix datagram sockets, so the
 * program `systemd-notify` sends each message, and the unit needs `NotifyAccess=all`.
 */
export class ServiceManager {
  readonly #log: Log
  readonly #env: NodeJS.ProcessEnv | null
  readonly #pingEveryMs: number | null
  #pingTimer: NodeJS.Timeout | null = null
  #sending: Promise<void> = Promise.resolve()
  #isPinging = false
  #hasFailed = false

  constructor({ env, pid, log }: ServiceManagerOptions) {
    this.#log = log
    const { NOTIFY_SOCKET: socket = '', WATCHDOG_USEC: interval, WATCHDOG_PID: watched } = env
    delete env['NOTIFY_SOCKET']
    delete env['WATCHDOG_USEC']
    delete env['WATCHDOG_PID']
    this.#env = socket === '' ? null : { PATH: env['PATH'], NOTIFY_SOCKET: socket }
    const isWatched = watched === undefined || Number(watched) === pid
    const intervalMs = Number(interval) / US_PER_MS
    this.#pingEveryMs = isWatched && intervalMs > 0 ? intervalMs / PINGS_PER_INTERVAL : null
  }

  /**
   * Reports that the start is complete: the program works, or is ready and waits for other hosts.
   */
  ready(status: string): void {
    this.#send('READY=1', `STATUS=${status}`)
    if (this.#pingEveryMs === null || this.#pingTimer !== null || this.#env === null) return
    this.#pingTimer = setInterval(() => this.#ping(), this.#pingEveryMs).unref()
  }

  /**
   * Reports that the program ends successfully. Without this, systemd would count an end before
   * `ready` as a failure. Resolves when the message was sent, or could not be sent.
   */
  async ended(reason: string): Promise<void> {
    if (this.#pingTimer !== null) clearInterval(this.#pingTimer)
    this.#send('READY=1', `STATUS=${reason}`)
    await this.#sending
  }

  /**
   * Reports that the program has begun to stop. Keep-alive messages continue until the process
   * ends.
   */
  stopping(): void {
    this.#send('STOPPING=1', 'STATUS=stopping')
  }

  #ping(): void {
    // Skips this message, because one pending keep-alive message is enough.
    if (this.#isPinging) return
    this.#isPinging = true
    this.#send('WATCHDOG=1')
    void this.#sending.then(() => {
      this.#isPinging = false
    })
  }

  /** Sends messages in the order of the calls. */
  #send(...assignments: readonly string[]): void {
    const env = this.#env
    if (env === null) return
    this.#sending = this.#sending.then(() =>
      runNotify(assignments, env).catch((error: unknown) => this.#reportFailure(error)),
    )
  }

  /** Logs only the first failure, because a permanent fault would fill the log. */
  #reportFailure(error: unknown): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    const reason = errorMessage(error)
    this.#log.warn(
      { reason },
      `cannot report to systemd: ${reason}; the unit needs the program systemd-notify and NotifyAccess=all`,
    )
  }
}

async function runNotify(words: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn('systemd-notify', words, { env, stdio: 'ignore', timeout: SEND_MS_MAX })
  child.unref()
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  if (code !== 0) throw new Error(`systemd-notify ended with ${code ?? signal}`)
}
