import { createHash, X509Certificate } from 'node:crypto'

import {
  boltzBoolean,
  boltzFloat,
  boltzInt32,
  boltzInt64,
  boltzList,
  boltzNil,
  boltzSet,
  boltzText,
  boltzTime,
} from '../support/boltz-values.ts'
import { type BoltTree, bucketOf } from '../support/bolt-writer.ts'

// The buckets of a small OpenZiti network with every store, as version 2.1 writes them.

type Stored = Uint8Array | BoltTree
export type StoredFields = Readonly<Record<string, Stored>>
/** Records by store and id. */
export type SampleStores = Readonly<Record<string, Readonly<Record<string, StoredFields>>>>

export const CREATED = '2026-03-01T10:00:00Z'
export const UPDATED = '2026-03-02T11:30:00Z'
const EXPIRES = '2026-03-08T00:00:00Z'

const base = {
  createdAt: boltzTime(CREATED, 123_456_789),
  updatedAt: boltzTime(UPDATED),
  tags: bucketOf({}),
}

export interface SampleCertificates {
  /** PEM of a client's certificate. */
  readonly leafPem: string
  /** PEM of a CA. */
  readonly caPem: string
  /** PEM of a certificate that the CA signed. */
  readonly partnerPem: string
}

export function sha1Of(pem: string): string {
  return createHash('sha1').update(new X509Certificate(pem).raw).digest('hex')
}

/** The root bucket of a database with these records. */
export function databaseOf(stores: SampleStores, version = 48, cluster?: ClusterFacts): BoltTree {
  const records = Object.entries(stores).map(([store, byId]) => [
    store,
    bucketOf(Object.fromEntries(Object.entries(byId).map(([id, one]) => [id, bucketOf(one)]))),
  ])
  return bucketOf({
    meta: bucketOf({ timelineId: boltzText('timeline-1') }),
    ziti: bucketOf({
      ...(Object.fromEntries(records) as Record<string, BoltTree>),
      indexes: bucketOf({ identities: bucketOf({ name: boltzSet('anything') }) }),
      versions: bucketOf({ edge: boltzInt64(version) }),
      ...(cluster === undefined
        ? {}
        : {
            metadata: bucketOf({
              clusterId: boltzText(cluster.clusterId),
              raftIndex: boltzInt64(cluster.raftIndex),
            }),
          }),
    }),
  })
}

export interface ClusterFacts {
  readonly clusterId: string
  readonly raftIndex: number
}

export function sampleStores(pem: SampleCertificates): SampleStores {
  return { ...peopleOf(pem), ...serviceStores, ...routersOf(pem), ...thirdParties(pem) }
}

