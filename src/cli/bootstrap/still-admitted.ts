import { queryAdmission } from '../../cluster/membership/admission-client.ts'
import type { AdmissionOutcome } from '../../cluster/membership/decide-admission.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { type Credentials, readCredentials } from '../../controller/start/check-certificates.ts'
import { StartCheckReport } from '../../controller/start/check-report.ts'
import { knownSeeds } from '../../controller/start/known-seeds.ts'
import { otherMeshAddresses, readKnownMembership } from '../../controller/start/known-voters.ts'
import { fencedMessage } from '../../controller/start/removal-action.ts'
import { programVersion } from '../../controller/version.ts'
import { systemClock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import { readFence } from '../../store/folder/fence-file.ts'
import { readDataIdentity } from '../../store/log/data-identity.ts'
import { moveAwayText } from '../controller/move-away-text.ts'
import type { CheckList } from '../terminal/check-list.ts'

/** Time limit for each address. All addresses are tried at the same time. */
const ANSWER_MS = 5_000
const ADDRESSES_MAX = 16

/**
 * Ends the join if the cluster would refuse the controller whose files are at the configured paths,
 * usually because it has removed the controller, which would then stop right after its start. If no
 * member responds, only prints a warning, because a completed join may be repeated while the
 * cluster is down. One member that would admit the controller outweighs all refusals, because a
 * removed controller may still respond.
 */
export async function checkStillAdmitted(
  config: ControllerConfig,
  checks: CheckList,
): Promise<void> {
  const { id } = config
  const fail = (sentence: string): never => checks.fail('admission', moveAwayText(config, sentence))
  const fence = readFence(config.data)
  if (fence !== null) fail(fencedMessage(id, fence))
  const report = new StartCheckReport()
  const credentials = readCredentials(config, systemClock.nowMs(), report)
  if (credentials === null) return checks.fail('key', report.faults.join('\n'))
  const outcome = await admissionOutcome(config, credentials)
  if (typeof outcome === 'string') {
    checks.warn('admission', `no member could confirm that ${id} is still admitted: ${outcome}`)
    return
  }
  if (isRefusal(outcome)) fail(outcome.detail)
  checks.ok('admission', `${id} is still admitted`)
}

type Refusal = Extract<AdmissionOutcome, { readonly outcome: 'refused' }>

/** `too-old` shows that the controller would be admitted, `store-in-use` that it is running. */
function isRefusal(outcome: AdmissionOutcome): outcome is Refusal {
  return outcome.outcome === 'refused' && !['too-old', 'store-in-use'].includes(outcome.reason)
}

/** @returns the decision of the cluster, or why no member reported it. */
async function admissionOutcome(
  config: ControllerConfig,
  { certificatePem, privateKeyPem, caPem }: Credentials,
): Promise<AdmissionOutcome | string> {
  const { id, data, cluster, trustDomain } = config
  const known = otherMeshAddresses(id, readKnownMembership(data))
  const addresses = [...new Set([...known, ...knownSeeds(config)])].slice(0, ADDRESSES_MAX)
  const { clusterId, storeId } = readDataIdentity(data)
  const queries = addresses.map((address) =>
    queryAdmission({
      addresses: [address],
      resolvers: cluster.resolvers,
      identity: { certificatePem, privateKeyPem, caPem },
      trustDomain,
      clusterId,
      storeId,
      address: cluster.advertise,
      version: `v${programVersion()}`,
      startedAtMs: systemClock.nowMs(),
      timeoutMs: ANSWER_MS,
    }),
  )
  return await combineAdmissionAnswers(queries)
}

/**
 * Waits for every answer, unless a member would admit the controller.
 * @returns a refusal only if no member would admit the controller; the reasons if none responded.
 */
export async function combineAdmissionAnswers(
  queries: readonly Promise<AdmissionOutcome>[],
): Promise<AdmissionOutcome | string> {
  const refusals: Refusal[] = []
  const admissions = queries.map(async (query) => {
    const outcome = await query
    if (!isRefusal(outcome)) return outcome
    refusals.push(outcome)
    throw new Problem('PEER_UNREACHABLE', { detail: outcome.detail })
  })
  try {
    return await Promise.any(admissions)
  } catch (error) {
    if (!(error instanceof AggregateError)) throw error
    const { errors } = error as { readonly errors: readonly unknown[] }
    const reasons = errors.flatMap((one) => (one instanceof Problem ? [one.message] : []))
    if (reasons.length < errors.length) throw error
    const [refusal] = refusals
    if (refusal !== undefined) return refusal
    return reasons.length === 0 ? 'their addresses are not known' : reasons.join('; ')
  }
}
