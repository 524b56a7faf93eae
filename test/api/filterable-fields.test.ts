import { expect, test } from 'vitest'
import { client, fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { root } = await controllerForFile()

const common = 'id createdAt updatedAt tags isSystem'
const router = 'name fingerprint cost noTraversal disabled ctrlChanListeners configs connected'
const terminator = 'binding address instanceId hostId sourceCtrl service router'
const signer = 'name audience clientId scopes targetToken enrollToCertEnabled enrollToTokenEnabled'

/**
 * Fields by which OpenZiti clients filter. OpenZiti also permits secrets and their digests, which
 * are not in this list.
 */
const expected: Readonly<Record<string, string>> = {
  [`${management}/identities`]:
    'name roleAttributes externalId type authPolicyId isAdmin isDefaultAdmin',
  [`${management}/services`]: 'name terminatorStrategy roleAttributes configs isFabricOnly',
  [`${management}/configs`]: 'name type',
  [`${management}/config-types`]: 'name schema target',
  [`${management}/service-policies`]:
    'name type semantic identityRoles serviceRoles postureCheckRoles identities services',
  [`${management}/edge-router-policies`]: 'name semantic identityRoles edgeRouterRoles',
  [`${management}/service-edge-router-policies`]: 'name semantic serviceRoles edgeRouterRoles',
  [`${management}/routers`]: router,
  [`${management}/transit-routers`]: router,
  [`${fabric}/routers`]: router,
  [`${management}/edge-routers`]: `${router} roleAttributes isVerified isTunnelerEnabled online`,
  [`${management}/terminators`]: `${terminator} service.name router.name`,
  [`${fabric}/terminators`]: `${terminator} service.name router.name`,
  [`${fabric}/services`]: 'name terminatorStrategy',
  [`${management}/cas`]:
    'name fingerprint isVerified verificationToken isAutoCaEnrollmentEnabled isOttCaEnrollmentEnabled isAuthEnabled',
  [`${management}/auth-policies`]:
    'name primary.cert.allowed primary.cert.allowExpiredCerts primary.updb.allowed primary.updb.minPasswordLength ' +
    'primary.updb.requireSpecialChar primary.updb.requireNumberChar primary.updb.requireMixedCase ' +
    'primary.updb.maxAttempts primary.extJwt.allowed secondary.requireTotp secondary.requireExtJwtSigner',
  [`${management}/external-jwt-signers`]:
    `${signer} fingerprint kid issuer certPem commonName notAfter notBefore enabled claimsProperty useExternalId ` +
    'enrollAttributeClaimsSelector enrollNameClaimsSelector enrollAuthPolicyId',
  [`${client}/external-jwt-signers`]: signer,
  [`${management}/authenticators`]:
    'method identity certFingerprint certPem publicKeyPrint isIssuedByNetwork isExtendRequested isKeyRollRequested ' +
    'extendRequestedAt lastAuthResolvedToRoot lastExtendRolledKeys updbUsername',
  [`${management}/enrollments`]: 'token identity edgeRouter transitRouter caId',
  [`${management}/api-sessions`]:
    'identity authenticator lastActivityAt ipAddress mfaComplete mfaRequired improperClientCertChain',
  [`${management}/sessions`]: 'apiSession service type',
  [`${client}/current-api-session/certificates`]: 'apiSession subject fingerprint',
  [`${management}/posture-checks`]: 'name typeId roleAttributes promptOnWake promptOnUnlock',
  [`${management}/identity-types`]: 'name',
  [`${management}/posture-check-types`]: 'name',
  [`${management}/revocations`]: 'expiresAt type issuedBefore',
}

test.each(Object.entries(expected))(
  '%s can be filtered by all fields that OpenZiti clients use in filters',
  async (url, names) => {
    const list = await root.get(`${url}?limit=1`)
    expect(list.status, list.text).toBe(200)
    const wanted = `${common} ${names}`.split(' ')
    expect(list.body.meta?.filterableFields).toEqual(expect.arrayContaining(wanted))
    for (const name of wanted) {
      // A filter can only test whether these fields are present, regardless of their type.
      const isSet = /[rR]oles$|roleAttributes|^configs$|^identities$|^services$|^scopes$/.test(name)
      const filter = isSet ? `not isEmpty(${name})` : `${name === 'tags' ? 'tags.a' : name} = null`
      const found = await root.get(`${url}?limit=1&filter=${encodeURIComponent(filter)}`)
      expect(found.status, `${filter}: ${found.text}`).toBe(200)
    }
  },
)

test('/transit-routers can be filtered to the routers that are not edge routers', async () => {
  const create = async (collection: string, name: string) =>
    expect((await root.call('POST', `${management}/${collection}`, { name })).status).toBe(201)
  await create('transit-routers', 'core')
  await create('edge-routers', 'gate')
  const namesOf = async (filter: string) => {
    const list = await root.get(
      `${management}/transit-routers?filter=${encodeURIComponent(filter)}`,
    )
    return (list.body.data as readonly { readonly name: string }[]).map(({ name }) => name)
  }
  expect(await namesOf('isTransit = true')).toEqual(['core'])
  expect(await namesOf('isTransit = false')).toEqual(['gate'])
})
