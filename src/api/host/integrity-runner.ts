import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  IntegrityClaimSchema,
  IntegrityDetachSchema,
  IntegrityEndSchema,
  IntegrityRebuildSchema,
} from '../../../proto/gen/command_pb.ts'
import { type IntegrityRun, integrityRunRecordId } from '../../entities/kinds/integrity-run.ts'
import { Problem } from '../../lib/problems.ts'
import type {
  IntegrityFinding,
  IntegrityRepair,
  IntegrityScan,
} from '../../fsm/cluster/integrity-scan.ts'
import type { StateReader } from '../../fsm/state-reader.ts'
import type { Outcome, Proposer } from '../../ports/proposer.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Clock } from '../../lib/clock.ts'
import type { PeriodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { ApiLimits } from '../limits.ts'
import type { ServiceLogger } from '../../ports/logger.ts'

interface IntegrityRunnerDeps {
  readonly proposer: Proposer
  readonly cluster: ClusterView
  readonly state: StateView & Pick<StateReader, 'scanIntegrity'>
  readonly clock: Clock
  readonly scheduler: PeriodicScheduler
  readonly limits: ApiLimits
  readonly instanceId: string
  readonly logger: ServiceLogger
}

interface Judged {
  readonly description: string
  readonly fixed: boolean
}

/**
 * Runs integrity checks on the leader. The log records when a run is requested, started and ended,
 * so any controller can show it. If a new leader finds a run that an earlier leader started, it
 * ends the run, because no controller continues it.
 */
export class IntegrityRunner {
  readonly #deps: IntegrityRunnerDeps
  #stop: () => void = () => undefined
  #isAtWork = false

  constructor(deps: IntegrityRunnerDeps) {
    this.#deps = deps
  }

  start(): void {
    const { scheduler, limits } = this.#deps
    this.#stop = scheduler.every(limits.integrityLookMs, () => {
      this.nudge()
    })
  }

  stop(): void {
    this.#stop()
  }

  /** Starts a requested run, without waiting for the next poll. */
  nudge(): void {
    void this.look()
  }

  /**
   * On the leader, carries out the requested run, or ends a started run that no controller
   * continues. Resolves when the run has ended.
   */
  async look(): Promise<void> {
    const run = this.#ownRun()
    if (run === null || this.#isAtWork) return
    this.#isAtWork = true
    try {
      if (run.runner !== '') await this.#end(run, { error: stoppedEarly(run.runner) })
      else if (await this.#claim(run)) await this.#carryOut({ ...run, runner: this.#self })
    } catch (error) {
      // Ignores a missing leader or response: the next poll ends a run that is still in progress.
      if (!(error instanceof Problem)) {
        this.#deps.logger.error({ err: error }, 'an integrity run failed')
      }
    } finally {
      this.#isAtWork = false
    }
  }

  /**
   * Identifies this process as the runner. After a restart, the process counts as another runner.
   */
  get #self(): string {
    return `${this.#deps.cluster.selfId} ${this.#deps.instanceId}`
  }

  /** The run in progress, if this controller is the leader; otherwise null. */
  #ownRun(): IntegrityRun | null {
    const { state, cluster } = this.#deps
    const run = state.get('integrityRun', integrityRunRecordId)
    return run?.isInProgress === true && cluster.leaderId() === cluster.selfId ? run : null
  }

  async #claim({ runId }: IntegrityRun): Promise<boolean> {
    const message = create(IntegrityClaimSchema, { runId, runner: this.#self })
    const payload = toBinary(IntegrityClaimSchema, message)
    return (await this.#propose(CommandKind.INTEGRITY_CLAIM, payload)).ok
  }

  async #carryOut(run: IntegrityRun): Promise<void> {
    const scan = this.#deps.state.scanIntegrity()
    while (this.#slice(scan)) {
      await new Promise((resolve) => setImmediate(resolve))
      const current = this.#ownRun()
      if (current?.runId !== run.runId || current.runner !== run.runner) return
    }
    const judged = run.isFixing ? await this.#fix(scan.findings) : scan.findings.map(unfixed)
    await this.#end(run, { judged, hasMore: scan.hasMore })
  }

  /**
   * Checks the next part of the state.
   * @returns false once the whole state is checked.
   */
  #slice(scan: IntegrityScan): boolean {
    const { clock, limits } = this.#deps
    const endMs = clock.monotonicMs() + limits.integritySliceMs
    while (clock.monotonicMs() < endMs) if (!scan.step()) return false
    return true
  }

  /**
   * Repairs the findings. Rebuilds each faulty table once, even if the table has several faults.
   */
  async #fix(findings: readonly IntegrityFinding[]): Promise<Judged[]> {
    const rebuilt = new Map<string, boolean>()
    const judged: Judged[] = []
    for (const { description, repair } of findings) {
      let fixed: boolean
      if (repair.kind === 'detach') fixed = await this.#detach(repair)
      else {
        fixed = rebuilt.get(repair.entity) ?? (await this.#rebuild(repair.entity))
        rebuilt.set(repair.entity, fixed)
      }
      judged.push({ description, fixed })
    }
    return judged
  }

  async #rebuild(entity: string): Promise<boolean> {
    const payload = toBinary(IntegrityRebuildSchema, create(IntegrityRebuildSchema, { entity }))
    return (await this.#propose(CommandKind.INTEGRITY_REBUILD, payload)).ok
  }

  async #detach({ entity, id, field, missingId }: Extract<IntegrityRepair, { kind: 'detach' }>) {
    const message = create(IntegrityDetachSchema, { entity, id, field, missingId })
    const payload = toBinary(IntegrityDetachSchema, message)
    return (await this.#propose(CommandKind.INTEGRITY_DETACH, payload)).ok
  }

  async #end(
    { runId, runner }: IntegrityRun,
    outcome: { judged?: readonly Judged[]; hasMore?: boolean; error?: string },
  ): Promise<void> {
    const { judged = [], hasMore = false, error = '' } = outcome
    const message = create(IntegrityEndSchema, {
      runId,
      runner,
      error,
      findings: judged.map(({ description, fixed }) => ({ description, fixed })),
      tooManyErrors: hasMore,
    })
    await this.#propose(CommandKind.INTEGRITY_END, toBinary(IntegrityEndSchema, message))
  }

  async #propose(kind: CommandKind, payload: Uint8Array): Promise<Outcome> {
    const { outcome } = await this.#deps.proposer.propose({ kind, payload, actor: SYSTEM_ACTOR })
    return outcome
  }
}

function unfixed({ description }: IntegrityFinding): Judged {
  return { description, fixed: false }
}

/**
 * Message for a run that ended before it was complete.
 * @param runner a controller id, a space, and the instance id of its process.
 */
function stoppedEarly(runner: string): string {
  return `${runner.split(' ')[0] ?? runner} stopped before the end of the run; start it again`
}
