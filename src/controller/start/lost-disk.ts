import { requestAdmission } from '../../cluster/membership/admission-client.ts'
import type { AdmissionOutcome } from '../../cluster/membership/decide-admission.ts'
import type { Logger } from '../../cluster/logger.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { Problem } from '../../lib/problems.ts'
import { newOpaqueId } from '../../lib/random.ts'
import { FEATURE_LEVEL } from '../../ports/feature-level.ts'
import { createDataFolder } from '../../store/folder/create-data-folder.ts'
import { writeMembershipCacheFile } from '../../store/folder/membership-cache-file.ts'
import type { Credentials } from './check-certificates.ts'
import { removalActionAfterAdmission } from './removal-action.ts'
import { programVersion } from '../version.ts'

const PAUSE_MS = 2_000
/** Timeout per address. The leader responds only after it has committed a new configuration. */
const ANSWER_MS = 10_000

interface LostDisk {
  readonly config: ControllerConfig
  readonly credentials: Credentials
  /** Mesh addresses (host:port) of the members from which this controller requests admission. */
  readonly addresses: readonly string[]
  readonly startedAtMs: number
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Resolves when the program must stop waiting for admission. */
  readonly stop: Promise<unknown>
  /** Called after admission; must move an existing data folder away. */
  readonly makeRoom: () => void
}

/**
 * Requests admission with an empty disk until a member grants it, and creates a data folder that
 * the peers fill. The admission revokes the lost disk's right to vote, so the operator must not
 * bring the lost disk back.
 * @returns a sentence if this controller was removed meanwhile; `stopped` when the program must
 * stop.
 */
export async function rejoinWithEmptyDisk(
  lost: LostDisk,
): Promise<'entered' | 'stopped' | { removed: string }> {
  const { config, log } = lost
  const storeId = newOpaqueId()
  let isStopped = false
  void lost.stop.then(() => {
    isStopped = true
  })
  let lastSaid = ''
  while (!isStopped) {
    const answer = await Promise.race([ask(lost, storeId), lost.stop.then(() => 'stopped')])
    if (isStopped) break
    if (typeof answer !== 'string') {
      const fate = removalActionAfterAdmission(answer)
      if (fate !== null) return { removed: fate.sentence }
      if (answer.outcome !== 'refused') {
        lost.makeRoom()
        layDownEmpty(config, storeId, answer)
        log.info({ members: lost.addresses }, 're-admitted with an empty data folder')
        return 'entered'
      }
    }
    const reason = typeof answer === 'string' ? answer : answer.detail
    // A reason is logged only if it differs from the previous one.
    if (reason !== lastSaid) log.warn({}, `not admitted yet: ${reason}`)
    lastSaid = reason
    await Promise.race([lost.stop, new Promise((resolve) => setTimeout(resolve, PAUSE_MS))])
  }
  return 'stopped'
}

async function ask(lost: LostDisk, storeId: Uint8Array): Promise<AdmissionOutcome | string> {
  const { config, credentials, addresses, startedAtMs } = lost
  const { certificatePem, privateKeyPem, caPem } = credentials
  try {
    return await requestAdmission({
      addresses,
      resolvers: config.cluster.resolvers,
      identity: { certificatePem, privateKeyPem, caPem },
      trustDomain: config.trustDomain,
      clusterId: '',
      storeId,
      address: config.cluster.advertise,
      version: `v${programVersion()}`,
      featureLevel: FEATURE_LEVEL,
      startedAtMs,
      timeoutMs: ANSWER_MS,
    })
  } catch (error) {
    if (error instanceof Problem) return error.message
    throw error
  }
}

function layDownEmpty(
  config: ControllerConfig,
  storeId: Uint8Array,
  answer: Exclude<AdmissionOutcome, { readonly outcome: 'refused' }>,
): void {
  const { clusterId, generation, configuration, configurationIndex } = answer
  createDataFolder(config.data, { nodeId: config.id, storeId, clusterId, generation, entries: [] })
  writeMembershipCacheFile(config.data, {
    configuration,
    index: configurationIndex,
    claims: [],
    marks: [],
  })
}