function peopleOf({ leafPem, partnerPem }: SampleCertificates): SampleStores {
  const certificate = {
    method: boltzText('cert'),
    isIssuedByNetwork: boltzBoolean(true),
    publicKeyPrint: boltzText(''),
    unverifiedCertPem: boltzText(''),
    unverifiedCertFingerprint: boltzText(''),
    extendRequestedAt: boltzNil,
    isExtendRequested: boltzBoolean(false),
    isKeyRollRequested: boltzBoolean(false),
    lastAuthResolvedToRoot: boltzBoolean(true),
    lastExtendRolledKeys: boltzBoolean(false),
  }
  return {
    identities: {
      'admin-1': {
        ...base,
        name: boltzText('Default Admin'),
        type: boltzText('Default'),
        isAdmin: boltzBoolean(true),
        isDefaultAdmin: boltzBoolean(true),
        authPolicyId: boltzText('default'),
        externalId: boltzNil,
        dialServices: bucketOf({ ignored: boltzInt32(1) }),
      },
      '-vKL94i-8': {
        ...base,
        tags: bucketOf({ floor: boltzFloat(3), lab: boltzBoolean(true), note: boltzNil }),
        name: boltzText('camera ünï'),
        type: boltzText('Device'),
        isAdmin: boltzBoolean(false),
        isDefaultAdmin: boltzBoolean(false),
        authPolicyId: boltzText('strict'),
        externalId: boltzText('ext-7'),
        roleAttributes: boltzSet('blue', 'Zebra', 'apple'),
        appData: bucketOf({ nested: bucketOf({ a: boltzList(boltzFloat(1), boltzText('x')) }) }),
        defaultHostingCost: boltzInt32(11),
        defaultHostingPrecedence: boltzInt32(1),
        serviceHostingCosts: bucketOf({ web: boltzInt32(5) }),
        serviceHostingPrecedences: bucketOf({ web: boltzInt32(2) }),
        serviceConfigs: bucketOf({ web: bucketOf({ 'acme.v1': boltzText('alt') }) }),
        permissions: boltzSet('service.read'),
        disabledAt: boltzTime('2026-03-02T00:00:00Z'),
        disabledUntil: boltzTime('2026-04-02T00:00:00Z'),
        envInfoArch: boltzText('amd64'),
        envInfoDomain: boltzText(''),
        sdkInfoVersion: boltzText('v2.0.0'),
        interfaces: bucketOf({ '0.eth0': bucketOf({ index: boltzInt64(1) }) }),
      },
    },
    authenticators: {
      'password-1': {
        ...base,
        method: boltzText('updb'),
        identity: boltzText('admin-1'),
        updbUsername: boltzText('admin'),
        updbPassword: boltzText('0IXFKtiJ+IS52fLXyuXJdgH9os0sciP5AnLtG6jWJTI='),
        updbSalt: boltzText('/LCAkV06tg98wA=='),
      },
      'certificate-1': {
        ...base,
        ...certificate,
        identity: boltzText('-vKL94i-8'),
        certPem: boltzText(leafPem),
        certFingerprint: boltzText(sha1Of(leafPem)),
      },
      'partner-1': {
        ...base,
        ...certificate,
        isIssuedByNetwork: boltzBoolean(false),
        identity: boltzText('-vKL94i-8'),
        certPem: boltzText(partnerPem),
        certFingerprint: boltzText(sha1Of(partnerPem)),
      },
    },
    enrollments: {
      'open-1': {
        token: boltzText('17c3248f-0276-4855-b3e8-c73fb680ad53'),
        method: boltzText('ott'),
        identity: boltzText('-vKL94i-8'),
        edgeRouter: boltzNil,
        transitRouter: boltzNil,
        caId: boltzNil,
        username: boltzNil,
        expiresAt: boltzTime(EXPIRES),
        issuedAt: boltzTime(CREATED),
        jwt: boltzText('eyJ.a.b'),
      },
      'router-open-1': {
        token: boltzText('2b1f5c2e-0f5e-4b0e-9d1e-6c2d5a7b9f10'),
        method: boltzText('erott'),
        edgeRouter: boltzText('edge-2'),
        expiresAt: boltzTime(EXPIRES),
        issuedAt: boltzTime(CREATED),
        jwt: boltzText('eyJ.c.d'),
      },
    },
    mfas: {
      'factor-1': {
        ...base,
        identity: boltzText('-vKL94i-8'),
        isVerified: boltzBoolean(true),
        secret: boltzText('3WVOILVLEVIRJ22B'),
        recoveryCodes: boltzSet('ABCDEF', 'Q2W3E4'),
        salt: boltzText(''),
      },
    },
  }
}

