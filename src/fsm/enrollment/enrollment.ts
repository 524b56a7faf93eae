import { hash } from 'node:crypto'

import { fromBinary } from '@bufbuild/protobuf'
import {
  type CaEnroll,
  CaEnrollSchema,
  type ClientCertificate,
  type Enroll,
  EnrollSchema,
  type RouterCertificates,
  RouterExtendSchema,
  RouterExtendVerifySchema,
} from '../../../proto/gen/command_pb.ts'
import { fieldLimits } from '../../entities/fields.ts'
import type { Ca } from '../../entities/kinds/ca.ts'
import type { Enrollment } from '../../entities/kinds/enrollment.ts'
import type { Router } from '../../entities/kinds/router.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import { MIGRATION_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import {
  acceptedOutcome,
  fieldFaultOutcome,
  notFoundOutcome,
  refusedOutcome,
} from '../apply/outcome.ts'
import { unprintableNameRefusal } from '../apply/printable-names.ts'
import { withdrawEnrollments } from '../apply/withdraw-enrollments.ts'
import { createWriteConsequences } from '../apply/references.ts'

/**
 * Uses an enrollment token. The proposer has already created and validated the credentials. The
 * state machine validates the token, because the log orders the uses: of two concurrent uses, one
 * is refused.
 */
export function enrollByEnrollmentToken(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(EnrollSchema, payload)
  const enrollment = state.get('enrollment', message.enrollmentId)
  // @guard token-used-twice--text
  if (enrollment === undefined || enrollment.token !== message.token) {
    return refusedOutcome('INVALID_ENROLLMENT_TOKEN')
  }
  const { id, method, expiresAt } = enrollment
  if (method !== message.method) return refusedOutcome('INVALID_ENROLL_METHOD')
  // @guard token-used-twice--end
  if ((expiresAt ?? 0) <= context.logTimeMs) return refusedOutcome('ENROLLMENT_EXPIRED')
  return state.transact(() => {
    context.touched.push({ action: 'delete', entity: 'enrollment', id, fields: [] })
    // @guard token-used-twice--gone
    createWriteConsequences(state, context).remove('enrollment', id)
    withdrawOthersOfRouter(state, enrollment, context)
    return grant(state, enrollment, message, context)
  })
}

/**
 * Removes the other enrollments of a router. A migrated router may have a token from each former
 * controller. If the other tokens stayed valid after one of them was used, a second router could
 * enroll instead of the first one.
 */
function withdrawOthersOfRouter(
  state: State,
  { edgeRouterId, transitRouterId }: Enrollment,
  context: CommandContext,
): void {
  if (state.featureLevel < MIGRATION_FEATURE_LEVEL) return
  const consequences = createWriteConsequences(state, context)
  // @guard token-used-twice--others
  if (edgeRouterId !== '') withdrawEnrollments('edgeRouterId', edgeRouterId, consequences)
  if (transitRouterId !== '') {
    withdrawEnrollments('transitRouterId', transitRouterId, consequences)
  }
}

function grant(
  state: State,
  enrollment: Enrollment,
  message: Enroll,
  context: CommandContext,
): Outcome {
  const { credential, authenticatorId } = message
  const { method, identityId, token } = enrollment
  const enrolledBy = enrollmentTokenDigest(token)
  switch (credential.case) {
    case 'router':
      return method === 'erott' || method === 'trott'
        ? enrollRouter(state, enrollment, credential.value, context)
        : refusedOutcome('INVALID_ENROLL_METHOD')
    case 'certificate': {
      if (method !== 'ott' && method !== 'ottca') return refusedOutcome('INVALID_ENROLL_METHOD')
      const refusal = caRefusal(state, enrollment, credential.value)
      const made = { id: authenticatorId, identityId, enrolledBy }
      return refusal ?? addCertificateAuthenticator(state, made, credential.value, context)
    }
    case 'passwordHash': {
      if (method !== 'updb') return refusedOutcome('INVALID_ENROLL_METHOD')
      const fields = { username: enrollment.username, passwordHash: credential.value, enrolledBy }
      const made = { id: authenticatorId, identityId }
      return addAuthenticator(state, made, { ...fields, method: 'updb' }, context)
    }
    case undefined:
      return refusedOutcome('INVALID_ENROLL_METHOD')
  }
}

