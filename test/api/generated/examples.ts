import { randomUUID } from 'node:crypto'
import type { Json } from '../../../src/lib/text/canonical-json.ts'
import { certificatePem, authorityPem } from './certificates.ts'
import { uniqueText } from './schemas.ts'

/**
 * Returns the ID of a record in a collection of the management API, and creates the record if
 * necessary.
 */
export type IdAt = (collection: string) => Promise<string>

/**
 * Members that replace those of the sampled body; undefined removes a member. A value that is not
 * an object replaces the whole body.
 */
export type Example = (id: IdAt) => Promise<Json | Readonly<Record<string, Json | undefined>>>

export const adminPassword = 'correct horse battery'

/**
 * Constraints on valid bodies that a schema cannot express: an entry for each kind, by its
 * collection, and an entry for each operation other than create, replace and patch. All other
 * values are sampled: references are created, lists are empty, texts are unique.
 */
export const examples: Readonly<Record<string, Example>> = {
  '/auth-policies': async () => ({
    // The controller raises a shorter minimum length.
    primary: {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: true, allowedSigners: [] },
      updb: {
        allowed: true,
        lockoutDurationMinutes: 1,
        maxAttempts: 3,
        minPasswordLength: 8,
        requireMixedCase: true,
        requireNumberChar: false,
        requireSpecialChar: true,
      },
    },
    secondary: { requireTotp: false, requireExtJwtSigner: null },
  }),
  '/authenticators': async (id) => ({
    method: 'updb',
    identityId: await id('/identities fresh'),
    username: uniqueText('user'),
    password: 'a password as any',
    certPem: undefined,
  }),
  '/cas': async () => ({
    certPem: await authorityPem(),
    identityRoles: [],
    externalIdClaim: undefined,
  }),
  '/config-types': async () => ({ schema: { type: 'object' } }),
  '/configs': async (id) => ({ configTypeId: await id('/config-types'), data: { any: 'thing' } }),
  '/revocations': async () => ({ id: randomUUID(), type: 'JTI' }),
  '/edge-routers': noConfigs,
  '/enrollments': async (id) => ({
    method: 'ott',
    identityId: await id('/identities fresh'),
    caId: undefined,
    username: undefined,
  }),
  '/external-jwt-signers': async () => ({
    certPem: await certificatePem(),
    externalAuthUrl: 'https://identity.internal/authorize',
    jwksEndpoint: undefined,
    enrollAuthPolicyId: undefined,
    enabled: true,
  }),
  '/identities': async () => ({
    type: 'User',
    enrollment: undefined,
    permissions: [],
    // Only a role attribute that the identity has can have an expiry.
    roleAttributes: ['limited'],
    roleAttributesExpireAt: { limited: '2099-01-02T03:04:05Z' },
  }),
  '/posture-checks': async () => ({ typeId: 'MFA', timeoutSeconds: 600 }),
  '/routers': async () => ({
    configs: [],
    fingerprint: Buffer.from(uniqueText('f')).toString('hex'),
  }),
  '/sessions': async (id) => ({ serviceId: await id('/services'), type: 'Dial' }),
  '/terminators': async (id) => ({
    service: await id('/services'),
    router: await id('/edge-routers'),
    binding: 'transport',
    address: 'tls:host.internal:443',
    identity: undefined,
    identitySecret: undefined,
    instanceSecret: 'c2VjcmV0',
  }),
  '/transit-routers': noConfigs,

  'POST /authenticate': async () => ({
    username: 'admin',
    password: adminPassword,
    configTypes: [],
  }),
  'POST /identities/{id}/service-configs': pairs,
  'DELETE /identities/{id}/service-configs': pairs,
  'POST /posture-response': async () => ({ typeId: 'DOMAIN', domain: 'corp.test' }),
  'POST /inspections': async () => ({ appRegex: '.*', requestedValues: ['runtime'] }),
  'POST /cluster/recover-admin': async () => ({ name: '', password: 'another horse battery' }),
  'POST /pki/issue': async () => ({ requestPem: 'x', hosts: [], usages: ['client'], days: 1 }),
  'POST /cluster/backup': async () => ({}),
  'POST /cluster/restore/begin': async () => ({
    id: 'r',
    sha256: '0'.repeat(64),
    chunks: 1,
    bytes: 1,
    featureLevel: 2,
    clusterId: 'c',
  }),
  'POST /cluster/restore/chunk': async () => ({
    id: 'r',
    number: 0,
    bytes: 'AA==',
    endsBlock: true,
  }),
  'POST /cluster/restore/end': async () => ({ id: 'r', sha256: '0'.repeat(64) }),
  'POST /cluster/restore/factors': async () => ({ factors: [] }),
  'POST /access/preview': async () => ({
    changes: [
      { action: 'create', kind: 'service', data: { name: 'previewed', encryptionRequired: false } },
    ],
  }),
  'POST /cluster/plan': async () => ({ verb: 'promote', id: 'ctrl2' }),
  'POST /cluster/add-member': async () => ({ address: 'ctrl2' }),
  'POST /cluster/transfer-leadership': async () => ({ newLeaderId: '' }),
}

