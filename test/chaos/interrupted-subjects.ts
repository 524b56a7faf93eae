import { requirePresent } from '../../src/lib/assert.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import type { Answer } from '../process/support/client.ts'
import {
  certifiedBy,
  certifiedKey,
  codeOf,
  dataOf,
  type Detail,
  type Enrolling,
  fingerprintOf,
  newRequest,
  newRouterKeys,
} from '../process/support/enrolling.ts'

export const subjectKinds = [
  'ott',
  'ottca',
  'updb',
  'ca',
  'erott',
  'router extension',
  'identity extension',
] as const
export type SubjectKind = (typeof subjectKinds)[number]

/** State of the enrolling client after the last response to the same request. */
export type Ending =
  /** The client is enrolled and has its credential. */
  | 'enrolled'
  /**
   * The response reports that the token was used; the client has its credential, or gets it with a
   * new enrollment.
   */
  | 'told that it was used'

/**
 * One enrollment that is sent, interrupted and sent again, by a client that keeps its token and
 * keys.
 */
export interface Subject {
  readonly kind: SubjectKind
  /** Sends the request, which is the same each time. */
  bring(k: number): Promise<Answer>
  /**
   * Whether the cluster contains all of the enrollment (true) or nothing of it (false). @throws if
   * it contains a part.
   */
  isHeld(k: number): Promise<boolean>
  /**
   * Compares the last response with an earlier one (null if none arrived), and uses the credential
   * on controller `k`. @throws if the response is neither the certificate nor a definite refusal.
   */
  settle(k: number, earlier: Answer | null, last: Answer): Promise<Ending>
}

/** A CA that admits every holder of its certificates; created once for all subjects. */
export interface Authority {
  readonly id: string
  readonly key: CertificateWithKey
}

export function newSubject(
  net: Enrolling,
  kind: SubjectKind,
  k: number,
  authority: Authority,
): Promise<Subject> {
  switch (kind) {
    case 'ott':
      return ottSubject(net, k)
    case 'ottca':
      return ottcaSubject(net, k, authority)
    case 'updb':
      return updbSubject(net, k)
    case 'ca':
      return caSubject(net, authority)
    case 'erott':
      return erottSubject(net, k)
    case 'router extension':
      return routerExtension(net, k)
    case 'identity extension':
      return identityExtension(net, k)
  }
}

async function ottSubject(net: Enrolling, k: number): Promise<Subject> {
  const { identityId, token } = await net.outstanding(k, { ott: true })
  const request = await newRequest()
  return {
    kind: 'ott',
    bring: (at) => net.ott(at, token, request),
    isHeld: (at) => isIdentityEnrolled(net, at, identityId),
    settle: async (at, earlier, last) => {
      const { cert } = dataOf(last)
      if (earlier !== null) expectSame(dataOf(earlier)['cert'], cert)
      dataOf(await net.logIn(at, certifiedKey(request, cert)))
      return 'enrolled'
    },
  }
}

async function ottcaSubject(net: Enrolling, k: number, ca: Authority): Promise<Subject> {
  const { identityId, token } = await net.outstanding(k, { ottca: ca.id })
  const by = await certifiedBy(ca.key, 'a unit')
  return {
    kind: 'ottca',
    bring: (at) => net.ottca(at, token, by),
    isHeld: (at) => isIdentityEnrolled(net, at, identityId),
    settle: async (at, _, last) => {
      dataOf(last)
      dataOf(await net.logIn(at, by))
      return 'enrolled'
    },
  }
}

async function updbSubject(net: Enrolling, k: number): Promise<Subject> {
  const username = net.newName('field unit')
  const password = 'a password of its own'
  const { identityId, token } = await net.outstanding(k, { updb: username })
  return {
    kind: 'updb',
    bring: (at) => net.updb(at, token, password),
    isHeld: (at) => isIdentityEnrolled(net, at, identityId),
    settle: async (at, _, last) => {
      const ending = usedOr(last, 'INVALID_ENROLLMENT_TOKEN', 'the token has been used')
      dataOf(await net.logInByPassword(at, username, password))
      return ending
    },
  }
}

async function caSubject(net: Enrolling, ca: Authority): Promise<Subject> {
  const commonName = `${net.newName('pump')}.`
  const by = await certifiedBy(ca.key, commonName)
  return {
    kind: 'ca',
    bring: (at) => net.byCa(at, by),
    isHeld: async (at) => {
      const filter = encodeURIComponent(`name contains "${commonName}"`)
      const found = await net.latest(at, `/identities?filter=${filter}`)
      const identities = found as unknown as readonly Detail[]
      if (identities.length > 1)
        throw new Error(`${commonName} enrolled ${identities.length} times`)
      for (const { authenticators } of identities)
        requirePresent((authenticators as Detail)['cert'], 'cert')
      return identities.length === 1
    },
    settle: async (at, _, last) => {
      const ending = usedOr(last, 'CERT_IN_USE')
      dataOf(await net.logIn(at, by))
      return ending
    },
  }
}