/**
 * Refusal because of the certificate; null if it is acceptable. `ott` requires a certificate from
 * the network; `ottca` requires one from the CA in the enrollment, which must still be enabled for
 * that.
 */
function caRefusal(
  state: State,
  { method, caId }: Enrollment,
  certificate: ClientCertificate,
): Outcome | null {
  if (method === 'ott') {
    return certificate.caId === '' ? null : refusedOutcome('CERTIFICATE_FAILED_VALIDATION')
  }
  const ca = state.get('ca', caId)
  if (ca?.isVerified !== true || !ca.isOttCaEnrollmentEnabled) {
    return refusedOutcome('ENROLLMENT_CA_NOT_VALID')
  }
  return certificate.caId === caId ? null : refusedOutcome('CERTIFICATE_FAILED_VALIDATION')
}

interface NewAuthenticator {
  readonly id: string
  readonly identityId: string
}

/**
 * Adds a certificate authenticator and keeps the existing ones: when an identity enrolls on a
 * second machine, the first one must still work.
 */
export function addCertificateAuthenticator(
  state: State,
  made: NewAuthenticator & { readonly enrolledBy: string | null },
  { pem, fingerprint, publicKeyPrint, caId }: ClientCertificate,
  context: CommandContext,
): Outcome {
  if (state.table('authenticator').indexes.owner('fingerprint', fingerprint) !== undefined) {
    return refusedOutcome('CERT_IN_USE')
  }
  const fields = {
    method: 'cert',
    certPem: pem,
    fingerprint,
    publicKeyPrint,
    caId,
    isIssuedByNetwork: caId === '',
    enrolledBy: made.enrolledBy,
  }
  return addAuthenticator(state, made, fields, context)
}

function addAuthenticator(
  state: State,
  { id, identityId }: NewAuthenticator,
  fields: Readonly<Record<string, Json>>,
  context: CommandContext,
): Outcome {
  context.touched.push({ action: 'create', entity: 'authenticator', id, fields: [] })
  if (id === '' || state.get('authenticator', id) !== undefined) {
    return fieldFaultOutcome({ field: 'id', reason: 'id must be unique' })
  }
  if (state.get('identity', identityId) === undefined)
    return notFoundOutcome('identity', identityId)
  const { username } = fields
  if (
    typeof username === 'string' &&
    state.table('authenticator').indexes.owner('username', username) !== undefined
  ) {
    return fieldFaultOutcome({ field: 'username', reason: 'username must be unique' })
  }
  const own = state.table('authenticator').indexes.ids('identityId', identityId).size
  if (own >= authenticatorsPerIdentityMax) {
    const advice = 'delete those that are not used any more'
    return refusedOutcome(
      'MAX_AUTHENTICATOR_METHODS_REACHED',
      `the identity has ${own} authenticators; ${advice}`,
    )
  }
  createWriteConsequences(state, context).put('authenticator', id, { ...fields, identityId })
  return acceptedOutcome(id)
}

/**
 * Maximum authenticators of an identity; beyond it, an enrollment is refused. An identity has a
 * certificate authenticator for each machine on which it enrolled. The limit is far above normal
 * use, and far below the number that would fill the state.
 */
export const authenticatorsPerIdentityMax = 100

const routerOf = { erott: 'edgeRouter', trott: 'transitRouter' } as const

function enrollRouter(
  state: State,
  { method, token, edgeRouterId, transitRouterId }: Enrollment,
  certificates: RouterCertificates,
  context: CommandContext,
): Outcome {
  const kind = method === 'erott' ? routerOf.erott : routerOf.trott
  const id = edgeRouterId || transitRouterId
  const router = state.get('router', id)
  if (router === undefined) return notFoundOutcome(kind, id)
  return certify(state, router, certificates, context, { enrolledBy: enrollmentTokenDigest(token) })
}

