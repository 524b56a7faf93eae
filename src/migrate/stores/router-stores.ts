/**
 * Routers and terminators. Source: ziti 804f55abb, controller/db/router_store.go:30-121,
 * edge_router_store.go:31-39, transit_router_store.go:112-134, terminator_store.go:30-186.
 */
import type { Json } from '../../lib/text/canonical-json.ts'
import { precedenceNames } from '../../entities/parts/terminator-fields.ts'
import { normalizeHost, isLoopbackHost, normalizedHosts } from '../../pki/authority/router-names.ts'
import { readChoiceOrFirst, type Conversion, type StoreTable } from './conversion.ts'
import {
  baseFieldRules,
  unchangedFieldRule,
  convertedFieldRule,
  droppedFieldRule,
  linkFieldRule,
} from './stored-field-rules.ts'
import { toAdoptableFingerprint } from './identity-stores.ts'
import {
  type CertificateText,
  checkIssuer,
  readCertificateText,
  readNextCertificate,
} from './stored-certificate.ts'
import type { StoredRecord } from './stored-record.ts'

const REPORTED = 'the router reports it again'

export const routerStore: StoreTable = {
  store: 'routers',
  kind: 'router',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    fingerprint: convertedFieldRule('text', 'computed from certPem'),
    cost: unchangedFieldRule('int32'),
    noTraversal: unchangedFieldRule('boolean'),
    disabled: unchangedFieldRule('boolean'),
    ctrlChanListeners: unchangedFieldRule('map', { since: '2.0' }),
    interfaces: droppedFieldRule('map', REPORTED),
    configs: unchangedFieldRule('texts', { since: '2.1' }),
    terminators: linkFieldRule,
    edge: unchangedFieldRule('section', {
      fields: {
        certPem: unchangedFieldRule('text'),
        isVerified: unchangedFieldRule('boolean'),
        isTunnelerEnabled: unchangedFieldRule('boolean'),
        roleAttributes: unchangedFieldRule('texts'),
        appData: unchangedFieldRule('map'),
        unverifiedCertPem: unchangedFieldRule('text'),
        unverifiedFingerprint: convertedFieldRule('text', 'computed from unverifiedCertPem'),
        capabilitiesMask: droppedFieldRule('int64', REPORTED, { since: '2.1' }),
        version: droppedFieldRule('map', REPORTED, { since: '2.1' }),
        edgeRouterPolicies: linkFieldRule,
        serviceEdgeRouterPolicies: linkFieldRule,
        enrollments: linkFieldRule,
        identities: linkFieldRule,
        services: linkFieldRule,
      },
    }),
    transitRouter: unchangedFieldRule('section', {
      fields: {
        isVerified: unchangedFieldRule('boolean'),
        unverifiedCertPem: unchangedFieldRule('text'),
        unverifiedFingerprint: convertedFieldRule('text', 'computed from unverifiedCertPem'),
        enrollments: linkFieldRule,
      },
    }),
  },
  convert: (record, conversion) => {
    const edge = record.section('edge')
    const transit = record.section('transitRouter')
    const leaf = leafOf(record, edge, conversion)
    if (leaf !== null) checkIssuer(record, leaf.certificate, conversion)
    const renewing = edge ?? transit
    const next = renewing === null ? null : readNextCertificate(renewing, 'unverifiedFingerprint')
    const names = leaf === null ? [] : normalizedHosts(leaf.certificate.names)
    conversion.put('router', record, {
      name: record.text('name') ?? '',
      cost: record.integer('cost'),
      noTraversal: record.flag('noTraversal'),
      disabled: record.flag('disabled'),
      ctrlChanListeners: record.map('ctrlChanListeners'),
      configs: record.texts('configs'),
      isEdge: edge !== null,
      isTransit: transit !== null,
      isVerified: edge?.flag('isVerified') ?? transit?.flag('isVerified') ?? true,
      isTunnelerEnabled: edge?.flag('isTunnelerEnabled') ?? false,
      roleAttributes: edge?.texts('roleAttributes') ?? [],
      appData: edge?.map('appData') ?? {},
      ...credentialOf(record, leaf),
      ...(next === null ? {} : { nextCertPem: next.pem, nextFingerprint: next.certificate.sha1 }),
      certificateNames: names,
      allowedNames: allowedNamesOf(record, names, conversion),
    })
  },
}

/** The router's client certificate. OpenZiti stores it only for edge routers. */
function leafOf(
  record: StoredRecord,
  edge: StoredRecord | null,
  { routerCertificates }: Conversion,
): CertificateText | null {
  const given = routerCertificates.get(record.id) ?? null
  const stored = edge?.text('certPem') || null
  const sha1 = record.text('fingerprint')?.toLowerCase() ?? ''
  const pem = stored ?? given
  const leaf = pem === null ? null : readCertificateText(record, 'certPem', pem)
  if (leaf === null) return null
  if (sha1 === '' || sha1 === leaf.certificate.sha1) return leaf
  const reason =
    stored === null
      ? 'the certificate of --router-cert is not the one of this router'
      : 'its SHA-1 was not that of certPem'
  record.note(stored === null ? 'decide' : 'changed', 'fingerprint', reason)
  return stored === null ? null : leaf
}