/** Configs that the tests create for other records belong to services. */
async function noConfigs(): Promise<Json> {
  return { configs: [] }
}

async function pairs(id: IdAt): Promise<Json> {
  return [{ serviceId: await id('/services'), configId: await id('/configs') }]
}

/** IDs in paths whose records are not created in their collection. */
export const knownIds: Readonly<Record<string, string>> = {
  '/specs': 'edge-client',
}

/** Required query parameters of a path. */
export const knownQueries: Readonly<Record<string, string>> = {
  '/enroll/updb': '?token=00000000-0000-4000-8000-000000000000',
  '/authenticate': '?method=password',
  '/access/explain': '?identity=Default%20Admin',
}

/**
 * Operations that a test of a whole cluster must call in a way that fails, because a success would
 * destroy the cluster.
 */
export const refusedOnPurpose: readonly string[] = [
  // No links exist, because no router is connected.
  'fabric GET /links/{id}',
  'fabric PATCH /links/{id}',
  'fabric DELETE /links/{id}',
  'fabric GET /circuits/{id}',
  'fabric DELETE /circuits/{id}',
  // The cluster permits one run at a time, over all APIs.
  'management POST /database/fix-data-integrity',
  'fabric POST /database/check-data-integrity',
  'fabric POST /database/fix-data-integrity',
  // Each controller permits one per minute.
  'management POST /database/snapshot',
  'fabric POST /database',
  'fabric POST /database/snapshot',
  // Needs the index of a log entry; test/api/history reads it from the list.
  'management GET /history/{index}',
  'management GET /history/{index}/undo',
  'management POST /history/{index}/undo',
  // Needs a service or router that carries traffic, as in test/api/traffic.
  'management GET /traffic/services/{id}',
  'management GET /traffic/routers/{id}',
  'fabric GET /traffic/services/{id}',
  'fabric GET /traffic/routers/{id}',
  // Need an identity provider that responds, as in test/api/external-jwt and
  // test/attacks/provider-log-in.
  'management POST /jwt-signer-setup/discover',
  'client POST /provider-log-in/endpoint',
  'client POST /provider-log-in/token',
  // The response is a stream that has no end.
  'fabric GET /events',
  // The controller deletes a service session together with the record for which it was opened.
  'client DELETE /sessions/{id}',
  'management DELETE /sessions/{id}',
  // Needs an authenticator with a certificate, or a certificate that the CA signed over its
  // verification token.
  'management POST /authenticators/{id}/request-extend',
  'management POST /cas/{id}/verify',
  // Need enrollment tokens, certificates or certificate requests, as in test/api/enrollment and
  // test/process.
  'client POST /enroll',
  'client POST /enroll/ca',
  'client POST /enroll/challenge',
  'client POST /enroll/erott',
  'client POST /enroll/extend/router',
  'client POST /enroll/ott',
  'client POST /enroll/ottca',
  'client POST /enroll/token',
  'client POST /enroll/updb',
  // Available only through the admin socket.
  'fabric POST /cluster/backup',
  'fabric POST /cluster/reset-log-time',
  'fabric POST /cluster/restore/begin',
  'fabric POST /cluster/restore/chunk',
  'fabric POST /cluster/restore/end',
  'fabric POST /cluster/restore/factors',
  'fabric POST /cluster/recover-admin',
  'fabric POST /pki/issuing-authority',
  'fabric POST /pki/issue',
  'fabric POST /pki/renew-member',
  'client POST /current-api-session/certificates',
  'client GET /current-api-session/certificates/{id}',
  'client DELETE /current-api-session/certificates/{id}',
  'client POST /current-identity/authenticators/{id}/extend',
  'client POST /current-identity/authenticators/{id}/extend-verify',
  'management POST /current-identity/authenticators/{id}/extend',
  'management POST /current-identity/authenticators/{id}/extend-verify',
  'client POST /authenticators/{id}/extend-verify',
  'management POST /authenticators/{id}/extend-verify',
  // Need a code for a secret that was just created, as in test/process/people/mfa.ts. Tokens that a
  // code returns belong to other sessions.
  'client GET /current-identity/mfa',
  'client DELETE /current-identity/mfa',
  'client POST /current-identity/mfa/verify',
  'client GET /current-identity/mfa/qr-code',
  'client GET /current-identity/mfa/recovery-codes',
  'client POST /current-identity/mfa/recovery-codes',
  'client POST /authenticate/mfa',
  'client POST /current-api-session/totp-token',
  'management GET /current-identity/mfa',
  'management DELETE /current-identity/mfa',
  'management POST /current-identity/mfa/verify',
  'management GET /current-identity/mfa/qr-code',
  'management GET /current-identity/mfa/recovery-codes',
  'management POST /current-identity/mfa/recovery-codes',
  'management POST /authenticate/mfa',
  'management POST /current-api-session/totp-token',
  'fabric POST /cluster/demote-member',
  'fabric POST /cluster/join',
  'fabric POST /cluster/promote-member',
  'fabric POST /cluster/replace-member',
  // Needs a ticket with which no controller has joined; test/api/join.test.ts revokes one.
  'fabric POST /cluster/revoke-ticket',
]