const serviceStores: SampleStores = {
  configTypes: {
    'acme.v1': { ...base, name: boltzText('acme.v1'), schema: boltzText('{"type":"object"}') },
  },
  configs: {
    alt: {
      ...base,
      name: boltzText('alt'),
      type: boltzText('acme.v1'),
      data: bucketOf({ port: boltzFloat(80), hosts: boltzList(boltzText('a'), boltzText('b')) }),
      services: boltzSet('web'),
    },
  },
  services: {
    web: {
      ...base,
      name: boltzText('web'),
      terminatorStrategy: boltzText('sticky'),
      maxIdleTime: boltzInt64(90_000_000_001n),
      encryptionRequired: boltzBoolean(true),
      isFabricOnly: boltzBoolean(false),
      roleAttributes: boltzSet('http'),
      configs: boltzSet('alt'),
      terminators: boltzSet('static-1'),
    },
    'fabric-1': { ...base, name: boltzText('fabric-only'), isFabricOnly: boltzBoolean(true) },
  },
  servicePolicies: {
    'dial-1': {
      ...base,
      name: boltzText('dial web'),
      semantic: boltzText('AnyOf'),
      type: boltzInt32(1),
      identityRoles: boltzSet('#all'),
      serviceRoles: boltzSet('@web'),
      postureCheckRoles: boltzSet('@os-1'),
    },
  },
  edgeRouterPolicies: {
    'edge-1': {
      ...base,
      name: boltzText('edge-router-edge-1-system'),
      isSystem: boltzBoolean(true),
      semantic: boltzText('AnyOf'),
      identityRoles: boltzSet('@admin-1'),
      edgeRouterRoles: boltzSet('@edge-1'),
    },
  },
  serviceEdgeRouterPolicies: {
    'any-1': {
      ...base,
      name: boltzText('any'),
      serviceRoles: boltzSet('#all'),
      edgeRouterRoles: boltzSet('#all'),
    },
  },
  postureChecks: {
    'os-1': {
      ...base,
      name: boltzText('os'),
      typeId: boltzText('OS'),
      version: boltzInt64(1),
      OS: bucketOf({
        Linux: bucketOf({ osType: boltzText('Linux'), osVersions: boltzSet('>=6.0.0') }),
      }),
    },
    'processes-1': {
      ...base,
      name: boltzText('processes'),
      typeId: boltzText('PROCESS_MULTI'),
      PROCESS_MULTI: bucketOf({
        semantic: boltzText('AnyOf'),
        processes: bucketOf({
          'Linux-/usr/bin/av': bucketOf({
            osType: boltzText('Linux'),
            path: boltzText('/usr/bin/av'),
            hashes: boltzSet('ab'),
            signerFingerprints: bucketOf({}),
          }),
        }),
      }),
    },
    'mfa-1': {
      ...base,
      name: boltzText('mfa'),
      typeId: boltzText('MFA'),
      MFA: bucketOf({
        timeoutSeconds: boltzInt64(-1),
        promptOnWake: boltzBoolean(true),
        promptOnUnlock: boltzBoolean(false),
        ignoreLegacyEndpoints: boltzBoolean(true),
      }),
    },
  },
  terminators: {
    'static-1': {
      ...base,
      service: boltzText('web'),
      router: boltzText('edge-1'),
      binding: boltzText('transport'),
      address: boltzText('tcp:localhost:80'),
      instanceId: boltzText('one'),
      instanceSecret: Buffer.from('secret-1'),
      cost: boltzInt32(7),
      precedence: boltzText('required'),
      hostId: boltzText(''),
      savedPrecedence: boltzNil,
      sourceCtrl: boltzText('ctrl-1'),
      peerData: { entries: [[Buffer.from([0xeb, 3, 0, 0]), Buffer.from('key')]] },
    },
    'hosted-1': {
      ...base,
      service: boltzText('web'),
      router: boltzText('edge-1'),
      binding: boltzText('edge'),
      address: boltzText('hosted'),
      isSystem: boltzBoolean(true),
    },
    'hosted-2': {
      ...base,
      service: boltzText('web'),
      router: boltzText('edge-1'),
      binding: boltzText('tunnel'),
      address: boltzText('hosted-2'),
      hostId: boltzText('edge-1'),
      isSystem: boltzBoolean(true),
    },
  },
  apiSessions: { 'session-1': { ...base, token: boltzText('secret token') } },
}