/** Replaces the stored certificates of a router with new ones. */
function certify(
  state: State,
  router: Router,
  { client, serverPem, serverNames }: RouterCertificates,
  context: CommandContext,
  also: Readonly<Record<string, Json>>,
): Outcome {
  const { id } = router
  const fingerprint = client?.fingerprint ?? ''
  if (client === undefined || fingerprint === '' || serverPem === '') {
    return refusedOutcome('MISSING_OR_INVALID_CSR')
  }
  const owner = state.table('router').indexes.owner('fingerprint', fingerprint)
  if (owner !== undefined && owner !== id) return refusedOutcome('CERT_IN_USE')
  const fields = {
    fingerprint,
    certPem: client.pem,
    serverCertPem: serverPem,
    isVerified: true,
    certificateNames: serverNames,
    // Removes a pending certificate from an earlier extension.
    ...noNext,
  }
  context.touched.push({ action: 'patch', entity: 'router', id, fields: Object.keys(fields) })
  createWriteConsequences(state, context).put('router', id, { ...router, ...fields, ...also })
  return acceptedOutcome(id)
}

/**
 * Extends a router's certificate. Checks the router's current certificate, because another
 * extension may have replaced it meanwhile.
 */
export function extendRouterCertificate(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { routerId, fingerprint, certificates } = fromBinary(RouterExtendSchema, payload)
  const router = state.get('router', routerId)
  if (router === undefined || certificates === undefined) return refusedOutcome('UNAUTHORIZED')
  const isInForce = router.isVerified && !router.disabled && router.fingerprint === fingerprint
  if (!isInForce || fingerprint === '') return refusedOutcome('UNAUTHORIZED')
  return certify(state, router, certificates, context, { enrolledBy: null })
}

/**
 * Stores new certificates in addition to the current ones. The current ones stay valid until the
 * router proves that it received the new ones.
 */
export function beginRouterCertificateExtension(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { routerId, fingerprint, certificates } = fromBinary(RouterExtendSchema, payload)
  const router = routerInForce(state, routerId, fingerprint, context)
  const { client, serverPem = '', serverNames = [] } = certificates ?? {}
  if (router === undefined) return refusedOutcome('UNAUTHORIZED')
  const nextFingerprint = client?.fingerprint ?? ''
  if (client === undefined || nextFingerprint === '' || serverPem === '') {
    return refusedOutcome('MISSING_OR_INVALID_CSR')
  }
  const { indexes } = state.table('router')
  if (indexes.owner('fingerprint', nextFingerprint) !== undefined)
    return refusedOutcome('CERT_IN_USE')
  const fields = {
    nextFingerprint,
    nextCertPem: client.pem,
    nextServerCertPem: serverPem,
    nextCertificateNames: serverNames,
  }
  context.touched.push({
    action: 'patch',
    entity: 'router',
    id: routerId,
    fields: Object.keys(fields),
  })
  createWriteConsequences(state, context).put('router', routerId, { ...router, ...fields })
  return acceptedOutcome(routerId)
}

/**
 * Activates the pending next certificate of a router, after the router has proved that it has the
 * certificate.
 */
export function verifyRouterCertificateExtension(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { routerId, fingerprint } = fromBinary(RouterExtendVerifySchema, payload)
  const router = state.get('router', routerId)
  const isOwn = router !== undefined && context.routerId === routerId
  if (!isOwn || !router.isVerified || router.disabled) return refusedOutcome('UNAUTHORIZED')
  const { nextCertPem, nextServerCertPem, nextFingerprint, nextCertificateNames } = router
  if (nextCertPem === null || nextFingerprint === null || nextFingerprint !== fingerprint) {
    // Without a pending certificate, the command is accepted if its certificate is the current one:
    // the router repeats the request because the response was lost.
    return router.fingerprint === fingerprint
      ? acceptedOutcome(routerId)
      : refusedOutcome('CERT_FAILED_VALIDATION')
  }
  const { indexes } = state.table('router')
  if (indexes.owner('fingerprint', nextFingerprint) !== undefined)
    return refusedOutcome('CERT_IN_USE')
  const fields = {
    fingerprint,
    certPem: nextCertPem,
    serverCertPem: nextServerCertPem,
    enrolledBy: null,
    certificateNames: nextCertificateNames,
    ...noNext,
  }
  context.touched.push({
    action: 'patch',
    entity: 'router',
    id: routerId,
    fields: Object.keys(fields),
  })
  createWriteConsequences(state, context).put('router', routerId, { ...router, ...fields })
  return acceptedOutcome(routerId)
}

