import { loadConfigOrFail, clusterOperationRequest } from '../client/connection.ts'
import { sendToAdminSocket } from '../client/admin-socket.ts'
import type { ClusterStatus, OpenZitiMember } from '../../api/cluster/cluster-status.ts'
import { runController } from '../controller/run.ts'
import { printLine } from '../terminal/output.ts'

const POLL_MS = 300
/**
 * A new progress line is printed each time the number of missing entries has decreased by this
 * fraction.
 */
const BEHIND_STEP = 0.25

export interface JoinTarget {
  readonly isVoter: boolean
  readonly isJson: boolean
}

/**
 * Runs the controller like `controller run`, and prints the progress of the join until the
 * controller has the role that its ticket grants.
 */
export async function runJoinedController(path: string, goal: JoinTarget): Promise<void> {
  const { data, id } = loadConfigOrFail(path)
  const progress = new JoinProgress(id, goal)
  const timer = setInterval(() => {
    void look(data, progress).then((isDone) => {
      if (isDone) clearInterval(timer)
    })
  }, POLL_MS)
  try {
    await runController(path, { isJoining: () => !progress.isOver })
  } finally {
    clearInterval(timer)
  }
}

async function look(dataFolder: string, progress: JoinProgress): Promise<boolean> {
  try {
    const status = (await sendToAdminSocket(
      dataFolder,
      clusterOperationRequest('status'),
    )) as ClusterStatus
    const listed = await sendToAdminSocket(dataFolder, clusterOperationRequest('list'))
    const members = listed as readonly OpenZitiMember[]
    return progress.report(status, members)
  } catch {
    // The controller does not respond yet, or is stopping. The next poll shows which.
    return false
  }
}

/** Prints a line for each step of a join; with JSON output, only one line when it is complete. */
export class JoinProgress {
  readonly #id: string
  readonly #goal: JoinTarget
  readonly #printed = new Set<string>()
  #isOver = false
  #behindReported = Infinity

  constructor(id: string, goal: JoinTarget) {
    this.#id = id
    this.#goal = goal
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** @returns true once the controller has joined. */
  report(status: ClusterStatus, members: readonly OpenZitiMember[]): boolean {
    if (this.#isOver) return true
    const own = members.find(({ id }) => id === this.#id)
    const self = status.members.find(({ id }) => id === this.#id)
    if (own === undefined || self === undefined) {
      this.#once('waiting', `${this.#id} requests admission`)
      return false
    }
    this.#once('listed', `${this.#id} is a member of cluster ${status.clusterId}`)
    const leader = status.members.find(({ id }) => id === status.leaderId)
    if (leader === undefined) return false
    const reached = members.flatMap(({ id, connected }) => (connected && id !== this.#id ? id : []))
    if (reached.length > 0) this.#once('reached', `connected to ${reached.join(', ')}`)
    const behind = Math.max(0, leader.commit - self.applied)
    const isCaughtUp = this.#reportBehind(behind)
    const isWhole = own.voter || !this.#goal.isVoter
    if (!isCaughtUp || !isWhole) return false
    this.#isOver = true
    const role = own.voter ? 'voter' : 'learner'
    if (this.#goal.isJson) {
      printLine(JSON.stringify({ joined: true, id: this.#id, clusterId: status.clusterId, role }))
    } else {
      printLine(`joined: ${this.#id} is a ${role}`)
    }
    return true
  }

  /**
   * @returns whether the controller has caught up. Up to 1000 missing log entries count as caught
   * up, because a controller under load always lags slightly.
   */
  #reportBehind(entries: number): boolean {
    if (entries <= 1000) {
      this.#once('caught up', `${this.#id} has caught up`)
      return true
    }
    if (entries < this.#behindReported * (1 - BEHIND_STEP)) {
      this.#behindReported = entries
      this.#print(`${this.#id} is ${entries} entries behind`)
    }
    return false
  }

  #once(what: string, line: string): void {
    if (this.#printed.has(what)) return
    this.#printed.add(what)
    this.#print(line)
  }

  #print(line: string): void {
    if (!this.#goal.isJson) printLine(line)
  }
}
