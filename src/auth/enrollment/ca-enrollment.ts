import { create, toBinary } from '@bufbuild/protobuf'
import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import { CaEnrollSchema, CommandKind } from '../../../proto/gen/command_pb.ts'
import type { Ca } from '../../entities/kinds/ca.ts'
import { fieldLimits } from '../../entities/fields.ts'
import { Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import type { Certificate } from '../../pki/certificate.ts'
import { verifyChainToAnchors, externalIdFromClaim } from '../certificates/client-certificate.ts'
import {
  parseCaCertificate,
  toThirdPartyCommandCertificate,
} from '../certificates/trusted-authorities.ts'
import type { EnrollRequest } from './enroll-request.ts'
import { actorForPrincipal, writeOriginForActor } from '../principal/principal.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Clock } from '../../lib/clock.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { CommandWriter } from '../../ports/writer.ts'

interface CaEnrollmentDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly writer: CommandWriter
  readonly limits: { readonly judgementsMax: number }
}

/**
 * Creates an identity for a client that presents a certificate, without an enrollment token. The
 * certificate's CA must be verified and enabled for automatic enrollment.
 */
export class CaEnrollment {
  readonly #deps: CaEnrollmentDeps

  constructor(deps: CaEnrollmentDeps) {
    this.#deps = deps
  }

  /** @param requestedName name of the new identity, if the CA's name format uses it. */
  async enroll(request: EnrollRequest, requestedName: string | undefined): Promise<void> {
    const { reads, limits } = this.#deps
    // Reads the latest state, because the local state may lack a CA that another controller has
    // just verified.
    await reads.reachLatest()
    return retryWhenRecordsChange(request.write, limits, async () => {
      const { ca, leaf } = this.#issuerOf(request)
      const identityId = newShortId()
      const message = create(CaEnrollSchema, {
        caId: ca.id,
        identityId,
        authenticatorId: newShortId(),
        externalId: externalIdIn(ca, leaf),
        name: nameOf(ca, leaf, { identityId, requestedName }),
        certificate: toThirdPartyCommandCertificate(leaf, ca.id),
      })
      const payload = toBinary(CaEnrollSchema, message)
      const judgedOn = [{ entity: 'ca', id: ca.id, revision: ca.revision } as const]
      const { address } = request.shown
      const shown = { caId: ca.id }
      const actor = actorForPrincipal({ kind: 'enrolling', shown, method: 'ca', address })
      const origin = writeOriginForActor(request.write, actor)
      await this.#deps.writer.write(origin, {
        kind: CommandKind.CA_ENROLL,
        payload,
        judgedOn,
      })
    })
  }

  /** The first verified CA with automatic enrollment to which the presented certificate chains. */
  #issuerOf({ shown }: EnrollRequest): { readonly ca: Ca; readonly leaf: Certificate } {
    const { state } = this.#deps
    if (state.count('ca') === 0) throw new Problem('ENROLLMENT_NO_VALID_CAS')
    const chain = shown.peerChain()
    if (chain === null) {
      throw new Problem('CERT_FAILED_VALIDATION', {
        detail: 'no client certificate on the connection',
      })
    }
    let reason = 'no CA is verified and enabled for automatic enrollment'
    for (const ca of state.findAll('ca', 'isVerified', 'true')) {
      // @guard certificate-of-a-ca--auto
      if (!ca.isAutoCaEnrollmentEnabled) continue
      // @guard certificate-of-a-ca--enrollment-time
      const question = { chain, requiresClientAuth: true, leafTime: 'enforced' } as const
      const found = verifyChainToAnchors(this.#deps, [parseCaCertificate(ca)], question)
      if (found.ok) return { ca, leaf: chain[0] }
      reason = found.reason
    }
    throw new Problem('CERT_FAILED_VALIDATION', { detail: reason })
  }
}

function externalIdIn(ca: Ca, leaf: Certificate): string {
  const claim = externalIdFromClaim(ca, leaf)
  if (claim === null) return ''
  if (claim.ok) return claim.externalId
  throw new Problem('MISSING_CERT_CLAIM', { detail: `the certificate ${claim.reason}` })
}

const PLACEHOLDER = /\[(caName|caId|commonName|requestedName|identityId)\]/g
const DEFAULT_FORMAT = '[caName]-[commonName]'

/**
 * Fills the placeholders of a name format in one pass, so that placeholders in inserted text stay
 * unchanged.
 */
function nameOf(
  { id, name, identityNameFormat }: Ca,
  { commonName }: Certificate,
  { identityId, requestedName }: { identityId: string; requestedName: string | undefined },
): string {
  const values: Readonly<Record<string, string>> = {
    caName: name,
    caId: id,
    commonName: commonName ?? '',
    requestedName: requestedName ?? identityId,
    identityId,
  }
  const format = identityNameFormat === '' ? DEFAULT_FORMAT : identityNameFormat
  // @guard enrollment-texts--once
  const made = format.replace(PLACEHOLDER, (_, key: string) => values[key] ?? '')
  // Leaves room for a number, which is appended if the name already exists.
  return made.slice(0, fieldLimits.nameCharactersMax - NUMBER_CHARACTERS) || identityId
}

const NUMBER_CHARACTERS = 6