const noNext = {
  nextCertPem: null,
  nextServerCertPem: null,
  nextFingerprint: null,
  nextCertificateNames: [],
} as const

/**
 * The acting router, if it is verified and not disabled, and presented its current certificate;
 * otherwise undefined.
 */
function routerInForce(
  state: State,
  routerId: string,
  fingerprint: string,
  context: CommandContext,
): Router | undefined {
  const router = context.routerId === routerId ? state.get('router', routerId) : undefined
  // @guard router-extension--in-force
  const isInForce =
    router?.isVerified === true && !router.disabled && router.fingerprint === fingerprint
  return isInForce && fingerprint !== '' ? router : undefined
}

/**
 * Creates an identity for a client that presents a certificate from a CA. If the CA identifies
 * clients by a claim, only the claim is stored: every later certificate with the same claim logs in
 * as this identity.
 */
export function enrollByCa(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const message = fromBinary(CaEnrollSchema, payload)
  const { caId, identityId, certificate, externalId } = message
  const ca = state.get('ca', caId)
  if (ca?.isVerified !== true || !ca.isAutoCaEnrollmentEnabled || certificate?.caId !== caId) {
    return refusedOutcome('CERT_FAILED_VALIDATION')
  }
  if ((externalId !== '') !== (ca.externalIdClaim !== null))
    return refusedOutcome('MISSING_CERT_CLAIM')
  if (identityId === '' || state.get('identity', identityId) !== undefined) {
    return fieldFaultOutcome({ field: 'id', reason: 'id must be unique' })
  }
  if (
    externalId !== '' &&
    state.table('identity').indexes.owner('externalId', externalId) !== undefined
  ) {
    return refusedOutcome('ENROLLMENT_IDENTITY_ALREADY_ENROLLED')
  }
  return state.transact(() => admit(state, message, ca, certificate, context))
}

function admit(
  state: State,
  { identityId, authenticatorId, externalId, name: wanted }: CaEnroll,
  ca: Ca,
  certificate: ClientCertificate,
  context: CommandContext,
): Outcome {
  const name = findUniqueName(state, wanted)
  if (name === null)
    return fieldFaultOutcome({ field: 'name', reason: 'no number makes the name unique' })
  // @guard names-at-a-terminal--certificate
  const fault = unprintableNameRefusal(state, 'name', name)
  if (fault !== null) return fault
  context.touched.push({ action: 'create', entity: 'identity', id: identityId, fields: [] })
  createWriteConsequences(state, context).put('identity', identityId, {
    name,
    typeId: 'Default',
    roleAttributes: ca.identityRoles,
    externalId: externalId === '' ? null : externalId,
  })
  if (externalId !== '') return acceptedOutcome(identityId)
  const made = { id: authenticatorId, identityId, enrolledBy: null }
  const added = addCertificateAuthenticator(state, made, certificate, context)
  return added.ok ? acceptedOutcome(identityId) : added
}

const NUMBER_MAX = 9999

/**
 * The wanted name, with a number appended if necessary to make it unique; null: no such name is
 * available.
 */
export function findUniqueName(state: State, wanted: string): string | null {
  const { indexes } = state.table('identity')
  for (let number = 0; number <= NUMBER_MAX; number += 1) {
    const name = number === 0 ? wanted : `${wanted}${String(number).padStart(6, '0')}`
    if (name.length > fieldLimits.nameCharactersMax) return null
    if (name !== '' && indexes.owner('name', name) === undefined) return name
  }
  return null
}

/** Digest of an enrollment token; the credential stores the digest instead of the token. */
export function enrollmentTokenDigest(token: string): string {
  return hash('sha256', token)
}
