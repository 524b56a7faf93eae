import { seededRandom } from '../../src/lib/random.ts'
import { codeOf, Enrolling } from '../process/support/enrolling.ts'
import { type Answer, pause, UndeclaredAnswer, until } from '../process/support/client.ts'
import type { TestCluster } from '../process/support/cluster.ts'
import {
  type Authority,
  newSubject,
  type Subject,
  type SubjectKind,
  subjectKinds,
} from './interrupted-subjects.ts'

/** Counts of the enrollments of one kind over all rounds. */
export interface Tally {
  brought: number
  /** Answered before the leader was killed, or although it was killed. */
  answered: number
  /** Not answered, but completed. */
  completed: number
  /** Not answered, and without any effect. */
  nothing: number
  /** Sent again, and refused because the token or certificate had been used. */
  told: number
}

/** Enrollments of each kind per round. */
const SUBJECTS = 2
/** Responses after which the outcome is unknown, or that promise that nothing happened. */
const OPEN_CODES: ReadonlySet<string | undefined> = new Set([
  'OUTCOME_UNKNOWN',
  'TIMEOUT',
  'CLUSTER_NO_LEADER',
  'INDEX_NOT_REACHED',
  'SERVER_TOO_MANY_REQUESTS',
])

/**
 * Runs rounds in which the leader is killed (-9) while enrollments of every kind are in progress on
 * all controllers, each at a random moment between request and response. Each enrollment must then
 * have taken effect completely or not at all. It is repeated until it is answered, and its
 * credential must then work.
 */
export class InterruptedEnrollments {
  readonly #cluster: TestCluster
  readonly #random
  readonly #net: Enrolling
  readonly #authority: Authority
  /** Duration of an enrollment of each kind without an interruption. */
  readonly #tookMs = new Map<SubjectKind, number>()
  #killed = 0
  readonly tallies = new Map<SubjectKind, Tally>()

  private constructor(cluster: TestCluster, seed: number, net: Enrolling, authority: Authority) {
    this.#cluster = cluster
    this.#random = seededRandom(seed)
    this.#net = net
    this.#authority = authority
    for (const kind of subjectKinds) {
      this.tallies.set(kind, { brought: 0, answered: 0, completed: 0, nothing: 0, told: 0 })
    }
  }

  static async on(cluster: TestCluster, seed: number): Promise<InterruptedEnrollments> {
    const net = await Enrolling.on(cluster)
    const authority = await net.newCa(1)
    await net.verifyCa(2, authority)
    const made = new InterruptedEnrollments(cluster, seed, net, authority)
    // The first enrollments take longer than all later ones.
    for (let time = 0; time < 2; time += 1) await made.#warmUp()
    return made
  }

  async #warmUp(): Promise<void> {
    const subjects = await this.#newSubjects()
    this.#tookMs.clear()
    await Promise.all(
      subjects.map(async (subject, at) => {
        const from = performance.now()
        const answer = await subject.bring((at % 3) + 1)
        if (answer.status !== 200) throw new Error(`${subject.kind}: ${answer.text}`)
        const tookMs = performance.now() - from
        this.#tookMs.set(subject.kind, Math.max(tookMs, this.#tookMs.get(subject.kind) ?? 0))
      }),
    )
  }

  #newSubjects(): Promise<Subject[]> {
    const kinds = subjectKinds.flatMap((kind) => Array.from({ length: SUBJECTS }, () => kind))
    return Promise.all(
      kinds.map((kind, at) => newSubject(this.#net, kind, (at % 3) + 1, this.#authority)),
    )
  }

  /**
   * Runs one round. @returns a line that describes it. @throws if an enrollment took effect only in
   * part, or cannot be completed.
   */
  async round(): Promise<string> {
    const subjects = await this.#newSubjects()
    const leader = await this.#cluster.leader()
    const first = await this.#interrupt(subjects, leader)
    const [one = 1, other = 2] = [1, 2, 3].filter((k) => k !== leader)
    await until(
      'a new leader',
      async () => (await this.#net.ask(one, 'GET', '/cas')).status === 200,
    )
    await Promise.all(
      subjects.map((subject, at) => this.#judge(subject, first[at] ?? null, one, other)),
    )
    this.#killed = leader
    const lost = first.filter((answer) => answer === null).length
    return `ctrl${leader} killed, ${lost} of ${first.length} left without an answer`
  }

  /** Restarts the controller that the last round killed. */
  async restore(): Promise<void> {
    const killed = this.#killed
    this.#cluster.run(killed)
    await until(
      `ctrl${killed} is back`,
      async () => (await this.#net.ask(killed, 'GET', '/cas')).status === 200,
    )
  }

  /** @returns the responses; null if none arrived, or one with an unknown outcome. */
  async #interrupt(subjects: readonly Subject[], leader: number): Promise<(Answer | null)[]> {
    const leadMs = 1.5 * Math.max(...this.#tookMs.values())
    const answers = subjects.map(async (subject) => {
      const tookMs = this.#tookMs.get(subject.kind) ?? 0
      const beforeMs = this.#random.next() * 1.2 * tookMs
      // Often sends to the leader itself, because only its callers can lose the response to a
      // committed write.
      const k = this.#random.next() < 0.5 ? leader : this.#random.integer(1, 3)
      await pause(leadMs - beforeMs)
      return await definite(() => subject.bring(k))
    })
    await pause(leadMs)
    this.#cluster.kill(leader)
    return await Promise.all(answers)
  }

  async #judge(subject: Subject, first: Answer | null, one: number, other: number): Promise<void> {
    const tally = this.tallies.get(subject.kind)
    if (tally === undefined) throw new Error('no such kind')
    try {
      tally.brought += 1
      if (first !== null && first.status !== 200) throw new Error(`refused: ${first.text}`)
      const isHeld = await subject.isHeld(one)
      if (first !== null) tally.answered += 1
      else if (isHeld) tally.completed += 1
      else tally.nothing += 1
      if (first !== null && !isHeld) throw new Error('it was acknowledged, and did not happen')
      const last = await until('an answer', () => definite(() => subject.bring(other)))
      if (!(await subject.isHeld(one))) throw new Error(`it did not happen: ${last.text}`)
      const ending = await subject.settle(one, first, last)
      if (ending === 'enrolled') return
      if (!isHeld) throw new Error('it is told to have been used, and was not')
      tally.told += 1
    } catch (error) {
      const answered = first === null ? 'no answer' : `${first.status}`
      throw new Error(`${subject.kind}, first ${answered}: ${String(error)}`, { cause: error })
    }
  }
}

async function definite(ask: () => Promise<Answer>): Promise<Answer | null> {
  try {
    const answer = await ask()
    return OPEN_CODES.has(codeOf(answer)) ? null : answer
  } catch (error) {
    if (error instanceof UndeclaredAnswer) throw error
    return null
  }
}
