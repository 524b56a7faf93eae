import { rmSync } from 'node:fs'
import { seededRandom } from '../../src/lib/random.ts'
import { pause, until } from '../process/support/client.ts'
import { expectMembers, Fleet } from '../process/support/fleet.ts'

export type Victim = 'joiner' | 'admitter' | 'leader'

/**
 * Runs rounds in which a fourth controller joins three others, and one process is killed (-9) at a
 * random moment. The same join is repeated until it succeeds. The members must then be exactly the
 * four and, after a removal, exactly the three.
 */
export class JoinCampaign {
  readonly #fleet: Fleet
  readonly #random
  #joinMs = 2000

  private constructor(fleet: Fleet, seed: number) {
    this.#fleet = fleet
    this.#random = seededRandom(seed)
  }

  static async start(seed: number): Promise<JoinCampaign> {
    const fleet = await Fleet.create(4)
    const campaign = new JoinCampaign(fleet, seed)
    try {
      await fleet.init()
      await fleet.join(2, 1)
      const start = performance.now()
      await fleet.join(3, 1)
      campaign.#joinMs = performance.now() - start
      await expectMembers(fleet, [1, 2, 3])
    } catch (error) {
      await campaign[Symbol.asyncDispose]()
      throw error
    }
    return campaign
  }

  /**
   * Runs one round. @returns a line that describes it. @throws if the cluster is not healthy
   * afterwards.
   */
  async round(victim: Victim): Promise<string> {
    const fleet = this.#fleet
    const leader = await fleet.leader(1)
    const admitter = [1, 2, 3].find((k) => k !== leader) ?? 1
    const ticket = await fleet.invite(admitter)
    const afterMs = this.#random.integer(0, Math.ceil(this.#joinMs))
    fleet.beginJoin(4, ticket)
    await pause(afterMs)
    const killed = { joiner: 4, admitter, leader }[victim]
    await fleet.stop(killed, 'SIGKILL')
    if (killed !== 4) fleet.run(killed)
    const attempts = await this.#joinUntilDone(ticket)
    await expectMembers(fleet, [1, 2, 3, 4])
    await this.#remove()
    return `${victim} killed after ${afterMs} ms; joined with ${attempts} more attempts`
  }

  async #joinUntilDone(ticket: string): Promise<number> {
    let attempts = 0
    await until(
      'the fourth has joined',
      async () => {
        if (!this.#fleet.isRunning(4)) {
          attempts += 1
          this.#fleet.beginJoin(4, ticket)
          await pause(200)
        }
        return /^joined\b/m.test(this.#fleet.log(4))
      },
      90_000,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.#fleet.logs()}`)
    })
    return attempts
  }

  async #remove(): Promise<void> {
    const fleet = this.#fleet
    await fleet.change(1, 'remove', 'ctrl4')
    await fleet.ended(4)
    await expectMembers(fleet, [1, 2, 3])
    rmSync(fleet.folder(4), { recursive: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fleet[Symbol.asyncDispose]()
  }
}
