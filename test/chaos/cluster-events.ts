import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Random } from '../../src/lib/random.ts'
import { createService, pause, until } from '../process/support/client.ts'
import type { Fleet } from '../process/support/fleet.ts'
import type { ChaosClients } from './chaos-clients.ts'
import type { RecordedLoad } from './recorded-load.ts'

/** A busy machine takes half a minute to start three controllers. */
const BACK_WITHIN_MS = 120_000
/** A membership change waits for elections, for members to catch up, and for frozen members. */
const CHANGED_WITHIN_MS = 180_000
const VOTERS_MIN = 3

/**
 * Faults of a cluster, and actions of its operators. Each method returns a short description of
 * what it did.
 */
export class ClusterEvents {
  readonly members: Set<number>
  readonly #fleet: Fleet
  readonly #clients: ChaosClients
  readonly #random: Random
  #restores = 0

  constructor(fleet: Fleet, clients: ChaosClients, random: Random) {
    this.#fleet = fleet
    this.#clients = clients
    this.#random = random
    this.members = new Set([1, 2, 3])
  }

  /** Kills or freezes some or all controllers, and lets them return after a while. */
  async strike(): Promise<string> {
    const random = this.#random
    const struck = [...this.members].filter(() => random.next() < 0.5)
    if (struck.length === 0) struck.push(this.#any())
    const frozen = struck.filter(() => random.next() < 0.3)
    for (const k of struck) {
      if (frozen.includes(k)) this.#fleet.signal(k, 'SIGSTOP')
      else await this.#fleet.stop(k, 'SIGKILL')
      await pause(random.integer(0, 300))
    }
    await pause(random.integer(0, 2500))
    for (const k of struck) {
      if (frozen.includes(k)) this.#fleet.signal(k, 'SIGCONT')
      else this.#fleet.run(k)
    }
    await this.#allAnswer()
    return struck.map((k) => `ctrl${k} ${frozen.includes(k) ? 'frozen' : 'killed'}`).join(', ')
  }

  async join(): Promise<string> {
    const free = this.#free()
    if (free === undefined) return await this.leave()
    await this.#disturbed(() => this.#join(free))
    return `ctrl${free} joined`
  }

  /**
   * Removes a member. If the cluster would then not tolerate a failure, another member joins
   * instead.
   */
  async leave(): Promise<string> {
    if (this.members.size <= VOTERS_MIN) return await this.join()
    const leaving = this.#any()
    this.#clients.remove(leaving)
    await this.#disturbed(() => this.#change(leaving, 'remove', `ctrl${leaving}`))
    await this.#forget(leaving)
    return `ctrl${leaving} left`
  }

  /** A member loses its disk, and a learner becomes a voter in its place. */
  async replace(): Promise<string> {
    const free = this.#free()
    if (free === undefined) return await this.leave()
    const lost = this.#any()
    await this.#join(free, '--learner')
    this.#clients.remove(lost)
    await this.#fleet.stop(lost, 'SIGKILL')
    await this.#change(lost, 'replace', `ctrl${lost}`, `ctrl${free}`)
    await this.#forget(lost)
    return `ctrl${lost} lost, ctrl${free} votes in its place`
  }

  async transfer(): Promise<string> {
    const to = this.#any()
    await this.#change(null, 'transfer-leadership', `ctrl${to}`)
    return `leadership transferred to ctrl${to}`
  }

  /**
   * Restores a backup, which removes everything that was written after it. The clients pause during
   * the restore, so all their writes are older than the backup. Two services are created in
   * between; exactly these must be gone on every controller.
   */
  async restore(recorded: RecordedLoad): Promise<string> {
    await Promise.all([this.#clients.pause(), recorded.pause()])
    this.#restores += 1
    const file = join(this.#fleet.dir, `${this.#restores}.backup`)
    await this.#asked('a backup', (k) => [
      'snapshot',
      'save',
      file,
      '--config',
      this.#fleet.config(k),
      '--plaintext',
    ])
    const doomed = [1, 2].map((n) => `doomed-${this.#restores}-${n}`)
    for (const name of doomed) {
      await createService(this.#clients.pool, 0, name, { hasRequestId: true })
    }
    const id = await this.#fleet.clusterId(this.#any())
    await this.#disturbed(async () => {
      await this.#asked('the restore', (k) => [
        'snapshot',
        'restore',
        file,
        '--config',
        this.#fleet.config(k),
        '--confirm',
        id,
      ])
    })
    await this.#clients.logInAgain()
    for (const k of this.members) await this.#expectGone(k, doomed)
    rmSync(file)
    this.#clients.resume()
    recorded.resume()
    return 'a backup was restored'
  }

  /**
   * Runs a command. If it reports that a member is not reachable or that there is no leader, waits
   * and runs the same command again, as an operator would.
   */
  async #asked(what: string, words: (k: number) => readonly string[]): Promise<void> {
    await until(
      what,
      async () => {
        const { code, stderr } = await this.#fleet.cli(['cluster', ...words(this.#any())])
        if (code !== 0 && !/already exists/.test(stderr)) throw new Error(stderr)
        return true
      },
      CHANGED_WITHIN_MS,
    )
  }

  async #expectGone(k: number, names: readonly string[]): Promise<void> {
    const list = names.map((name) => `"${name}"`).join(',')
    const filter = encodeURIComponent(`name in [${list}]`)
    const path = `/edge/management/v1/services?consistency=linearizable&filter=${filter}`
    await until(`ctrl${k} shows what was restored`, async () => {
      const answer = await this.#clients.of(k).request('GET', path)
      if (answer.status !== 200) throw new Error(answer.text)
      const there = answer.body.data as readonly unknown[]
      if (there.length > 0) throw new Error(`${answer.text} is there after the restore`)
      return true
    })
  }

  /**
   * Upgrades from the previous release, one controller after the other, with a fault during each.
   */
  async upgrade(): Promise<string> {
    for (const k of Array.from(this.members)) {
      await this.#fleet.stop(k)
      this.#fleet.programs.delete(k)
      this.#fleet.run(k)
      await this.#allAnswer()
      if (this.#random.next() < 0.5) await this.strike()
    }
    return 'every controller upgraded'
  }

  async #allAnswer(): Promise<void> {
    for (const k of this.members) {
      const answers = async (): Promise<boolean> => {
        const answer = await this.#clients
          .of(k)
          .request('GET', '/health-checks', { timeoutMs: 2000 })
        return answer.status === 200
      }
      await until(`ctrl${k} answers`, answers, BACK_WITHIN_MS)
    }
  }

  async #join(k: number, ...options: readonly string[]): Promise<void> {
    const ticket = await until(
      'a ticket',
      () => this.#fleet.invite(this.#any(), ...options),
      CHANGED_WITHIN_MS,
    )
    this.#fleet.beginJoin(k, ticket)
    await until(
      `ctrl${k} has joined`,
      async () => {
        // Runs the same command again after an interrupted join, as an operator would.
        if (!this.#fleet.isRunning(k)) this.#fleet.beginJoin(k, ticket)
        await pause(200)
        return /^joined\b/m.test(this.#fleet.log(k))
      },
      CHANGED_WITHIN_MS,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.#fleet.logs()}`)
    })
    this.members.add(k)
    await this.#clients.add(k)
  }

  /**
   * Requests a membership change from any other member until it is made; a change that has been
   * made already counts as success.
   */
  async #change(without: number | null, ...words: readonly string[]): Promise<void> {
    await until(
      words.join(' '),
      async () => {
        const others = [...this.members].filter((k) => k !== without && this.#fleet.isRunning(k))
        const asked = others[this.#random.integer(0, others.length - 1)]
        if (asked === undefined) throw new Error('nobody runs who could be asked')
        await this.#fleet.change(asked, ...words)
        return true
      },
      CHANGED_WITHIN_MS,
    )
  }

  /**
   * A removed member exits by itself; its folder is deleted, so that its name can be used again.
   */
  async #forget(k: number): Promise<void> {
    this.members.delete(k)
    await this.#fleet.ended(k, BACK_WITHIN_MS)
    rmSync(this.#fleet.folder(k), { recursive: true, force: true })
  }

  /** Runs an action; often one of the members is frozen for a short time meanwhile. */
  async #disturbed(act: () => Promise<void>): Promise<void> {
    if (this.#random.next() < 0.5) return await act()
    const still = this.#any()
    const forMs = this.#random.integer(200, 3000)
    this.#fleet.signal(still, 'SIGSTOP')
    const goesOn = pause(forMs).then(() => this.#fleet.signal(still, 'SIGCONT'))
    await Promise.all([act(), goesOn])
  }

  #any(): number {
    const all = [...this.members]
    return all[this.#random.integer(0, all.length - 1)] ?? 1
  }

  #free(): number | undefined {
    return Array.from({ length: this.#fleet.size }, (_, at) => at + 1).find(
      (k) => !this.members.has(k),
    )
  }
}