async function erottSubject(net: Enrolling, k: number): Promise<Subject> {
  const { id, token } = await net.router(k)
  const keys = await newRouterKeys(id)
  return {
    kind: 'erott',
    bring: (at) => net.erott(at, token, keys),
    isHeld: async (at) => {
      const router = await net.latest(at, `/edge-routers/${id}`)
      const isOutstanding = typeof router['enrollmentToken'] === 'string'
      const isVerified = router['isVerified'] === true && router['fingerprint'] !== null
      return onlyOneOf(isOutstanding, isVerified, router)
    },
    settle: async (at, earlier, last) => {
      const { cert, serverCert } = dataOf(last)
      if (earlier !== null) {
        expectSame(dataOf(earlier)['cert'], cert)
        expectSame(dataOf(earlier)['serverCert'], serverCert)
      }
      dataOf(await net.extendRouter(at, certifiedKey(keys.client, cert), keys))
      return 'enrolled'
    },
  }
}

async function routerExtension(net: Enrolling, k: number): Promise<Subject> {
  const { id, token } = await net.router(k)
  const first = await newRouterKeys(id)
  const { cert } = dataOf(await net.erott(k, token, first))
  const old = certifiedKey(first.client, cert)
  const keys = await newRouterKeys(id)
  return {
    kind: 'router extension',
    bring: (at) => net.extendRouter(at, old, keys),
    // The new certificate is pending until the router uses it.
    isHeld: async (at) => {
      const router = await net.latest(at, `/edge-routers/${id}`)
      if (router['fingerprint'] !== fingerprintOf(old)) {
        throw new Error('a certificate that was not used is in force')
      }
      return router['isVerified'] === true && router['unverifiedFingerprint'] !== null
    },
    settle: async (at, earlier, last) => {
      const { cert } = dataOf(last)
      if (earlier !== null) expectSame(dataOf(earlier)['cert'], cert)
      dataOf(await net.extendRouter(at, certifiedKey(keys.client, cert), keys))
      const refused = await net.extendRouter(at, old, keys)
      if (refused.status !== 401) throw new Error(`the former certificate gets ${refused.status}`)
      return 'enrolled'
    },
  }
}

async function identityExtension(net: Enrolling, k: number): Promise<Subject> {
  const { identityId, token: enrollmentToken } = await net.outstanding(k, { ott: true })
  const first = await newRequest()
  const { cert } = dataOf(await net.ott(k, enrollmentToken, first))
  const by = certifiedKey(first, cert)
  const session = dataOf(await net.logIn(k, by)) as { token: string; authenticatorId: string }
  const extending = { by, ...session }
  const request = await newRequest()
  let given: CertificateWithKey | null = null
  return {
    kind: 'identity extension',
    bring: async (at) => {
      if (given === null) {
        const extended = await net.extend(at, extending, request)
        if (extended.status !== 200) return extended
        given = certifiedKey(request, dataOf(extended)['clientCert'])
      }
      const { certificatePem } = given
      const answered = await net.verifyExtension(at, extending, certificatePem)
      if (answered.status !== 401) return answered
      // After the new certificate is in use, the session accepts only that one.
      return net.verifyExtension(at, { ...extending, by: given }, certificatePem)
    },
    isHeld: async (at) => {
      const { authenticators } = await net.latest(at, `/identities/${identityId}`)
      const inForce = (authenticators as { cert: Detail }).cert['fingerprint']
      if (inForce === fingerprintOf(by)) return false
      if (given !== null && inForce === fingerprintOf(given)) return true
      throw new Error('the certificate in force was given to nobody')
    },
    settle: async (at, _, last) => {
      const ending = usedOr(last, 'CAN_NOT_UPDATE_AUTHENTICATOR', 'no new certificate waits')
      dataOf(await net.logIn(at, requirePresent(given, 'a certificate was given')))
      const old = await net.logIn(at, by)
      if (old.status !== 401) throw new Error(`the certificate before is answered ${old.status}`)
      return ending
    },
  }
}

async function isIdentityEnrolled(net: Enrolling, k: number, id: string): Promise<boolean> {
  const identity = await net.latest(k, `/identities/${id}`)
  const isOutstanding = Object.keys(identity['enrollment'] as Detail).length > 0
  const hasCredential = Object.keys(identity['authenticators'] as Detail).length > 0
  return onlyOneOf(isOutstanding, hasCredential, identity)
}

/** @throws unless exactly one of the two exists: the token or the credential. */
function onlyOneOf(isOutstanding: boolean, hasCredential: boolean, record: Detail): boolean {
  if (isOutstanding === hasCredential) {
    throw new Error(`neither nothing nor a completed enrollment: ${JSON.stringify(record)}`)
  }
  return hasCredential
}

function usedOr(last: Answer, code: string, words = ''): Ending {
  if (last.status === 200) return 'enrolled'
  if (codeOf(last) === code && last.text.includes(words)) return 'told that it was used'
  throw new Error(`no clear answer: ${last.status} ${last.text}`)
}

function expectSame(earlier: unknown, later: unknown): void {
  if (earlier !== later) throw new Error('it was given two certificates')
}
