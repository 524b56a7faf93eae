import { hash } from 'node:crypto'

import { fromBinary } from '@bufbuild/protobuf'
import {
  type CertificateAdopt,
  CertificateAdoptSchema,
  type ClientCertificate,
} from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Router } from '../../entities/kinds/router.ts'
import { firstPemCertificate } from '../../lib/text/first-pem-certificate.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, refusedOutcome } from '../apply/outcome.ts'
import { createWriteConsequences } from '../apply/references.ts'
import type { State } from '../records/state.ts'

type Holder = Pick<Authenticator | Router, 'adoptableFingerprint' | 'certPem' | 'fingerprint'>

/**
 * Whether a record was migrated without its certificate and may adopt the certificate with this
 * SHA-1. The field `adoptableFingerprint` contains the SHA-1 of the migrated certificate, so the
 * permission to adopt becomes invalid when the record gets another certificate.
 */
export function canAdoptCertificate(
  { adoptableFingerprint, certPem, fingerprint }: Holder,
  sha1: string,
): boolean {
  // @guard adoption-of-a-certificate--once
  if (certPem !== null) return false
  // @guard adoption-of-a-certificate--mark
  if (adoptableFingerprint !== sha1) return false
  return sha1 !== '' && fingerprint === sha1
}

/**
 * Stores the certificate of a router or an authenticator for which the migrated network had only
 * the SHA-1. The proposer has verified chain, name and key; the state machine decides whether the
 * record may still adopt the certificate.
 */
export function adoptCertificate(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(CertificateAdoptSchema, payload)
  const { holder, certificate } = message
  const block = firstPemCertificate(certificate?.pem ?? null)
  // @guard adoption-of-a-certificate--content
  if (
    certificate === undefined ||
    block === null ||
    hash('sha1', block) !== certificate.fingerprint
  )
    return refusedOutcome('UNAUTHORIZED')
  if (holder.case === 'routerId') {
    return adoptOfRouter(state, holder.value, certificate, message, context)
  }
  return holder.case === 'authenticatorId' && context.routerId === ''
    ? adoptOfAuthenticator(state, holder.value, certificate, context)
    : refusedOutcome('UNAUTHORIZED')
}

function adoptOfRouter(
  state: State,
  id: string,
  { pem, fingerprint }: ClientCertificate,
  { names, allowedNames }: CertificateAdopt,
  context: CommandContext,
): Outcome {
  const router = context.routerId === id ? state.get('router', id) : undefined
  if (router?.isVerified !== true || router.disabled) return refusedOutcome('UNAUTHORIZED')
  if (router.certPem === pem && router.fingerprint === fingerprint) return acceptedOutcome(id)
  if (!canAdoptCertificate(router, fingerprint)) return refusedOutcome('UNAUTHORIZED')
  const isNamed = router.allowedNames.length > 0
  const fields = {
    certPem: pem,
    adoptableFingerprint: null,
    certificateNames: names,
    allowedNames: isNamed ? router.allowedNames : allowedNames,
  }
  context.touched.push({ action: 'patch', entity: 'router', id, fields: Object.keys(fields) })
  createWriteConsequences(state, context).put('router', id, { ...router, ...fields })
  return acceptedOutcome(id)
}

function adoptOfAuthenticator(
  state: State,
  id: string,
  { pem, fingerprint, publicKeyPrint }: ClientCertificate,
  context: CommandContext,
): Outcome {
  const authenticator = state.get('authenticator', id)
  if (authenticator?.method !== 'cert') return refusedOutcome('UNAUTHORIZED')
  const { certPem } = authenticator
  if (certPem === pem && authenticator.fingerprint === fingerprint) return acceptedOutcome(id)
  if (!canAdoptCertificate(authenticator, fingerprint)) return refusedOutcome('UNAUTHORIZED')
  const fields = {
    certPem: pem,
    publicKeyPrint,
    adoptableFingerprint: null,
    // The value is true, because only certificates that chain to an authority of the network are
    // adopted.
    isIssuedByNetwork: true,
  }
  const names = Object.keys(fields)
  context.touched.push({ action: 'patch', entity: 'authenticator', id, fields: names })
  createWriteConsequences(state, context).put('authenticator', id, { ...authenticator, ...fields })
  return acceptedOutcome(id)
}
