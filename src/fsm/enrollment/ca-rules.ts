import type { Ca } from '../../entities/kinds/ca.ts'
import type { ExternalIdClaim } from '../../entities/parts/ca-external-id-claim.ts'
import type { FieldFault } from '../../lib/problems.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { fieldFaultOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'
import type {
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'
import { endSessionsInvalidatedBy } from '../apply/session-validity.ts'
import { isCaAcceptedForLogIn } from '../apply/authentication.ts'

/**
 * Maximum number of third-party CAs, because the lookup of one certificate may read all of them.
 */
export const thirdPartyCasMax = 1000

export const caRules: KindRules<Ca> = { judgeWrite: judgeCa, afterWrite: endSessionsOfUntrusted }

/** Ends sessions whose log-in or authenticator depended on a CA that this write makes untrusted. */
function endSessionsOfUntrusted(
  { after }: CompletedWrite<Ca>,
  consequences: WriteConsequences,
): void {
  if (isCaAcceptedForLogIn(after)) return
  // @guard access-that-stays-open--ca
  endSessionsInvalidatedBy(consequences, 'caId', after.id)
  for (const id of consequences.state.table('authenticator').indexes.ids('caId', after.id)) {
    // @guard access-that-stays-open--credential
    endSessionsInvalidatedBy(consequences, 'authenticatorId', id)
  }
}

function judgeCa(state: State, { before, after }: ValidatedWrite<Ca>): Outcome | null {
  if (before === undefined && state.table('ca').rows.size >= thirdPartyCasMax) {
    const reason = `there are at most ${thirdPartyCasMax} CAs; delete one first`
    return fieldFaultOutcome({ field: 'certPem', reason })
  }
  for (const name of ['fingerprint', 'verificationToken'] as const) {
    if (!after[name]) {
      return fieldFaultOutcome({ field: 'certPem', reason: `${name} is missing` })
    }
  }
  const { externalIdClaim: claim = null } = after
  const fault = claim === null ? null : claimFault(claim)
  return fault === null ? null : fieldFaultOutcome(fault)
}

const isOneOf = (values: readonly string[], value: unknown): boolean =>
  typeof value === 'string' && values.includes(value)

/**
 * Fault in the external ID claim that would be stored. The members of a patch may each be valid,
 * but not together with the stored members.
 */
function claimFault(claim: ExternalIdClaim): FieldFault | null {
  const { index, location, matcher, matcherCriteria, parser, parserCriteria } = claim
  const fault = (name: string, reason: string, value?: unknown): FieldFault => ({
    field: `externalIdClaim.${name}`,
    reason,
    ...(value === undefined ? {} : { value }),
  })
  if (!isOneOf(['COMMON_NAME', 'SAN_URI', 'SAN_EMAIL'], location)) {
    return fault('location', 'should be one of [COMMON_NAME SAN_URI SAN_EMAIL]', location)
  }
  if (!isOneOf(['ALL', 'PREFIX', 'SUFFIX', 'SCHEME'], matcher)) {
    return fault('matcher', 'should be one of [ALL PREFIX SUFFIX SCHEME]', matcher)
  }
  if (!isOneOf(['NONE', 'SPLIT'], parser)) {
    return fault('parser', 'should be one of [NONE SPLIT]', parser)
  }
  if (matcher === 'SCHEME' && location !== 'SAN_URI') {
    return fault('matcher', 'SCHEME is for the location SAN_URI alone', matcher)
  }
  if ((matcher === 'PREFIX' || matcher === 'SUFFIX') && location === 'SAN_URI') {
    return fault('matcher', `${matcher} is not for the location SAN_URI`, matcher)
  }
  if (matcher !== 'ALL' && (typeof matcherCriteria !== 'string' || matcherCriteria === '')) {
    return fault('matcherCriteria', `is required with the matcher ${matcher}`)
  }
  if (parser === 'SPLIT' && (typeof parserCriteria !== 'string' || parserCriteria === '')) {
    return fault('parserCriteria', 'is required with the parser SPLIT')
  }
  if (!Number.isSafeInteger(index) || index < 0) {
    return fault('index', 'should be greater than or equal to 0', index)
  }
  return null
}