function routersOf({ leafPem }: SampleCertificates): SampleStores {
  const router = {
    ...base,
    cost: boltzInt32(3),
    noTraversal: boltzBoolean(true),
    disabled: boltzBoolean(false),
  }
  return {
    routers: {
      'edge-1': {
        ...router,
        name: boltzText('edge'),
        fingerprint: boltzText(sha1Of(leafPem)),
        ctrlChanListeners: bucketOf({ 'tls:host:1': boltzSet('default') }),
        edge: bucketOf({
          certPem: boltzText(leafPem),
          isVerified: boltzBoolean(true),
          isTunnelerEnabled: boltzBoolean(true),
          roleAttributes: boltzSet('public'),
          appData: bucketOf({ my: boltzText('data') }),
          capabilitiesMask: boltzInt64(4_611_686_018_427_388_022n),
          services: bucketOf({ ignored: boltzInt32(1) }),
        }),
      },
      'edge-2': {
        ...router,
        name: boltzText('open'),
        fingerprint: boltzNil,
        edge: bucketOf({ certPem: boltzNil, isVerified: boltzBoolean(false) }),
      },
      'transit-1': {
        ...router,
        name: boltzText('transit'),
        fingerprint: boltzText('aa'.repeat(20)),
        transitRouter: bucketOf({ isVerified: boltzBoolean(true) }),
      },
      'fabric router/1': {
        ...router,
        name: boltzText('fabric'),
        fingerprint: boltzText('bb'.repeat(20)),
      },
    },
  }
}

function thirdParties({ caPem }: SampleCertificates): SampleStores {
  return {
    cas: {
      'ca-1': {
        ...base,
        name: boltzText('partner'),
        certPem: boltzText(caPem),
        fingerprint: boltzText(sha1Of(caPem)),
        isVerified: boltzBoolean(true),
        verificationToken: boltzText('token-1'),
        isAutoCaEnrollmentEnabled: boltzBoolean(true),
        isOttCaEnrollmentEnabled: boltzBoolean(false),
        isAuthEnabled: boltzBoolean(true),
        identityRoles: boltzSet('partners'),
        identityNameFormat: boltzText('[caName] - [commonName]'),
        externalIdClaim: bucketOf({
          'externalIdClaim.location': boltzText('SAN_URI'),
          'externalIdClaim.matcher': boltzText('SCHEME'),
          'externalIdClaim.matcherCriteria': boltzText('acme'),
          'externalIdClaim.parser': boltzText('SPLIT'),
          'externalIdClaim.parserSeparator': boltzText('/'),
          'externalIdClaim.index': boltzInt64(2),
        }),
      },
    },
    authPolicies: {
      default: { ...base, name: boltzText('Default'), isSystem: boltzBoolean(true) },
      strict: {
        ...base,
        name: boltzText('strict'),
        'primary.cert.allowed': boltzBoolean(true),
        'primary.updb.minPasswordLength': boltzInt64(6),
        'primary.updb.maxAttempts': boltzInt64(3),
        'primary.extJwt.allowedSigners': boltzSet('idp-1'),
        'secondary.requireTotp': boltzBoolean(true),
        'secondary.requireExtJwtSigner': boltzText('idp-1'),
      },
    },
    externalJwtSigners: {
      'idp-1': {
        ...base,
        name: boltzText('idp'),
        issuer: boltzText('https://idp.acme.test'),
        audience: boltzText('ziti'),
        certPem: boltzNil,
        jwksEndpoint: boltzText('https://idp.acme.test/keys'),
        kid: boltzNil,
        enabled: boltzBoolean(true),
        claimsProperty: boltzText('/email'),
        scopes: boltzSet('openid'),
        targetToken: boltzText('ID'),
        notBefore: boltzNil,
      },
    },
  }
}
