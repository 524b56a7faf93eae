import { type Random, seededRandom } from '../../src/lib/random.ts'
import { type Client, until } from '../process/support/client.ts'
import { Fleet } from '../process/support/fleet.ts'
import { Load } from '../process/support/load.ts'
import { damageData, type Target } from './file-damage.ts'

const ALL = [1, 2, 3] as const

/**
 * Log limits so low that controllers truncate their logs, and damage affects more than one segment.
 */
export const shortLogs = {
  FLOTILLA_LOG_SEGMENT_BYTES: '1048576',
  FLOTILLA_LOG_RETAIN_ENTRIES: '1000',
}

/** Log messages of a controller about its response to damage. */
const DEEDS = {
  'log repaired': /the log restarts after the applied state/g,
  'debt paid': /cleared: the log was damaged and may lack/g,
  'state given up': /discarded; will be rebuilt from the log or peers/g,
  'entered anew': /re-admitted with an empty data folder/g,
  'torn end cut': /truncated a torn write at the tail of the log/g,
} as const

/**
 * Runs rounds in which one of three controllers is stopped or killed while clients write, its files
 * are damaged at a random place, and it is started again. It must become a voter that can lead.
 * Then every controller must have every acknowledged write exactly once and no other write, and all
 * states must be equal.
 */
export class DamageCampaign {
  readonly #fleet: Fleet
  readonly #random: Random
  readonly #writesBefore: number
  #load: Load

  private constructor(fleet: Fleet, seed: number, before: Load) {
    this.#fleet = fleet
    this.#random = seededRandom(seed)
    this.#writesBefore = before.fates.size
    this.#load = before
  }

  /** Starts a campaign with its own cluster, which ends with the campaign. */
  static async start(seed: number): Promise<DamageCampaign> {
    const fleet = await Fleet.create(3, { env: shortLogs })
    try {
      await fleet.init()
      await fleet.join(2, 1)
      await fleet.join(3, 1)
      return await DamageCampaign.on(fleet, seed)
    } catch (error) {
      await fleet[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Starts a campaign on three running controllers with `shortLogs`. */
  static async on(fleet: Fleet, seed: number): Promise<DamageCampaign> {
    const reader = await fleet.loggedIn(1)
    return new DamageCampaign(fleet, seed, await Load.written(reader))
  }

  /** Number of writes that were acknowledged in all rounds so far. */
  get writes(): number {
    return this.#load.fates.size - this.#writesBefore
  }

  /**
   * Runs one round. @returns a line that describes it. @throws if the cluster is not healthy
   * afterwards.
   */
  async round(target: Target): Promise<string> {
    const fleet = this.#fleet
    const random = this.#random
    const victim = random.integer(1, ALL.length)
    const witness = ALL.find((k) => k !== victim) ?? 1
    const signal = random.next() < 0.5 ? 'SIGKILL' : 'SIGTERM'
    const clients = await Promise.all(ALL.map((k) => fleet.loggedIn(k)))
    const load = new Load(clients, 6, this.#load)
    this.#load = load
    try {
      await load.more(random.integer(20, 150))
      await fleet.stop(victim, signal)
      const done = damageData(fleet.data(victim), target, random)
      await load.more(random.integer(1, 150))
      const deedsBefore = this.#deeds(victim)
      fleet.run(victim)
      await this.#isWholeAgain(victim, witness)
      await load.more(20)
      await load.end()
      await this.#expectSame(load)
      const deeds = this.#deeds(victim)
      const told = Object.keys(DEEDS).filter((_, at) => (deeds[at] ?? 0) > (deedsBefore[at] ?? 0))
      const outcome = told.length === 0 ? 'nothing was missed' : told.join(', ')
      return `ctrl${victim} ${signal}, ${done}: ${outcome}`
    } catch (error) {
      const logs = fleet.logs()
      // Ends the load, because the next round would consider its further writes unexpected.
      await load.end().catch(() => undefined)
      throw new Error(`${String(error)}\n${logs}`, { cause: error })
    } finally {
      for (const client of clients) client.close()
    }
  }

  #deeds(k: number): number[] {
    const log = this.#fleet.log(k)
    return Object.values(DEEDS).map((words) => [...log.matchAll(words)].length)
  }

  /**
   * Waits until the damaged controller votes, has repaired its log, and becomes leader on request,
   * which it refuses before.
   */
  async #isWholeAgain(victim: number, witness: number): Promise<void> {
    const fleet = this.#fleet
    await until(
      `ctrl${victim} is a voter again`,
      () => fleet.isConnectedVoter(victim, witness),
      90_000,
    )
    await until(
      `ctrl${victim} can lead`,
      async () => {
        if ((await fleet.leader(witness)) === victim) return true
        await fleet.cluster(witness, 'transfer-leadership', `ctrl${victim}`)
        return (await fleet.leader(witness)) === victim
      },
      60_000,
    )
    // A controller votes and may lead before its admin socket is open.
    await until(`ctrl${victim} answers`, () => fleet.status(victim), 60_000)
    const alarms = await fleet.cluster(victim, 'status', '--json')
    if (alarms.includes('LOG_REPAIRING')) throw new Error(`ctrl${victim} leads and owes: ${alarms}`)
  }

  async #expectSame(load: Load): Promise<void> {
    const fleet = this.#fleet
    for (const k of ALL) {
      const reader: Client = await fleet.loggedIn(k)
      await until(`ctrl${k} holds every write, and nothing else`, async () => {
        await load.expectAll(reader)
        return true
      })
      reader.close()
    }
    await until('one digest at one index', async () => {
      const statuses = await Promise.all(ALL.map((k) => fleet.status(k)))
      const own = statuses.map((members, at) => members.find(({ id }) => id === `ctrl${at + 1}`))
      return new Set(own.map((member) => `${member?.digestIndex} ${member?.digest}`)).size === 1
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fleet[Symbol.asyncDispose]()
  }
}