/**
 * Fields that identify the router. If OpenZiti did not store the router's certificate, its SHA-1
 * identifies the router until the router first connects.
 */
function credentialOf(record: StoredRecord, leaf: CertificateText | null) {
  if (leaf !== null) return { fingerprint: leaf.certificate.sha1, certPem: leaf.pem }
  const fingerprint = record.text('fingerprint') || null
  if (fingerprint === null) return { fingerprint }
  const adoptable = toAdoptableFingerprint(fingerprint)
  if (adoptable === null) {
    const reason = 'it is no SHA-1 of a certificate, so the router cannot connect; enroll it again'
    record.note('decide', 'fingerprint', reason)
    return { fingerprint }
  }
  record.note('changed', 'certPem', `the database has only its SHA-1; ${ADOPTED}`)
  return { fingerprint: adoptable, adoptableFingerprint: adoptable }
}

const ADOPTED = 'the first connection with the certificate stores it'

/**
 * Hosts that the router's next server certificate may contain. OpenZiti does not store the names of
 * the server certificate, but the client certificate has the same names. These names stay allowed,
 * so that a renewal keeps them.
 */
function allowedNamesOf(
  record: StoredRecord,
  names: readonly string[],
  { controllerHosts }: Conversion,
): string[] {
  const allowed = names.filter((name) => !isLoopbackHost(normalizeHost(name)))
  for (const name of allowed.filter((one) => controllerHosts.has(one))) {
    const reason = `its certificate names ${name}, the host of a controller; remove the name from allowedNames unless both run there`
    record.note('decide', 'allowedNames', reason)
  }
  return allowed
}

export const terminatorStore: StoreTable = {
  store: 'terminators',
  kind: 'terminator',
  why: '',
  rows: {
    ...baseFieldRules,
    service: unchangedFieldRule('text'),
    router: unchangedFieldRule('text'),
    binding: unchangedFieldRule('text'),
    address: unchangedFieldRule('text'),
    instanceId: unchangedFieldRule('text'),
    instanceSecret: convertedFieldRule('bytes', 'to base64'),
    cost: unchangedFieldRule('int32'),
    precedence: unchangedFieldRule('text'),
    hostId: unchangedFieldRule('text'),
    savedPrecedence: droppedFieldRule('text', 'a health check of the host sets it again'),
    sourceCtrl: unchangedFieldRule('text'),
    peerData: convertedFieldRule('bytes by key', 'to base64'),
    isSystem: convertedFieldRule(
      'boolean',
      'terminators that routers made for their clients are left out: the clients bind again',
    ),
  },
  convert: (record, conversion) => {
    const isSystem = record.flag('isSystem')
    if (isSystem && !isOfTunnel(record)) {
      record.note('changed', '', 'its host binds again and gets a new one')
      return
    }
    const serviceId = record.text('service') ?? ''
    const secret = record.bytes('instanceSecret')
    conversion.put('terminator', record, {
      serviceId,
      routerId: record.text('router') ?? '',
      binding: record.text('binding') ?? '',
      address: record.text('address') ?? '',
      cost: record.integer('cost'),
      precedence: readChoiceOrFirst(record, 'precedence', precedenceNames),
      instanceId: record.text('instanceId') ?? '',
      instanceSecret: secret === null ? '' : Buffer.from(secret).toString('base64'),
      hostId: record.text('hostId') ?? '',
      sourceCtrl: record.text('sourceCtrl') ?? '',
      peerData: peerDataOf(record),
      isFabricOnly: conversion.fabricServices.has(serviceId),
      isSystem,
    })
  },
}

/**
 * Whether a router's tunnel hosts the terminator; such a terminator has no session. Such a
 * terminator is migrated, because a router recreates its terminators only 10 s after it has
 * reconnected, and the service would be unavailable until then.
 */
function isOfTunnel(record: StoredRecord): boolean {
  return record.text('binding') === 'tunnel' && record.text('hostId') === record.text('router')
}

/** Header numbers as decimal strings, with their values in base64. */
function peerDataOf(record: StoredRecord): Record<string, string> {
  const found: [string, Json & string][] = []
  for (const [key, value] of record.bytesByKey('peerData')) {
    if (key.length !== 4) {
      record.note('lost', 'peerData', 'a key is no number of a header')
      continue
    }
    const number = Buffer.from(key).readUInt32LE()
    found.push([String(number), Buffer.from(value).toString('base64')])
  }
  return Object.fromEntries(found)
}
